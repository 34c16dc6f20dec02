// The clocks that the worker reads. Thread safe.
#ifndef XCE_WORKER_AGENT_CLOCK_H_
#define XCE_WORKER_AGENT_CLOCK_H_

#include <time.h>

#include <cstdint>

namespace xce::worker {

inline int64_t clock_ms(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
}
// For intervals and deadlines.
inline int64_t monotonic_ms() { return clock_ms(CLOCK_MONOTONIC); }
// Milliseconds since the epoch, for reports.
inline int64_t wall_ms() { return clock_ms(CLOCK_REALTIME); }

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_CLOCK_H_
