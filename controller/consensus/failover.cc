#include "controller/consensus/failover.h"

#include <tuple>

namespace xce::consensus {

void Failover::observe(uint64_t term, uint64_t primary) {
  if (term == term_ && primary == primary_) return;
  term_ = term;
  primary_ = primary;
  suspecting_ = false;
  others_.clear();
}

void Failover::set_suspecting(bool suspecting) {
  suspecting_ = suspecting && primary_ != 0 && primary_ != self_;
}

void Failover::on_suspect(uint64_t from, uint64_t term, uint64_t primary, LogPosition position,
                          uint64_t now_ms) {
  if (term != term_ || primary != primary_ || primary == 0 || from == primary || from == self_)
    return;
  others_[from] = {position, now_ms};
}

bool Failover::should_stand(LogPosition own, unsigned voters, uint64_t now_ms) const {
  if (!suspecting_) return false;
  unsigned suspects = 1;
  for (const auto& [id, claim] : others_) {
    if (now_ms - claim.made_ms > kSuspicionLifetimeMs) continue;
    suspects++;
    if (std::tie(claim.position.term, claim.position.index, claim.position.applied, id) >
        std::tie(own.term, own.index, own.applied, self_))
      return false;
  }
  return suspects > voters / 2;
}

}  // namespace xce::consensus
