// The active scheduler and what it decides: dispatches and pending reasons. PURE.
// The epoch rises whenever another scheduler takes over; what an overtaken one still sends is
// refused as stale.
#ifndef XCE_CONTROLLER_STATE_SCHEDULER_H_
#define XCE_CONTROLLER_STATE_SCHEDULER_H_

#include "controller/state/tables.h"

namespace xce::state {

// The newest to join is the active one; the same client joining again keeps its epoch.
Result join_scheduler(Turn& turn, const Command& command);

// First the evictions, each of a running attempt of a preemptible queue; others are left alone.
// Then places jobs on hosts, item by item: item_status has 0, or why not: E_XCE_NOENT (no such
// job), E_XCE_INVALID (can never be right: what it allocates is not what the job asks for),
// E_XCE_STALE (not right any more: plan anew). The same (job, attempt, allocations) again is
// success.
Result dispatch(Turn& turn, const Command& command, const Dispatches& dispatches);

// Sets why jobs wait; a hopeless one with dependencies is ended for that reason. Result.count: how
// many reasons changed; of jobs that do not wait none is.
Result set_pend_reasons(Turn& turn, const Command& command, const PendReasons& reasons);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_SCHEDULER_H_
