// What the allocator hands to the publisher: one command's worth of starts, evictions or reasons.
#ifndef XCE_SCHEDULER_PIPELINE_DECISION_H_
#define XCE_SCHEDULER_PIPELINE_DECISION_H_

#include <cstdint>
#include <mutex>
#include <vector>

#include "libxce/model/command.h"
#include "scheduler/policy/view.h"

namespace xce::sched {

struct Decision {
  uint64_t epoch = 0;
  std::vector<Dispatch> dispatches;  // already started in the view
  std::vector<Eviction> evictions;   // already noted in the view; when dispatches is empty
  std::vector<PendReason> reasons;   // when both are
};

// One round of scheduling, handed from the picker to the allocator.
struct RoundRequest {
  uint64_t number = 0;
};

// The view and its lock. Held for the time of one round, one page or one batch of events; never
// over a call.
struct SharedView {
  std::mutex mutex;
  View view;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_PIPELINE_DECISION_H_
