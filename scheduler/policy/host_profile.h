// What a host will have free over time: as its jobs end, and as jobs that are planned take their
// share. PURE.
#ifndef XCE_SCHEDULER_POLICY_HOST_PROFILE_H_
#define XCE_SCHEDULER_POLICY_HOST_PROFILE_H_

#include <cstdint>
#include <vector>

#include "scheduler/policy/host_pool.h"

namespace xce::sched {

inline constexpr int64_t kNever = INT64_MAX;

// from_ms + duration_ms, where either may be kNever.
inline int64_t later(int64_t from_ms, int64_t duration_ms) {
  return duration_ms >= kNever - from_ms ? kNever : from_ms + duration_ms;
}

class HostProfile {
 public:
  // From now on, by the holds that the host has. One that is overdue is about to be stopped; one
  // without a time limit never ends.
  HostProfile(const HostSlot& host, int64_t now_ms);

  const HostSlot& host() const { return *host_; }
  // The first time, not before from_ms, at which the need fits for duration_ms (kNever: for ever)
  // and no reservation is in its way; kNever when there is none.
  int64_t earliest(const Need& need, int64_t from_ms, int64_t duration_ms) const;
  // What is free at that time.
  const Amounts& free_at(int64_t time_ms) const { return steps_[index_at(time_ms)].free; }
  // Tells of each change of what is free: the time, and the free cpus from then on.
  template <typename Each>
  void each_step(Each each) const {
    for (const Step& step : steps_) each(step.from_ms, step.free.cpus);
  }
  // The need is taken from from_ms until until_ms (kNever: for ever).
  void reserve(const Need& need, int64_t from_ms, int64_t until_ms);

 private:
  struct Step {  // until the next one begins
    int64_t from_ms = 0;
    Amounts free;
    bool idle = true;
  };
  bool fits(const Step& step, const Need& need) const;
  int64_t earliest_free(const Need& need, int64_t from_ms, int64_t duration_ms) const;
  size_t index_at(int64_t time_ms) const;
  size_t split(int64_t time_ms);

  const HostSlot* host_;
  std::vector<Step> steps_;  // by time, never empty
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_HOST_PROFILE_H_
