#include "scheduler/policy/backfill.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "scheduler/policy/host_profile.h"

namespace xce::sched {
namespace {

// What the host has beyond the need at that time.
Amounts spare_at(const HostProfile& profile, const Need& need, int64_t starts_ms) {
  if (need.exclusive || starts_ms == kNever) return Amounts{};
  Amounts left = profile.free_at(starts_ms);
  left.take(need);
  return left;
}

}  // namespace

bool Promise::make(const HostPool& pool, JobId job, const Need& need, uint32_t nodes,
                   int64_t now_ms, int64_t duration_ms) {
  using Candidate = std::tuple<int64_t, uint32_t, size_t>;  // earliest, cpus to be freed, place
  std::vector<Candidate> candidates;
  std::vector<HostProfile> profiles;
  for (const auto& [name, host] : pool.hosts()) {
    if (!host.usable() || !host.total.fits(need)) continue;
    const uint32_t short_of = need.cpus > host.free.cpus ? need.cpus - host.free.cpus : 0;
    profiles.emplace_back(host, now_ms);
    candidates.emplace_back(profiles.back().earliest(need, now_ms, duration_ms), short_of,
                            profiles.size() - 1);
  }
  if (candidates.size() < nodes) return false;
  std::partial_sort(candidates.begin(), candidates.begin() + nodes, candidates.end());
  const int64_t starts_ms = std::get<0>(candidates[nodes - 1]);
  job_ = job;
  starts_ms_ = starts_ms == kNever ? 0 : starts_ms;
  for (uint32_t i = 0; i < nodes; ++i) {
    const HostProfile& profile = profiles[std::get<2>(candidates[i])];
    spare_[profile.host().name] = spare_at(profile, need, starts_ms);
  }
  return true;
}

bool Promise::permits(const HostSlot& host, const Need& need, int64_t ends_ms) const {
  auto it = spare_.find(host.name);
  if (it == spare_.end()) return true;
  if (starts_ms_ != 0 && ends_ms != 0 && ends_ms <= starts_ms_) return true;
  return !need.exclusive && it->second.fits(need);
}

void Promise::use(const HostSlot& host, const Need& need, int64_t ends_ms) {
  auto it = spare_.find(host.name);
  if (it == spare_.end()) return;
  if (starts_ms_ != 0 && ends_ms != 0 && ends_ms <= starts_ms_) return;
  it->second.take(need);
}

}  // namespace xce::sched
