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

// When the process started, in clock ticks since boot; 0 when there is none. Tells apart two
// processes of one pid.
uint64_t start_ticks(pid_t pid);

// The kernel's id of this boot; "" when it has none.
std::string boot_id();

// Whole content of a small file; "" when it cannot be read.
std::string read_small_file(const std::string& path);

}  // namespace xce::worker

#endif  // XCE_WORKER_SHEPHERD_PROCESS_TREE_H_
