// What workers say became of jobs. PURE.
//
// A worker numbers its reports and sends them until they are confirmed; each is applied once, in
// order: one at or below the host's outbox_applied was applied already, one beyond a gap is left
// for later. A report always advances the number; it changes the job only if it is about the job's
// newest attempt and comes from the host that runs it: of a job with several hosts that is the
// first one of its allocation. A host that was lost is up again when it reports, be it nothing (a
// Notify without items): that is how a worker that was only paused comes back without joining anew.
#ifndef XCE_CONTROLLER_STATE_REPORTS_H_
#define XCE_CONTROLLER_STATE_REPORTS_H_

#include "controller/state/tables.h"

namespace xce::state {

// E_XCE_PERM: not the worker of that host. E_XCE_NOENT: the host has not joined. E_XCE_STALE:
// another start of the worker has joined since. Otherwise 0 with outbox_applied, and an
// OutboxApplied event.
Result notify(Turn& turn, const Command& command, const Notify& notify);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_REPORTS_H_
