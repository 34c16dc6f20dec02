// Queue definitions. PURE. Their pending and running counters belong to the job table.
#ifndef XCE_CONTROLLER_STATE_QUEUES_H_
#define XCE_CONTROLLER_STATE_QUEUES_H_

#include "controller/state/tables.h"

namespace xce::state {

inline constexpr size_t kMaxQueues = 1000;

// The one that every cluster begins with.
Queue first_queue();

// create: open and active, whatever is given. update: everything but open and active, which have
// their own actions. is_default of create or update makes it the only default; nothing but that
// takes the default away. remove: not the default, and only without alive jobs. For administrators:
// E_XCE_PERM, E_XCE_NOENT, E_XCE_INVALID, E_XCE_BUSY.
Result control_queue(Turn& turn, const Command& command, const QueueControl& control);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_QUEUES_H_
