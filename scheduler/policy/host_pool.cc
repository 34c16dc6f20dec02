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

void HostPool::unlist(const HostSlot& slot) { by_free_.erase({slot.free.cpus, slot.name}); }

void HostPool::relist(HostSlot* slot) {
  slot->free = slot->total;
  for (const auto& [job, hold] : slot->holds) {
    slot->free.take(hold.alloc);
    if (hold.exclusive) slot->free.cpus = 0;
  }
  if (slot->usable()) by_free_.insert({slot->free.cpus, slot->name});
}

HostSlot& HostPool::slot_of(const std::string& name) {
  HostSlot& slot = hosts_[name];
  if (slot.name.empty()) slot.name = name;
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

void HostPool::hold(const Alloc& alloc, JobId job, int64_t ends_ms, bool exclusive) {
  HostSlot& slot = slot_of(alloc.host);
  unlist(slot);
  slot.holds[job] = Hold{alloc, ends_ms, exclusive};
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
                                                const Permits& permits) const {
  std::vector<const HostSlot*> chosen;
  if (nodes > by_free_.size()) return chosen;
  for (auto it = by_free_.lower_bound({need.cpus, std::string_view()}); it != by_free_.end();
       ++it) {
    const HostSlot& slot = hosts_.find(it->second)->second;
    if (!slot.fits_now(need) || !permits(slot)) continue;
    chosen.push_back(&slot);
    if (chosen.size() == nodes) return chosen;
  }
  chosen.clear();
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
