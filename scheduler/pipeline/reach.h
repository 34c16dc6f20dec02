// The start of the scheduler before any controller has answered: tries all candidates until one
// serves as primary, and tells of each what came of it. The order in which machines boot must not
// matter.
//
// Runs on the thread that publishes later; the calls come from outside, so that tests need no
// network.
#ifndef XCE_SCHEDULER_PIPELINE_REACH_H_
#define XCE_SCHEDULER_PIPELINE_REACH_H_

#include <functional>
#include <string>

#include "scheduler/pipeline/controller_port.h"

namespace xce::sched {

struct ReachCalls {
  // Goes through the candidates until one serves or deadline_ms are over: 0, -E_XCE_NOT_READY when
  // none did, or another status. Ends early with -ECANCELED when the scheduler stops.
  std::function<int(int deadline_ms)> attempt;
  // The attempts of the last such call: "host:port outcome at N ms; host:port outcome at N ms".
  std::function<std::string()> trail;
};

// Tries until one candidate serves (0), the scheduler stops (-ECANCELED) or something other than
// "not ready" comes back (that status). Each try has a longer deadline, 1 to 10 s, and one log line
// that names every candidate tried with its outcomes.
int reach_cluster(const ReachCalls& calls, const LogFn& log);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_PIPELINE_REACH_H_
