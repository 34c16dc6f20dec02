#include "scheduler/policy/backfill.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace xce::sched {
namespace {

constexpr int64_t kNever = INT64_MAX;

// A hold's end as planning sees it: an overdue job is about to be stopped.
int64_t planned_end(const Hold& hold, int64_t now_ms) {
  return hold.ends_ms == 0 ? kNever : std::max(hold.ends_ms, now_ms + 1);
}

// When the host can take the need, as its jobs end one after the other.
int64_t earliest(const HostSlot& host, const Need& need, int64_t now_ms) {
  if (host.fits_now(need)) return now_ms;
  std::vector<int64_t> ends;
  for (const auto& [job, hold] : host.holds) ends.push_back(planned_end(hold, now_ms));
  std::sort(ends.begin(), ends.end());
  for (const int64_t end : ends) {
    if (end == kNever) return kNever;
    Amounts left = host.total;
    bool idle = true;
    for (const auto& [job, hold] : host.holds) {
      if (planned_end(hold, now_ms) <= end) continue;
      left.take(hold.alloc);
      if (hold.exclusive) left.cpus = 0;
      idle = false;
    }
    if ((idle || !need.exclusive) && left.fits(need)) return end;
  }
  return kNever;
}

Amounts spare_at(const HostSlot& host, const Need& need, int64_t starts_ms, int64_t now_ms) {
  if (need.exclusive || starts_ms == kNever) return Amounts{};
  Amounts left = host.total;
  for (const auto& [job, hold] : host.holds) {
    if (planned_end(hold, now_ms) > starts_ms) left.take(hold.alloc);
  }
  left.take(need);
  return left;
}

}  // namespace

bool Reservation::make(const HostPool& pool, JobId job, const Need& need, uint32_t nodes,
                       int64_t now_ms) {
  using Candidate = std::tuple<int64_t, uint32_t, std::string>;  // earliest, cpus to be freed, name
  std::vector<Candidate> candidates;
  for (const auto& [name, host] : pool.hosts()) {
    if (!host.usable() || !host.total.fits(need)) continue;
    const uint32_t short_of = need.cpus > host.free.cpus ? need.cpus - host.free.cpus : 0;
    candidates.emplace_back(earliest(host, need, now_ms), short_of, name);
  }
  if (candidates.size() < nodes) return false;
  std::partial_sort(candidates.begin(), candidates.begin() + nodes, candidates.end());
  const int64_t starts_ms = std::get<0>(candidates[nodes - 1]);
  job_ = job;
  starts_ms_ = starts_ms == kNever ? 0 : starts_ms;
  for (uint32_t i = 0; i < nodes; ++i) {
    const HostSlot& host = pool.hosts().find(std::get<2>(candidates[i]))->second;
    spare_[host.name] = spare_at(host, need, starts_ms, now_ms);
  }
  return true;
}

bool Reservation::permits(const HostSlot& host, const Need& need, int64_t ends_ms) const {
  auto it = spare_.find(host.name);
  if (it == spare_.end()) return true;
  if (starts_ms_ != 0 && ends_ms != 0 && ends_ms <= starts_ms_) return true;
  return !need.exclusive && it->second.fits(need);
}

void Reservation::use(const HostSlot& host, const Need& need, int64_t ends_ms) {
  auto it = spare_.find(host.name);
  if (it == spare_.end()) return;
  if (starts_ms_ != 0 && ends_ms != 0 && ends_ms <= starts_ms_) return;
  it->second.take(need);
}

}  // namespace xce::sched
