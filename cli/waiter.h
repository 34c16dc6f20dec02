// Waiting for jobs to end, and reading their output meanwhile. I/O; lives through failovers.
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
absl::Status wait_for(Session& session, std::vector<Resolved> targets, long long until_steady_ms,
                      const std::function<void(const EndedJob&)>& each,
                      const std::function<void(const xce_job_t&)>& stuck = nullptr);

// How `job` ended, when it did.
EndedJob ended_job(const xce_job_t& job);
// "Job 17 COMPLETED after 3 s", "Job 18 FAILED: exit code 3".
std::string outcome_words(const EndedJob& job);

// Copies a job's output to a descriptor of this process as it grows.
class LogReader {
 public:
  LogReader(uint64_t job_id, xce_stream_t stream, int fd)
      : job_id_(job_id), stream_(stream), fd_(fd) {}

  // Copies what is there. True: the end of what there is now; false: interrupted or more may be had
  // at once. follow: an outage is waited for.
  absl::Status pump(Session& session, bool follow);
  uint64_t offset() const { return offset_; }
  void restart() { offset_ = 0; }

 private:
  const uint64_t job_id_;
  const xce_stream_t stream_;
  const int fd_;
  uint64_t offset_ = 0;
};

struct FollowedJob {
  uint64_t id = 0;
  std::vector<LogReader> readers;
};

// Copies the output of these jobs as it grows until all have ended and all was copied; then tells
// how they ended, in their order. Output that cannot be read for a while (its worker is finding the
// new primary) is waited for; then it is an error, or with quiet_errors a complaint, and the wait
// goes on.
absl::StatusOr<std::vector<EndedJob>> follow_jobs(Session& session, std::vector<FollowedJob> jobs,
                                                  bool quiet_errors);

}  // namespace xce::cli

#endif  // XCE_CLI_WAITER_H_
