// Names and enumerations that all of XCE shares. PURE. The numbers are those of
// libxce/schema/client.capnp.
#ifndef XCE_LIBXCE_MODEL_TYPES_H_
#define XCE_LIBXCE_MODEL_TYPES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace xce {

using JobId = uint64_t;
using Index = uint64_t;  // of the replicated log; 0: before everything

struct ClientId {  // random, 128 bits
  uint64_t hi = 0;
  uint64_t lo = 0;
  friend bool operator<(const ClientId& a, const ClientId& b) {
    return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
  }
  friend bool operator==(const ClientId& a, const ClientId& b) {
    return a.hi == b.hi && a.lo == b.lo;
  }
  friend bool operator!=(const ClientId& a, const ClientId& b) { return !(a == b); }
};

enum class Role : uint8_t { kNone, kUser, kWorker, kScheduler, kApiserver, kController };

enum class JobState : uint8_t {
  kPending,
  kHeld,
  kStarting,
  kRunning,
  kSuspended,  // alive
  kCompleted,
  kFailed,
  kKilled,
  kTimeout,
  kLost,  // ended
};
inline constexpr int kJobStates = 10;
constexpr bool is_ended(JobState s) { return s >= JobState::kCompleted; }
constexpr bool is_waiting(JobState s) { return s == JobState::kPending || s == JobState::kHeld; }
constexpr bool has_hosts(JobState s) {
  return !is_ended(s) && !is_waiting(s);
}  // holds an allocation

enum class Desired : uint8_t { kRun, kSuspend, kKill };
enum class HostState : uint8_t { kUp, kDrained, kUnreachable, kGone };
enum class JobAction : uint8_t { kKill, kSuspend, kResume, kHold, kRelease, kRequeue, kModify };
enum class QueueAction : uint8_t { kCreate, kUpdate, kRemove, kOpen, kClose, kStart, kStop };
enum class HostAction : uint8_t { kDrain, kResume, kRemove, kRemoveLost, kGiveUp };
enum class ReservationAction : uint8_t { kCreate, kRemove };
enum class NotifyKind : uint8_t { kStart, kFinish, kFail, kStop, kChkpt, kResumed };
enum class DependencyKind : uint8_t { kAfter, kAfterOk, kAfterNotOk, kAfterAny, kSingleton };
enum class Stream : uint8_t { kStdout, kStderr };

// "PENDING", "RUNNING", ...: the words that people see and type.
const char* name_of(JobState state);
const char* name_of(HostState state);
const char* name_of(Role role);
const char* name_of(DependencyKind kind);
// The state of that name in any case, or false.
bool parse_job_state(std::string_view word, JobState* state);

}  // namespace xce

#endif  // XCE_LIBXCE_MODEL_TYPES_H_
