// Runs a trace through the scheduler's own policy code, event by event. PURE and deterministic.
//
// The machine is one host with so many processors, as is usual for such traces: which of them a job
// gets does not matter. Jobs are submitted when the trace says and run as long as it says; nothing
// else of the trace (its waits, its dependencies and think times) is used. The scheduler is told
// of what happens at once and decides in no time.
#ifndef XCE_SCHEDULER_SIM_SIMULATE_H_
#define XCE_SCHEDULER_SIM_SIMULATE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "scheduler/policy/backfill.h"
#include "scheduler/sim/swf.h"

namespace xce::sched {

struct SimOptions {
  uint32_t cpus = 1;
  Backfill backfill = Backfill::kEasy;
  int64_t fair_share_half_life_s = 0;  // 0: no fair share
};

struct SimResult {
  size_t jobs = 0;        // that ran
  size_t impossible = 0;  // left out: they need more processors than there are
  double mean_wait_s = 0, median_wait_s = 0, p95_wait_s = 0, max_wait_s = 0;
  // max(1, (wait + run) / max(run, 10 s)), so that very short jobs do not decide alone (Feitelson
  // et al., "Theory and practice in parallel job scheduling", 1997).
  double mean_bounded_slowdown = 0, median_bounded_slowdown = 0, p95_bounded_slowdown = 0;
  double utilization = 0;  // processor-seconds used, of those from first submission to last end
  int64_t makespan_s = 0;  // from first submission to last end
  int64_t backfilled = 0;  // starts before an earlier submitted job
};

// What one job went through; told in the order of submission.
struct SimJob {
  const TraceJob* job = nullptr;
  int64_t start_s = 0, end_s = 0;  // on the trace's clock
};

// `each` may be empty.
SimResult simulate(const Trace& trace, const SimOptions& options,
                   const std::function<void(const SimJob&)>& each = nullptr);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_SIM_SIMULATE_H_
