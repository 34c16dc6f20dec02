// Command line of xcecd, the worker daemon, and what this host has. Thread safe: functions of their
// arguments and the host.
#ifndef XCE_WORKER_OPTIONS_H_
#define XCE_WORKER_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libxce/model/host.h"

namespace xce::worker {

struct Options {
  std::string peers;
  std::string name;
  std::string data_dir = "/var/lib/xce/worker";
  std::string shepherd;   // path of xce_shepherd
  std::string cgroup;     // an operator's parent for the jobs' control groups
  std::string worker_id;  // stands for the data directory's own number
  bool limit_cpus = false;
  uint32_t max_processes = 0;
  uint64_t min_free_mb = 32;
  std::string log_level = "info";
  std::string log_format = "auto";
  std::string tls_ca, tls_cert, tls_key;
  std::vector<Gres> gres;
  uint32_t cpus = 0;
  uint64_t memory_mb = 0;
  int hello_interval_ms = 1000;
  int call_deadline_ms = 10000;
  bool exit_if_unreachable = false;
};

// Reads the command line and the environment. Gives an exit status instead when the program is to
// end at once (help, version, or a mistake, which has been explained: 2).
struct ParsedOptions {
  Options options;
  bool run = false;
  int exit_status = 0;
};
ParsedOptions parse_options(int argc, char** argv);

// "gpu:2,license:10" as resources. InvalidArgument names the entry that is wrong.
absl::StatusOr<std::vector<Gres>> parse_gres(const std::string& text);

// Host name, processors and memory as this machine has them.
std::string own_host_name();
uint32_t own_cpus();
uint64_t own_memory_mb();
// What shows that a directory with these entries was in other use before, or "": it is new or a
// worker's.
std::string foreign_entry(const std::vector<std::string>& entries);
// The xce_shepherd that came with this program, or "".
std::string find_shepherd();

}  // namespace xce::worker

#endif  // XCE_WORKER_OPTIONS_H_
