#include "scheduler/policy/plan.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace xce::sched {

Plan::Plan(const HostPool& pool, int64_t now_ms) : now_ms_(now_ms) {
  for (const auto& [name, host] : pool.hosts()) {
    if (host.usable()) profiles_.emplace_back(host, now_ms);
  }
}

Plan::Plan(const std::vector<HostSlot>& hosts, int64_t now_ms) : now_ms_(now_ms) {
  profiles_.reserve(hosts.size());
  for (const HostSlot& host : hosts) profiles_.emplace_back(host, now_ms);
}

Plan::Slot Plan::find(const Need& need, uint32_t nodes, int64_t duration_ms,
                      int64_t from_ms) const {
  Slot slot;
  from_ms = std::max(from_ms, now_ms_);
  while (true) {
    // A time at which enough hosts begin to have room; those that had it earlier may lose it again
    // before, so the next turn looks from that time on.
    std::vector<int64_t> times;
    for (const HostProfile& profile : profiles_) {
      const int64_t time_ms = profile.earliest(need, from_ms, duration_ms);
      if (time_ms != kNever) times.push_back(time_ms);
    }
    if (times.size() < nodes) return slot;
    std::nth_element(times.begin(), times.begin() + (nodes - 1), times.end());
    const int64_t time_ms = times[nodes - 1];
    if (time_ms == from_ms || nodes == 1) {
      slot.starts_ms = time_ms;
      break;
    }
    from_ms = time_ms;
  }
  using Candidate = std::tuple<uint32_t, std::string_view, const HostSlot*>;
  std::vector<Candidate> candidates;
  for (const HostProfile& profile : profiles_) {
    if (profile.earliest(need, slot.starts_ms, duration_ms) != slot.starts_ms) continue;
    candidates.emplace_back(profile.free_at(slot.starts_ms).cpus, profile.host().name,
                            &profile.host());
  }
  std::partial_sort(candidates.begin(), candidates.begin() + nodes, candidates.end());
  for (uint32_t i = 0; i < nodes; ++i) slot.hosts.push_back(std::get<2>(candidates[i]));
  return slot;
}

void Plan::reserve(const Slot& slot, const Need& need, int64_t duration_ms) {
  const int64_t until_ms = later(slot.starts_ms, duration_ms);
  for (HostProfile& profile : profiles_) {
    if (std::find(slot.hosts.begin(), slot.hosts.end(), &profile.host()) != slot.hosts.end())
      profile.reserve(need, slot.starts_ms, until_ms);
  }
  ++reservations_;
}

void Plan::drain_for(const Need& need, uint32_t nodes) {
  std::vector<HostProfile*> able;
  for (HostProfile& profile : profiles_) {
    if (profile.host().total.fits(need)) able.push_back(&profile);
  }
  if (able.size() < nodes) return;  // can never run: nothing is kept for it
  std::stable_sort(able.begin(), able.end(), [](const HostProfile* a, const HostProfile* b) {
    return a->host().free.cpus > b->host().free.cpus;
  });
  Need everything;
  everything.cpus = UINT32_MAX;
  everything.exclusive = true;
  for (uint32_t i = 0; i < nodes; ++i) able[i]->reserve(everything, now_ms_, kNever);
  ++reservations_;
}

}  // namespace xce::sched
