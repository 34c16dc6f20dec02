// Steps: commands that run inside the allocation of a running job, each a job of its own that names
// that job (JobSpec::step). A step is started at once, on a host that its job holds; it holds
// nothing itself, so no scheduler need know of it. It never waits again, and ends with its job at
// the latest. PURE.
#ifndef XCE_CONTROLLER_STATE_STEPS_H_
#define XCE_CONTROLLER_STATE_STEPS_H_

#include "controller/state/tables.h"

namespace xce::state {

inline constexpr size_t kMaxSteps = 1000;  // of one job at once

// The running job that the command of `spec` is to run in, or the refusal: E_XCE_NOENT, E_XCE_PERM
// (not of who asks), E_XCE_INVALID (it does not run, or not there), E_XCE_BUSY.
Result find_owner(const Tables& tables, const Command& command, const JobSpec& spec);

// Starts the step on each of its hosts: jobs of consecutive ids; several are an array whose indices
// are the places of their hosts among the job's. find_owner has been asked.
Result add_steps(Turn& turn, JobSpec spec);

// A job ended, or gave up its hosts: its steps are killed.
void kill_steps(Turn& turn, const Job& job);
// A step ended: what waited for that goes on.
void step_ended(Turn& turn, Job& step);
// The time limit of a running job was changed: no step may go on beyond it.
void limit_steps(Turn& turn, const Job& job);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_STEPS_H_
