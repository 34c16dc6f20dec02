#include "cli/exit_code.h"

#include <xce/errnox.h>
#include <xce/types.h>

#include <cerrno>
#include <cstdlib>

namespace xce::cli {

int exit_code_of(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return kOk;
    case absl::StatusCode::kInvalidArgument: return kUsage;
    case absl::StatusCode::kNotFound: return kNotFound;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated: return kPermission;
    case absl::StatusCode::kUnavailable: return kNoLeader;
    case absl::StatusCode::kUnknown: return kOutcomeUnknown;
    case absl::StatusCode::kDeadlineExceeded: return kWaitTimeout;
    case absl::StatusCode::kCancelled: return kInterrupted;
    default: return kFailure;
  }
}

int own_exit_code_of(const absl::Status& status) {
  const int code = exit_code_of(status);
  return code == kOk || code == kInterrupted ? code : kOwnFailure + code;
}

absl::StatusCode code_of(int status) {
  switch (std::abs(status)) {
    case 0: return absl::StatusCode::kOk;
    case E_XCE_REDIRECT:
    case E_XCE_NOMASTER:
    case E_XCE_STANDBY:
    case E_XCE_NOT_READY:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH: return absl::StatusCode::kUnavailable;
    case E_XCE_OUTCOME_UNKNOWN: return absl::StatusCode::kUnknown;
    case E_XCE_DUP_JOB: return absl::StatusCode::kAlreadyExists;
    case E_XCE_AUTH: return absl::StatusCode::kUnauthenticated;
    case E_XCE_PERM:
    case EPERM:
    case EACCES: return absl::StatusCode::kPermissionDenied;
    case E_XCE_NOENT: return absl::StatusCode::kNotFound;
    case E_XCE_STALE: return absl::StatusCode::kAborted;
    case E_XCE_BUSY: return absl::StatusCode::kResourceExhausted;
    case ECANCELED: return absl::StatusCode::kCancelled;
    default:
      return absl::StatusCode::kFailedPrecondition;  // also E_XCE_INVALID: understood, and refused
  }
}

int exit_code_of_job(int job_state, int32_t exit_code, uint32_t exit_signal) {
  if (exit_signal > 0 && exit_signal < 128) return 128 + static_cast<int>(exit_signal);
  if (exit_code > 0 && exit_code <= 255) return exit_code;
  if (exit_code != 0) return kFailure;
  switch (job_state) {
    case XCE_JOB_COMPLETED: return kOk;
    case XCE_JOB_KILLED:
    case XCE_JOB_TIMEOUT: return 128 + 15;  // ended before a process could tell: as SIGTERM would
    default: return kFailure;
  }
}

}  // namespace xce::cli
