#include "scheduler/policy/host_pool.h"

#include <algorithm>

namespace xce::sched {
namespace {

template <typename T>
void subtract(T* from, T amount) {
  *from = *from > amount ? *from - amount : 0;
}

void take_gres(std::vector<Gres>* from, const std::vector<Gres>& amounts) {
  for (const Gres& amount : amounts) {
    for (Gres& have : *from) {
      if (have.name == amount.name) subtract(&have.count, amount.count);
    }
  }
}

}  // namespace

uint32_t Amounts::gres_count(std::string_view name) const {
  uint32_t count = 0;
  for (const Gres& have : gres) {
    if (have.name == name) count += have.count;
  }
  return count;
}

bool Amounts::fits(const Need& need) const {
  if (need.cpus > cpus || need.memory_mb > memory_mb) return false;
  return std::all_of(need.gres.begin(), need.gres.end(),
                     [this](const Gres& g) { return g.count <= gres_count(g.name); });
}

void Amounts::take(const Alloc& alloc) {
  subtract(&cpus, alloc.cpus);
  subtract(&memory_mb, alloc.memory_mb);
  take_gres(&gres, alloc.gres);
}

void Amounts::take(const Need& need) {
  subtract(&cpus, need.cpus);
  subtract(&memory_mb, need.memory_mb);
  take_gres(&gres, need.gres);
}

bool HostSlot::fits_now(const Need& need) const {
  if (need.exclusive) return idle() && total.fits(need);
  return free.fits(need);
}

const Kept* HostSlot::keeps_off(const Need& need, int64_t from_ms, int64_t until_ms) const {
  for (const auto& each : kept) {
    if (!each->overlaps(from_ms, until_ms) || each->is_for(need.user, need.queue)) continue;
    if (each->cpus == 0 || need.exclusive) return each.get();
    uint64_t cpus = uint64_t{each->cpus} + need.cpus;
    for (const auto& [job, hold] : holds) {
      const bool gone = hold.ends_ms != 0 && hold.ends_ms <= from_ms;
      if (!gone && !each->is_for(hold.user, hold.queue)) cpus += hold.alloc.cpus;
    }
    if (cpus > total.cpus) return each.get();
  }
  return nullptr;
}

void HostPool::set_kept(const std::vector<std::shared_ptr<const Kept>>& all) {
  kept_.clear();
  for (const auto& each : all)
    for (const std::string& host : each->hosts) kept_[host].push_back(each);
  for (auto& [name, slot] : hosts_) {
    const auto of_host = kept_.find(name);
    slot.kept = of_host == kept_.end() ? decltype(slot.kept){} : of_host->second;
  }
}

void HostPool::unlist(const HostSlot& slot) { by_free_.erase({slot.free.cpus, slot.name, &slot}); }

void HostPool::relist(HostSlot* slot) {
  slot->free = slot->total;
  for (const auto& [job, hold] : slot->holds) {
    slot->free.take(hold.alloc);
    if (hold.exclusive) slot->free.cpus = 0;
  }
  if (slot->usable()) by_free_.insert({slot->free.cpus, slot->name, slot});
}

HostSlot& HostPool::slot_of(const std::string& name) {
  HostSlot& slot = hosts_[name];
  if (slot.name.empty()) {
    slot.name = name;
    const auto kept = kept_.find(name);
    if (kept != kept_.end()) slot.kept = kept->second;
  }
  return slot;
}

void HostPool::put(const Host& host, uint32_t seen) {
  HostSlot& slot = slot_of(host.attrs.name);
  slot.seen = seen;
  if (slot.joined && host.modify_index < slot.modify_index) return;
  unlist(slot);
  slot.joined = host.state != HostState::kGone;
  slot.state = host.state;
  slot.drained = host.drained;
  slot.drain_reason = host.drain_reason;
  slot.modify_index = host.modify_index;
  slot.total.cpus = host.attrs.cpus;
  slot.total.memory_mb = host.attrs.memory_mb;
  slot.total.gres = host.attrs.gres;
  relist(&slot);
}

void HostPool::remove(const std::string& name) {
  auto it = hosts_.find(name);
  if (it == hosts_.end()) return;
  unlist(it->second);
  if (it->second.holds.empty()) {
    hosts_.erase(it);
  } else {
    it->second.joined = false;
    it->second.modify_index = 0;
  }
}

void HostPool::remove_unseen(uint32_t seen) {
  std::vector<std::string> gone;
  for (const auto& [name, slot] : hosts_) {
    if (slot.joined && slot.seen != seen) gone.push_back(name);
  }
  for (const std::string& name : gone) remove(name);
}

void HostPool::hold(JobId job, Hold hold) {
  HostSlot& slot = slot_of(hold.alloc.host);
  unlist(slot);
  slot.holds[job] = std::move(hold);
  relist(&slot);
}

void HostPool::release(const std::string& host, JobId job) {
  auto it = hosts_.find(host);
  if (it == hosts_.end()) return;
  unlist(it->second);
  it->second.holds.erase(job);
  if (it->second.holds.empty() && !it->second.joined) {
    hosts_.erase(it);
    return;
  }
  relist(&it->second);
}

std::vector<const HostSlot*> HostPool::best_fit(const Need& need, uint32_t nodes,
                                                const Permits& permits, size_t* looks) const {
  std::vector<const HostSlot*> chosen;
  if (nodes > by_free_.size()) return chosen;
  size_t looked = 0;
  for (auto it = by_free_.lower_bound({need.cpus, {}, nullptr}); it != by_free_.end(); ++it) {
    ++looked;
    const HostSlot& slot = *it->slot;
    if (!slot.fits_now(need) || !permits(slot)) continue;
    chosen.push_back(&slot);
    if (chosen.size() == nodes) break;
  }
  if (looks != nullptr) *looks += looked;
  if (chosen.size() < nodes) chosen.clear();
  return chosen;
}

Alloc HostPool::alloc_of(const Need& need, const HostSlot& host) {
  Alloc alloc;
  alloc.host = host.name;
  alloc.cpus = need.exclusive ? host.total.cpus : need.cpus;
  alloc.memory_mb = need.memory_mb;
  alloc.gres = need.gres;
  return alloc;
}

}  // namespace xce::sched
