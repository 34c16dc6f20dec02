// What a tool's exit code says, and how the statuses of libxce become one. PURE.
//
// Inside the tools an absl::Status carries the exit code in its code, so that every error has one:
// kInvalidArgument 2, kNotFound 3, kPermissionDenied and kUnauthenticated 4, kUnavailable 5,
// kUnknown 6 (outcome unknown), kDeadlineExceeded 7, kCancelled 130, everything else 1.
#ifndef XCE_CLI_EXIT_CODE_H_
#define XCE_CLI_EXIT_CODE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace xce::cli {

enum ExitCode : int {
  kOk = 0,
  kFailure = 1,
  kUsage = 2,
  kNotFound = 3,
  kPermission = 4,
  kNoLeader = 5,
  kOutcomeUnknown = 6,
  kWaitTimeout = 7,
  kInterrupted = 130,
};
// `xce wait` and `xce run` add this to their own failures, to tell them from the job's exit code.
inline constexpr int kOwnFailure = 120;

int exit_code_of(const absl::Status& status);
// As exit_code_of, moved out of the way of a job's exit codes.
int own_exit_code_of(const absl::Status& status);

// The code that carries `status`, what a libxce call returned (either sign): E_XCE_ or errno.
absl::StatusCode code_of(int status);

// The exit code that stands for an ended job: its own, 128+signal, never 0 for a job that did not
// complete.
int exit_code_of_job(int job_state, int32_t exit_code, uint32_t exit_signal);

}  // namespace xce::cli

#endif  // XCE_CLI_EXIT_CODE_H_
