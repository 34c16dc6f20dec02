// Traces in the Standard Workload Format (Chapin et al., "Benchmarks and standards for the
// evaluation of parallel job schedulers", 1999): 18 numbers a job, -1 where one is not known, and
// comments with headers after ';'. PURE: text in, jobs out.
#ifndef XCE_SCHEDULER_SIM_SWF_H_
#define XCE_SCHEDULER_SIM_SWF_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace xce::sched {

struct TraceJob {
  int64_t number = 0;      // as in the trace
  int64_t submit_s = 0;    // since the trace's beginning
  int64_t run_s = 0;       // how long it ran
  int64_t estimate_s = 1;  // how long it may run, as asked for; at least 1 and at least run_s
  uint32_t cpus = 1;
  int64_t user = -1;  // -1: not known
};

struct Trace {
  std::vector<TraceJob> jobs;  // by submission, then as in the trace
  uint32_t cpus = 0;           // MaxProcs, or else MaxNodes; 0: the trace does not tell
  size_t no_run_time = 0;      // jobs left out because their run time or processors are not known
  size_t partial = 0;          // lines left out that tell of a part of a job (status 2, 3 or 4)
  size_t no_estimate = 0;      // jobs whose run time is taken as the estimate
  size_t raised = 0;           // jobs that ran longer than asked for: their run time is taken
};

// Reads a whole trace. Errors name the file as given and the line.
absl::StatusOr<Trace> parse_swf(std::string_view text, const std::string& file);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_SIM_SWF_H_
