// Following jobs: copying their output as it grows, to their end. Told of changes by pushes; the
// jobs' hosts wait for output. I/O; lives through failovers.
#ifndef XCE_CLI_FOLLOWER_H_
#define XCE_CLI_FOLLOWER_H_

#include <xce/types.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/session.h"
#include "cli/waiter.h"

namespace xce::cli {

// Copies a job's output to a descriptor of this process as it grows.
class LogReader {
 public:
  LogReader(uint64_t job_id, xce_stream_t stream, int fd)
      : job_id_(job_id), stream_(stream), fd_(fd) {}

  // Copies what is there, or is interrupted. follow: an outage is waited for. wait_ms: with nothing
  // there, waits so long for some, or for the job's end.
  absl::Status pump(Session& session, bool follow, uint32_t wait_ms = 0);
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
struct Telling {
  bool errors_end_it = true;  // of reading; else they are complained of
  bool why_it_waits = true;   // once, of a job that will not start by itself
};

// Copies the output of these jobs (at most XCE_MAX_WATCHED_JOBS) as it grows until all have ended
// and all was copied; then tells how they ended, in their order. Output that cannot be read for a
// while (its worker is finding the new primary) is waited for; then it is an error, or a complaint,
// and the wait goes on.
absl::StatusOr<std::vector<EndedJob>> follow_jobs(Session& session, std::vector<FollowedJob> jobs,
                                                  Telling telling);

}  // namespace xce::cli

#endif  // XCE_CLI_FOLLOWER_H_
