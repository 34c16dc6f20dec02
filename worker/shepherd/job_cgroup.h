// Limits by control groups: memory, processors and number of processes of a whole job. Version 2
// where a group was delegated to the worker, version 1 where it may make groups there; where
// neither, the shepherd measures and ends the job itself (usage_of in process_tree.h). Standard
// library only. Not thread safe.
#ifndef XCE_WORKER_SHEPHERD_JOB_CGROUP_H_
#define XCE_WORKER_SHEPHERD_JOB_CGROUP_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace xce::worker {

// Directories below which job groups can be made: one of version 2, or one for each hierarchy of
// version 1 that can be written. `given` (an operator's choice, for example a group that systemd
// delegated) is tried first; then the group that this process is in. For version 2 this process
// may be moved to a group of its own below, as the kernel wants no processes beside groups.
std::vector<std::string> find_job_cgroups(const std::string& given);

struct CgroupLimits {
  uint64_t memory_mb = 0;  // 0: none, for each
  uint32_t cpus = 0;
  uint32_t max_processes = 0;
};

// One job's groups, or those of a step: groups below its job's, so that the limits are for all of
// them together.
class JobCgroup {
 public:
  // Makes the group `name` below each parent, and `inner` in it unless that is "". What cannot be
  // made or limited is left out; the limits_* say what is enforced. The last one of a job to go
  // takes the job's group away.
  JobCgroup(const std::vector<std::string>& parents, const std::string& name,
            const std::string& inner, const CgroupLimits& limits);
  ~JobCgroup();
  JobCgroup(const JobCgroup&) = delete;
  JobCgroup& operator=(const JobCgroup&) = delete;

  bool limits_memory() const { return limits_memory_; }
  bool limits_processes() const { return limits_processes_; }
  // Files to which the job's process writes "0" to enter the groups. Safe to use between fork and
  // exec.
  const std::vector<std::string>& procs_files() const { return procs_files_; }
  // Every process in the groups, also those that left the job's process tree.
  std::vector<pid_t> members() const;
  // Kills every process in the groups at once, those of groups below too, where the kernel can
  // (version 2).
  void kill_all() const;
  // Whether the kernel killed a process of the job for want of memory, or refused it a new process.
  // Of a step: one of it, or of its job.
  bool killed_for_memory() const;
  bool refused_a_process() const;
  // The most memory that the whole job had at once, in KiB; 0: not known.
  uint64_t peak_memory_kb() const;

 private:
  bool set_limits(const std::string& dir, const CgroupLimits& limits);
  bool counts(const char* file, const char* word) const;

  std::vector<std::string> dirs_, procs_files_;
  std::vector<std::string> outer_;  // of a step: the groups that its own are in
  bool limits_memory_ = false, limits_processes_ = false;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_SHEPHERD_JOB_CGROUP_H_
