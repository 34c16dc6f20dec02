// Preemption: running jobs of preemptible queues make room for waiting jobs of queues of higher
// priority. PURE.
//
// Called after a round, so every job that still waits for hosts could not start without. Each of
// the first such jobs claims hosts in its turn: first what is free or becomes free by evictions
// already under way, then by further ones, so that a later call evicts nobody for a job that has
// had its room made. Of a host's jobs those of the lowest queue go first, among these the newest,
// as they lose least.
#ifndef XCE_SCHEDULER_POLICY_PREEMPT_H_
#define XCE_SCHEDULER_POLICY_PREEMPT_H_

#include <cstdint>
#include <vector>

#include "scheduler/policy/round.h"

namespace xce::sched {

// The evictions to ask for, already noted in the view.
std::vector<Eviction> choose_evictions(View* view, int64_t now_ms, const RoundLimits& limits);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_PREEMPT_H_
