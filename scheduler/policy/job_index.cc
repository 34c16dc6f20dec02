#include "scheduler/policy/job_index.h"

#include <algorithm>

namespace xce::sched {
namespace {

bool less_gres(const Gres& a, const Gres& b) {
  return std::tie(a.name, a.count) < std::tie(b.name, b.count);
}

auto scalars(const ClassKey& k) {
  return std::tie(k.queue, k.negated_priority, k.user, k.nodes, k.time_limit_s, k.limited_array,
                  k.array_limit, k.need.cpus, k.need.memory_mb, k.need.exclusive);
}

}  // namespace

bool operator<(const ClassKey& a, const ClassKey& b) {
  if (scalars(a) != scalars(b)) return scalars(a) < scalars(b);
  return std::lexicographical_compare(a.need.gres.begin(), a.need.gres.end(), b.need.gres.begin(),
                                      b.need.gres.end(), less_gres);
}

void JobIndex::add(const ClassKey& key, JobId id) {
  auto [it, fresh] = classes_.try_emplace(key);
  JobClass& cls = it->second;
  cls.key = &it->first;
  const JobId old_head = cls.waiting.empty() ? 0 : *cls.waiting.begin();
  if (!cls.waiting.insert(id).second) return;
  ++size_;
  if (!fresh && old_head < id) return;
  auto& heads = heads_[line_of(key)];
  if (!fresh) heads.erase(Position{key.negated_priority, old_head});
  heads[Position{key.negated_priority, id}] = &cls;
}

void JobIndex::remove(const ClassKey& key, JobId id) {
  auto it = classes_.find(key);
  if (it == classes_.end()) return;
  JobClass& cls = it->second;
  const bool was_head = !cls.waiting.empty() && *cls.waiting.begin() == id;
  if (cls.waiting.erase(id) == 0) return;
  --size_;
  if (!was_head) return;
  auto heads = heads_.find(line_of(key));
  heads->second.erase(Position{key.negated_priority, id});
  if (!cls.waiting.empty()) {
    heads->second[Position{key.negated_priority, *cls.waiting.begin()}] = &cls;
    return;
  }
  if (heads->second.empty()) heads_.erase(heads);
  classes_.erase(it);
}

const JobClass* JobIndex::next(const Line& line, Position* from) const {
  auto heads = heads_.find(line);
  if (heads == heads_.end()) return nullptr;
  auto it = heads->second.upper_bound(*from);
  if (it == heads->second.end()) return nullptr;
  *from = it->first;
  return it->second;
}

}  // namespace xce::sched
