// What people want of their jobs. PURE. A user controls only jobs of the same user name;
// administrators control all.
//
//           waiting             holding hosts                                    ended
//           (PENDING, HELD)     (STARTING, RUNNING, SUSPENDED)
//  kill     KILLED at once      the worker is asked to (desired KILL)            success, count 0
//  suspend  refused: hold it    the worker is asked to (desired SUSPEND)         refused
//  resume   refused             desired RUN, if it was to be suspended           refused
//  hold     HELD                refused: suspend it                              refused
//  release  PENDING             refused                                          refused
//  requeue  refused: it waits   killed; waits again when that is reported,       waits again
//                               unless a later kill ends it for good
//  modify   priority, time,     priority, name; less time, by an administrator   refused
//           name, queue         also more
//
// A job that waits again keeps its id, its submission and its attempt number, and counts as new for
// everything else. What is already so is success without a change. With several ids each job is
// judged for itself: if any could be changed, or needed no change, the result is success, and count
// and message tell the rest; if none, the first refusal is the result.
#ifndef XCE_CONTROLLER_STATE_CONTROL_H_
#define XCE_CONTROLLER_STATE_CONTROL_H_

#include "controller/state/tables.h"

namespace xce::state {

// Result.count: jobs changed. E_XCE_NOENT, E_XCE_PERM, E_XCE_INVALID.
Result control_jobs(Turn& turn, const Command& command, const JobControl& control);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_CONTROL_H_
