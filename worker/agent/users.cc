// See users.h.
#include "worker/agent/users.h"

#include <grp.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace xce::worker {
namespace {

// glibc's setgroups changes all threads; the system call only this one.
bool set_groups_of_thread(const std::vector<gid_t>& groups) {
  return syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

}  // namespace

UserOnHost look_up_user(uint32_t uid, uint32_t gid) {
  UserOnHost user;
  passwd entry{}, *found = nullptr;
  std::vector<char> buffer(16384);
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    user.name = entry.pw_name;
    user.home = entry.pw_dir;
    user.shell = entry.pw_shell;
    std::vector<gid_t> groups(64);
    int count = static_cast<int>(groups.size());
    if (getgrouplist(entry.pw_name, gid, groups.data(), &count) < 0 && count > 0) {
      groups.resize(static_cast<size_t>(count));
      if (getgrouplist(entry.pw_name, gid, groups.data(), &count) < 0) count = 0;
    }
    groups.resize(static_cast<size_t>(std::max(count, 0)));
    user.groups.assign(groups.begin(), groups.end());
  }
  if (std::find(user.groups.begin(), user.groups.end(), gid) == user.groups.end())
    user.groups.push_back(gid);
  return user;
}

bool as_user(uint32_t uid, uint32_t gid, const std::function<void()>& what) {
  if (geteuid() != 0) {
    what();
    return true;
  }
  std::vector<gid_t> before(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  if (!before.empty() && getgroups(static_cast<int>(before.size()), before.data()) < 0)
    return false;
  const std::vector<uint32_t> groups = look_up_user(uid, gid).groups;
  if (!set_groups_of_thread({groups.begin(), groups.end()})) return false;
  // Leaving uid 0 also takes the thread's capabilities over files away.
  setfsgid(gid);
  setfsuid(uid);
  const bool is_user = static_cast<uint32_t>(setfsuid(static_cast<uid_t>(-1))) == uid &&
                       static_cast<uint32_t>(setfsgid(static_cast<gid_t>(-1))) == gid;
  if (is_user) what();
  setfsuid(0);
  setfsgid(getegid());
  set_groups_of_thread(before);
  return is_user;
}

}  // namespace xce::worker
