// See job_cgroup.h.
#include "worker/shepherd/job_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "worker/shepherd/process_tree.h"

namespace xce::worker {
namespace {

constexpr char kRoot[] = "/sys/fs/cgroup";
constexpr uint32_t kPeriodUs = 100000;  // in which a job may use its processors' time

bool write_file(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return ok;
}

// A directory serves when a group made in it has a limit to set.
bool usable(const std::string& parent) {
  const std::string probe = parent + "/probe." + std::to_string(getpid());
  if (mkdir(probe.c_str(), 0755) != 0) return false;
  bool ok = false;
  for (const char* file :
       {"/memory.max", "/memory.limit_in_bytes", "/pids.max", "/cpu.max", "/cpu.cfs_quota_us"})
    ok = ok || access((probe + file).c_str(), W_OK) == 0;
  rmdir(probe.c_str());
  return ok;
}

// Enables what a version 2 group can limit below it. Fails while processes are in it.
void enable_controllers(const std::string& dir) {
  for (const char* controller : {"+memory", "+pids", "+cpu"})
    write_file(dir + "/cgroup.subtree_control", controller);
}

// The version 2 group of this process, made ready for groups below, or "".
std::string own_unified(const std::string& path) {
  for (const std::string& root : {std::string(kRoot), std::string(kRoot) + "/unified"}) {
    std::string dir = root + (path == "/" ? "" : path);
    if (access((dir + "/cgroup.controllers").c_str(), F_OK) != 0) continue;
    if (read_small_file(dir + "/cgroup.controllers").find_first_not_of(" \n") == std::string::npos)
      continue;  // version 1 has them all
    const std::string leaf = dir + "/xcecd";
    if (mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) continue;
    if (!write_file(leaf + "/cgroup.procs", "0")) continue;
    enable_controllers(dir);
    if (usable(dir)) return dir;
    write_file(dir + "/cgroup.procs", "0");
    rmdir(leaf.c_str());
  }
  return "";
}

uint64_t number_in(const std::string& path) {
  uint64_t value = 0;
  std::istringstream(read_small_file(path)) >> value;
  return value;
}

// The number behind a word in a file of "word number" lines.
uint64_t count_in(const std::string& path, const std::string& wanted) {
  std::istringstream in(read_small_file(path));
  std::string word;
  for (uint64_t count = 0; in >> word >> count;) {
    if (word == wanted) return count;
  }
  return 0;
}

}  // namespace

std::vector<std::string> find_job_cgroups(const std::string& given) {
  if (!given.empty()) {
    enable_controllers(given);
    return usable(given) ? std::vector<std::string>{given} : std::vector<std::string>();
  }
  std::vector<std::string> parents;
  std::istringstream in(read_small_file("/proc/self/cgroup"));
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, 3, "0::") == 0) {
      const std::string unified = own_unified(line.substr(3));
      if (!unified.empty()) return {unified};
    }
    for (const char* const name : {"memory", "pids", "cpu", "cpu,cpuacct"}) {
      const std::string hierarchy = name;
      const size_t at = line.find(":" + hierarchy + ":");
      if (at == std::string::npos) continue;
      const std::string own =
          std::string(kRoot) + "/" + hierarchy + line.substr(at + hierarchy.size() + 2);
      const std::string parent = own + (own.back() == '/' ? "" : "/") + "xce";
      mkdir(parent.c_str(), 0755);
      if (usable(parent)) parents.push_back(parent);
    }
  }
  return parents;
}

// Sets the limits of the group `dir`; false: it can keep none of them.
bool JobCgroup::set_limits(const std::string& dir, const CgroupLimits& limits) {
  bool serves = false;
  if (limits.memory_mb != 0) {
    const std::string bytes = std::to_string(limits.memory_mb * 1024 * 1024);
    const bool v2 = write_file(dir + "/memory.max", bytes);
    const bool memory = v2 || write_file(dir + "/memory.limit_in_bytes", bytes);
    limits_memory_ = limits_memory_ || memory;
    serves = serves || memory;
    // No swapping past the limit, where the kernel counts swap; the whole job ends, not a part.
    write_file(dir + (v2 ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes"), v2 ? "0" : bytes);
    if (v2) write_file(dir + "/memory.oom.group", "1");
  }
  if (limits.max_processes != 0 &&
      write_file(dir + "/pids.max", std::to_string(limits.max_processes)))
    serves = limits_processes_ = true;
  if (limits.cpus != 0) {
    const std::string period = std::to_string(kPeriodUs),
                      quota = std::to_string(uint64_t{limits.cpus} * kPeriodUs);
    std::string quota_and_period = quota;
    quota_and_period.append(" ").append(period);
    serves = write_file(dir + "/cpu.max", quota_and_period) ||
             (write_file(dir + "/cpu.cfs_period_us", period) &&
              write_file(dir + "/cpu.cfs_quota_us", quota)) ||
             serves;
  }
  // A group that limits nothing still finds and kills the whole job.
  return serves || access((dir + "/cgroup.kill").c_str(), W_OK) == 0;
}

JobCgroup::JobCgroup(const std::vector<std::string>& parents, const std::string& name,
                     const std::string& inner, const CgroupLimits& limits) {
  if (limits.memory_mb == 0 && limits.max_processes == 0 && limits.cpus == 0) return;
  for (const std::string& parent : parents) {
    std::string dir = parent;
    dir.append("/").append(name);
    // Somebody else's destructor may take the group away while it is still empty.
    for (int tries = 0; tries < 10; ++tries) {
      if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) break;
      if (!set_limits(dir, limits)) {
        if (rmdir(dir.c_str()) != 0 && errno == ENOENT) continue;
        break;
      }
      std::string own = dir;
      if (!inner.empty()) {
        own.append("/").append(inner);
        if (mkdir(own.c_str(), 0755) != 0 && errno == ENOENT) continue;
        outer_.push_back(dir);
      }
      dirs_.push_back(own);
      procs_files_.push_back(own + "/cgroup.procs");
      break;
    }
  }
}

JobCgroup::~JobCgroup() {
  for (const std::string& dir : dirs_) rmdir(dir.c_str());
  for (const std::string& dir : outer_) rmdir(dir.c_str());  // not while others are in it
}

std::vector<pid_t> JobCgroup::members() const {
  std::vector<pid_t> pids;
  for (const std::string& file : procs_files_) {
    std::istringstream in(read_small_file(file));
    for (pid_t pid = 0; in >> pid;) {
      if (std::find(pids.begin(), pids.end(), pid) == pids.end()) pids.push_back(pid);
    }
  }
  return pids;
}

void JobCgroup::kill_all() const {
  for (const std::string& dir : dirs_) write_file(dir + "/cgroup.kill", "1");
}

bool JobCgroup::counts(const char* file, const char* word) const {
  const auto counted = [&](const std::string& dir) { return count_in(dir + file, word) > 0; };
  return std::any_of(dirs_.begin(), dirs_.end(), counted) ||
         std::any_of(outer_.begin(), outer_.end(), counted);
}

bool JobCgroup::killed_for_memory() const {
  return counts("/memory.events", "oom_kill") || counts("/memory.oom_control", "oom_kill");
}

bool JobCgroup::refused_a_process() const { return counts("/pids.events", "max"); }

uint64_t JobCgroup::peak_memory_kb() const {
  uint64_t bytes = 0;
  for (const std::string& dir : dirs_) {
    for (const char* file : {"/memory.peak", "/memory.max_usage_in_bytes"})
      bytes = std::max(bytes, number_in(dir + file));
  }
  return bytes / 1024;
}

}  // namespace xce::worker
