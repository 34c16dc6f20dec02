// `xce_scheduler --sim` and `--sim-generate`: reads a trace, runs it by each policy, prints a table
// or JSON on standard output. I/O, one thread.
#ifndef XCE_SCHEDULER_SIM_COMMAND_H_
#define XCE_SCHEDULER_SIM_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/sim/generate.h"
#include "scheduler/sim/simulate.h"

namespace xce::sched {

struct SimFlags {
  std::string trace;                // path
  std::vector<std::string> policy;  // names
  uint32_t cpus = 0;                // 0: as the trace says
  bool json = false;
  int64_t fair_share_half_life_s = 0;
};

// "fcfs" or "none", "easy", "conservative".
std::optional<Backfill> parse_policy(std::string_view name);

struct PolicyResult {
  std::string policy;
  SimResult result;
};

// What is known of the trace, in lines; then one line a policy.
std::string report_text(const std::string& file, const Trace& trace, uint32_t cpus,
                        const std::vector<PolicyResult>& results);
// The same as one JSON object, for programs. Times are in seconds.
std::string report_json(const std::string& file, const Trace& trace, uint32_t cpus,
                        const std::vector<PolicyResult>& results);

// The process's exit code: 0, or 1 with words on standard error.
int run_sim(const SimFlags& flags);
int run_generate(const GenerateOptions& options);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_SIM_COMMAND_H_
