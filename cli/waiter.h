// Waiting for jobs to end: by pushes, so that nobody is asked
// while nothing happens. I/O; lives through failovers.
#ifndef XCE_CLI_WAITER_H_
#define XCE_CLI_WAITER_H_

#include <xce/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/session.h"

namespace xce::cli {

struct EndedJob {
  std::string text;  // "17" or "17[3]"
  uint64_t id = 0;
  xce_job_state_t state = XCE_JOB_COMPLETED;
  uint32_t exit_signal = 0;
  int exit_code = 0;  // that stands for the job, see exit_code_of_job
  int64_t run_ms = -1;
  std::string reason;
};

// Waits until every target has ended and tells `each` of each job in the order in which they end
// (an array's tasks together, when all have ended). until_steady_ms 0: for ever; DeadlineExceeded
// when it passes, Cancelled on a signal.
// `stuck` (may be empty) is told once of each job that will not start by itself: held, or asking
// for what is not there.
absl::Status wait_for(Session& session, const std::vector<Resolved>& targets,
                      long long until_steady_ms, const std::function<void(const EndedJob&)>& each,
                      const std::function<void(const xce_job_t&)>& stuck = nullptr);

// For somebody who waits for a job that will not start by itself (is_stuck): why, and what to do.
std::string stuck_words(const xce_job_t& job);
// How `job` ended, when it did.
EndedJob ended_job(const xce_job_t& job);
// "Job 17 COMPLETED after 3 s", "Job 18 FAILED: exit code 3".
std::string outcome_words(const EndedJob& job);

// The error that stands for a job or array that the cluster does not know any more.
absl::Status forgotten(const std::string& what);

}  // namespace xce::cli

#endif  // XCE_CLI_WAITER_H_
