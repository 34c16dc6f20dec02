#include "scheduler/pipeline/reach.h"

#include <xce/errnox.h>

#include <algorithm>

#include "libxce/base/trail.h"

namespace xce::sched {
namespace {

constexpr int kFirstDeadlineMs = 1000;
constexpr int kMaxDeadlineMs = 10'000;

}  // namespace

int reach_cluster(const ReachCalls& calls, const LogFn& log) {
  int deadline_ms = kFirstDeadlineMs;
  for (int tries = 1;; ++tries) {
    const int rc = calls.attempt(deadline_ms);
    if (rc != -E_XCE_NOT_READY) return rc;
    log(LogLevel::kWarn, unreached_line(tries, calls.trail(), true));
    deadline_ms = std::min(2 * deadline_ms, kMaxDeadlineMs);
  }
}

}  // namespace xce::sched
