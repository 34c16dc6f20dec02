// Processes: who descends from whom, which boot this is, whether a recorded process is still the
// same. Reads /proc. Standard library only. Thread safe.
#ifndef XCE_WORKER_SHEPHERD_PROCESS_TREE_H_
#define XCE_WORKER_SHEPHERD_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace xce::worker {

// Every living descendant of `root`, itself not included. A subreaper thus finds daemonized
// grandchildren as well.
std::vector<pid_t> descendants(pid_t root);

// Every living process of that session, its leader included.
std::vector<pid_t> session_members(pid_t session);

// What processes use at this moment, together.
struct TreeUsage {
  uint64_t memory_kb = 0;  // resident; shared pages count once a process
  uint32_t processes = 0;
};
TreeUsage usage_of(const std::vector<pid_t>& pids);
// The same memory, each shared page counted once between those that share it; costs more to find
// out.
uint64_t shared_memory_kb(const std::vector<pid_t>& pids);

// Processes of jobs of the worker with this data directory, by what their environment says
// (kMarkVariable), whether or not anything else is known of them. Only those whose environment may
// be read: all for root, the own ones for others.
struct MarkedProcess {
  pid_t pid = 0;
  std::string job_dir_name;  // "17.2"
};
inline constexpr char kMarkVariable[] = "XCE_JOB_MARK";  // = DATA/jobs/17.2
std::vector<MarkedProcess> marked_processes(const std::string& data_dir);

// The shepherd that a process of a job descends from, or 0: it has none any more.
pid_t shepherd_above(pid_t pid, const std::string& data_dir);

// When the process started, in clock ticks since boot; 0 when there is none. Tells apart two
// processes of one pid.
uint64_t start_ticks(pid_t pid);

// The kernel's id of this boot; "" when it has none.
std::string boot_id();

// Whole content of a small file; "" when it cannot be read.
std::string read_small_file(const std::string& path);

}  // namespace xce::worker

#endif  // XCE_WORKER_SHEPHERD_PROCESS_TREE_H_
