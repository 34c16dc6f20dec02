// A memory limit by control group, v1 or v2, where the worker may make groups; where it may not,
// there is no memory limit. Standard library only. Not thread safe.
#ifndef XCE_WORKER_SHEPHERD_MEMORY_CGROUP_H_
#define XCE_WORKER_SHEPHERD_MEMORY_CGROUP_H_

#include <cstdint>
#include <string>

namespace xce::worker {

// A directory below which memory groups can be made by this process, or "". `given` (an operator's
// choice, for example a group that systemd delegated) is tried first; otherwise the v1 memory
// hierarchy is.
std::string find_memory_cgroup(const std::string& given);

// One job's group.
class MemoryCgroup {
 public:
  // Makes the group below `parent`; limit in MiB. On failure valid() is false and the job runs
  // without a limit.
  MemoryCgroup(const std::string& parent, const std::string& name, uint64_t limit_mb);
  ~MemoryCgroup();
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;

  bool valid() const { return !dir_.empty(); }
  // Path of the file to which the job's process writes "0" to enter the group. Safe to use between
  // fork and exec.
  const std::string& procs_file() const { return procs_file_; }
  // Whether the kernel killed a process of this group for want of memory.
  bool killed_for_memory() const;

 private:
  std::string dir_, procs_file_;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_SHEPHERD_MEMORY_CGROUP_H_
