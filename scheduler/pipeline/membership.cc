#include "scheduler/pipeline/membership.h"

#include <algorithm>

namespace xce::sched {

using Lock = std::lock_guard<std::mutex>;

void Membership::want_join() {
  Lock lock(mutex_);
  join_wanted_ = state_wanted_ = ++requests_;
}

void Membership::want_state() {
  Lock lock(mutex_);
  state_wanted_ = ++requests_;
}

void Membership::scheduler_is(uint64_t epoch, const std::string& name) {
  Lock lock(mutex_);
  newest_epoch_ = std::max(newest_epoch_, epoch);
  if (newest_epoch_ > epoch_) active_ = false;
  // That nobody is may be old news, or about us, who were only slow: we go on then.
  if (name.empty() && epoch >= newest_epoch_ && !active_) {
    join_wanted_ = state_wanted_ = vacancy_ = ++requests_;
  } else if (!name.empty() && epoch > epoch_ && join_wanted_ == vacancy_) {
    join_wanted_ = join_done_;  // somebody has taken the place: joining would take it from them
  }
}

bool Membership::needs_join() const {
  Lock lock(mutex_);
  return join_done_ < join_wanted_;
}

bool Membership::needs_state() const {
  Lock lock(mutex_);
  return state_done_ < state_wanted_;
}

uint64_t Membership::begin() const {
  Lock lock(mutex_);
  return requests_;
}

bool Membership::joined(uint64_t token, const JoinAnswer& answer) {
  Lock lock(mutex_);
  join_done_ = token;
  const bool was = active_ && epoch_ == answer.epoch;
  epoch_ = answer.epoch;
  active_ = answer.active && newest_epoch_ <= answer.epoch;
  newest_epoch_ = std::max(newest_epoch_, answer.epoch);
  // Events flow from this join on: a state taken before it misses what happened in between.
  state_wanted_ = ++requests_;
  return active_ != was;
}

void Membership::state_taken(uint64_t token) {
  Lock lock(mutex_);
  state_done_ = token;
}

bool Membership::overtaken() const {
  Lock lock(mutex_);
  return newest_epoch_ > epoch_;
}

std::optional<uint64_t> Membership::deciding_epoch() const {
  Lock lock(mutex_);
  if (!active_ || join_done_ < join_wanted_ || state_done_ < state_wanted_) return std::nullopt;
  return epoch_;
}

bool Membership::may_publish(uint64_t epoch) const {
  Lock lock(mutex_);
  return active_ && epoch == epoch_;
}

bool Membership::active() const {
  Lock lock(mutex_);
  return active_;
}

bool Membership::standing_by() const {
  Lock lock(mutex_);
  return !active_ && join_done_ >= join_wanted_ && state_done_ >= state_wanted_;
}

}  // namespace xce::sched
