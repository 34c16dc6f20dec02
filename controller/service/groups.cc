#include "controller/service/groups.h"

#include <grp.h>
#include <pwd.h>
#include <sys/types.h>

#include <utility>

namespace xce::service {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;
constexpr int kMostGroups = 1000;

}  // namespace

std::vector<std::string> look_up_groups(const std::string& user) {
  std::vector<char> buffer(kBufferBytes);
  passwd entry;
  passwd* found = nullptr;
  if (getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return {};
  std::vector<gid_t> ids(kMostGroups);
  int n = kMostGroups;
  if (getgrouplist(user.c_str(), entry.pw_gid, ids.data(), &n) < 0) n = kMostGroups;
  std::vector<std::string> names;
  for (int i = 0; i < n; ++i) {
    group of;
    group* known = nullptr;
    if (getgrgid_r(ids[i], &of, buffer.data(), buffer.size(), &known) == 0 && known != nullptr)
      names.emplace_back(of.gr_name);
  }
  return names;
}

const std::vector<std::string>& GroupCache::of(const std::string& user, uint64_t now_ms) {
  auto it = users_.find(user);
  if (it != users_.end() && now_ms - it->second.read_ms < kKeptMs) return it->second.groups;
  if (it == users_.end() && users_.size() >= kMaxUsers) users_.clear();
  Entry& entry = users_[user];
  entry.groups = look_up_(user);
  entry.read_ms = now_ms;
  return entry.groups;
}

}  // namespace xce::service
