#include "scheduler/policy/view.h"

#include <algorithm>

namespace xce::sched {
namespace {

template <typename Map, typename Key>
void add_to(Map* map, const Key& key, int64_t by) {
  auto it = map->try_emplace(key, 0).first;
  it->second += by;
  if (it->second == 0) map->erase(it);
}

bool is_singleton(const JobRecord& record) {
  if (!record.extra) return false;
  const auto& all = record.extra->dependencies;
  return std::any_of(all.begin(), all.end(),
                     [](const Dependency& d) { return d.kind == DependencyKind::kSingleton; });
}

std::vector<Gres> normal_gres(const std::vector<Gres>& gres) {
  std::map<std::string, uint32_t> sum;
  for (const Gres& g : gres) {
    if (g.count > 0) sum[g.name] += g.count;
  }
  std::vector<Gres> out;
  for (const auto& [name, count] : sum) out.push_back(Gres{name, count});
  return out;
}

}  // namespace

uint64_t stable_hash(const std::string& text) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash == 0 ? 1 : hash;
}

void View::set_fair_share(int64_t half_life_ms) {
  fair_share_ = FairShare(half_life_ms);
  if (fair_share_.on()) ready_.set_by_user();
}

double View::usage_of(const std::string& user, int64_t now_ms) const {
  auto it = name_ids_.find(user);
  return it == name_ids_.end() ? 0 : fair_share_.usage(it->second, now_ms);
}

NameId View::intern(const std::string& name) {
  auto [it, fresh] = name_ids_.try_emplace(name, static_cast<NameId>(names_.size()));
  if (fresh) names_.push_back(name);
  return it->second;
}

// ---- what is heard

void View::fill(JobRecord* record, const Job& job) {
  const JobSpec& spec = job.spec;
  record->id = job.id;
  record->array_id = job.array_id;
  record->key.queue = intern(spec.queue);
  record->key.negated_priority = -static_cast<int64_t>(spec.priority);
  record->key.user = intern(spec.user);
  record->key.nodes = std::max<uint32_t>(spec.nodes, 1);
  record->key.time_limit_s = spec.time_limit_s;
  record->key.limited_array = spec.array_limit > 0 ? job.array_id : 0;
  record->key.array_limit = record->key.limited_array != 0 ? spec.array_limit : 0;
  record->key.need.cpus = std::max<uint32_t>(spec.cpus, 1);
  record->key.need.memory_mb = spec.memory_mb;
  record->key.need.gres = normal_gres(spec.gres);
  record->key.need.exclusive = spec.exclusive;
  record->key.need.user = record->key.user;
  record->key.need.queue = record->key.queue;
  record->state = job.state;
  record->attempt = job.attempt;
  record->starts = job.starts;
  record->submit_ms = job.submit_ms;
  if (job.start_ms != 0 || !has_hosts(job.state)) record->start_ms = job.start_ms;
  record->step = spec.step != nullptr;
  record->name_key =
      stable_hash(record->step ? "step\n" + std::to_string(job.id) : spec.user + '\n' + spec.name);
  record->modify_index = job.modify_index;
  record->retry_ms = 0;
  const uint64_t hash = job.reason.empty() ? 0 : stable_hash(job.reason);
  if (hash != 0 && hash != record->reason_hash) {
    record->reason_hash = hash;
    record->reason_kind = ReasonKind::kNone;
  }
  const bool hosts = has_hosts(job.state) && !job.allocs.empty();
  record->extra.reset();
  if (hosts || !spec.dependencies.empty()) {
    record->extra = std::make_unique<JobRecord::Extra>();
    record->extra->dependencies = spec.dependencies;
    if (hosts) record->extra->allocs = job.allocs;
  }
  if (record->planned && record->attempt >= record->planned->attempt) {
    record->planned.reset();
    record->refusals = 0;
  }
}

void View::put_job(const Job& job) {
  if (is_ended(job.state)) {
    auto it = jobs_.find(job.id);
    if (it != jobs_.end() && job.modify_index < it->second.modify_index) return;
    JobFate fate;
    fate.known = true;
    fate.started = job.starts > 0;
    fate.state = job.state;
    fate.array_id = job.array_id;
    task_ended(job.array_id, job.state);
    if (it != jobs_.end() && job.end_ms > 0) uncharge(&it->second, job.end_ms);
    if (it != jobs_.end() && job.start_ms > 0 && job.end_ms > job.start_ms && !job.spec.step)
      note_run(it->second.key.user, job.end_ms - job.start_ms);
    ended(job.id, fate, job.modify_index);
    return;
  }
  if (const EndedJobs::Entry* entry = ended_.find(job.id)) {
    if (job.modify_index <= entry->modify_index) return;
    ended_.erase(job.id);     // requeued after its end, or not known before
    if (job.array_id != 0) {  // what came of the others is to be told anew
      ArrayFate& array = arrays_[job.array_id];
      array.worst = JobState::kCompleted;
      array.whole = false;
    }
  }
  auto [it, fresh] = jobs_.try_emplace(job.id);
  JobRecord& record = it->second;
  record.seen = seen_;
  if (!fresh && job.modify_index < record.modify_index) return;
  if (!fresh) {
    count_task(record, -1);
    unplace(&record);
    by_name_.erase({record.name_key, record.id});
  }
  fill(&record, job);
  by_name_.insert({record.name_key, record.id});
  place(&record);
  charge(&record);
  count_task(record, 1);
  reconsider_dependents(job.id);
  if (job.array_id != 0 && job.array_id != job.id && arrays_[job.array_id].unstarted == 0)
    reconsider_dependents(job.array_id);
}

void View::put_past(const Job& job) {
  if (!is_ended(job.state) || knows(job.id) || job.spec.step) return;
  if (job.start_ms <= 0 || job.end_ms <= job.start_ms) return;
  const NameId user = intern(job.spec.user);
  note_run(user, job.end_ms - job.start_ms);
  uint32_t cpus = 0;
  for (const Alloc& alloc : job.allocs) cpus += alloc.cpus;
  fair_share_.start(user, cpus, job.start_ms);
  fair_share_.end(user, cpus, job.end_ms);
}

void View::remove_job(JobId id, Index revision) {
  const EndedJobs::Entry* entry = ended_.find(id);
  if (entry != nullptr && entry->fate.known)
    return;  // its fate is known: that it left the books changes nothing
  ended(id, JobFate{}, revision);
}

void View::ended(JobId id, const JobFate& fate, Index modify_index) {
  ended_.put(id, fate, modify_index);
  forget(id);
  reconsider_dependents(id);
  if (fate.array_id != 0 && fate.array_id != id) {
    const ArrayFate& array = arrays_[fate.array_id];
    if (array.alive == 0 || array.unstarted == 0) reconsider_dependents(fate.array_id);
  }
}

void View::forget(JobId id) {
  auto it = jobs_.find(id);
  if (it == jobs_.end()) return;
  uncharge(&it->second, now_ms_);
  count_task(it->second, -1);
  unplace(&it->second);
  const uint64_t name_key = it->second.name_key;
  by_name_.erase({name_key, id});
  jobs_.erase(it);
  reconsider_singletons(name_key);
}

void View::put_host(const Host& host) { hosts_.put(host, seen_); }
void View::remove_host(const std::string& name) { hosts_.remove(name); }

void View::put_queue(const Queue& queue) {
  QueueRecord& record = queues_[intern(queue.name)];
  record.seen = seen_;
  if (!record.queue.name.empty() && queue.modify_index < record.queue.modify_index) return;
  record.queue = queue;
}

void View::remove_queue(const std::string& name) { queues_.erase(intern(name)); }

void View::begin_retake() {
  ++seen_;
  retaking_ = true;
  ended_.set_frozen(true);
}

void View::end_retake() {
  std::vector<JobId> gone;
  for (const auto& [id, record] : jobs_) {
    if (record.seen != seen_) gone.push_back(id);
  }
  for (const JobId id : gone) {
    const JobId array_id = jobs_.at(id).array_id;
    forget(id);
    reconsider_dependents(id);  // what became of it is asked for
    if (array_id == 0) continue;
    arrays_[array_id].whole = false;
    reconsider_dependents(array_id);
  }
  hosts_.remove_unseen(seen_);
  for (auto it = queues_.begin(); it != queues_.end();) {
    it = it->second.seen == seen_ ? std::next(it) : queues_.erase(it);
  }
  for (auto it = reservations_.begin(); it != reservations_.end();) {
    it = it->second->seen == seen_ ? std::next(it) : reservations_.erase(it);
  }
  reservations_gone_.clear();
  reservations_changed();
  retaking_ = false;
  ended_.set_frozen(false);
}

// ---- what is decided here

uint32_t View::start_locally(JobId id, std::vector<Alloc> allocs, int64_t now_ms) {
  JobRecord& record = jobs_.at(id);
  unplace(&record);
  record.planned = std::make_unique<Dispatch>();
  record.planned->job = id;
  record.planned->attempt = record.attempt + 1;
  record.planned->allocs = std::move(allocs);
  record.start_ms = now_ms;
  place(&record);
  charge(&record);
  return record.planned->attempt;
}

void View::roll_back(JobId id, uint32_t attempt, int64_t retry_ms) {
  auto it = jobs_.find(id);
  if (it == jobs_.end() || !it->second.planned || it->second.planned->attempt != attempt) return;
  JobRecord& record = it->second;
  unplace(&record);
  uncharge(&record, record.charged_from_ms);  // it never ran
  record.planned.reset();
  record.start_ms = 0;
  record.retry_ms = retry_ms;
  if (retry_ms != 0) ++record.refusals;
  place(&record);
}

void View::evict_locally(JobId id, int64_t ends_ms) {
  auto it = jobs_.find(id);
  if (it == jobs_.end() || it->second.place != Place::kHolding) return;
  JobRecord& record = it->second;
  unplace(&record);
  record.evicted = record.attempt;
  record.evicted_ends_ms = ends_ms;
  place(&record);
}

void View::undo_eviction(JobId id, uint32_t attempt) {
  auto it = jobs_.find(id);
  if (it == jobs_.end() || it->second.evicted != attempt) return;
  unplace(&it->second);
  it->second.evicted = 0;
  place(&it->second);
}

void View::release_parked(int64_t now_ms) {
  while (!parked_.empty() && parked_.begin()->first <= now_ms) {
    JobRecord& record = jobs_.at(parked_.begin()->second);
    unplace(&record);
    record.retry_ms = 0;
    place(&record);
  }
}

void View::set_reason(JobId id, ReasonKind kind, uint64_t hash, int64_t now_ms) {
  auto it = jobs_.find(id);
  if (it == jobs_.end()) return;
  it->second.reason_kind = kind;
  it->second.reason_hash = hash;
  it->second.reason_ms = now_ms;
  unexplained_.erase(id);
}

// ---- where records are kept

void View::count(const JobRecord& record, int by) {
  add_to(&running_.of_queue, record.key.queue, by);
  add_to(&running_.of_user, std::make_pair(record.key.queue, record.key.user), by);
  if (record.key.limited_array != 0) add_to(&running_.of_array, record.key.limited_array, by);
  int64_t cpus = 0;
  if (const std::vector<Alloc>* allocs = allocs_of(record))
    for (const Alloc& alloc : *allocs) cpus += alloc.cpus;
  if (cpus > 0)
    add_to(&running_.cpus_of_user, std::make_pair(record.key.queue, record.key.user), by * cpus);
}

const std::vector<Alloc>* View::allocs_of(const JobRecord& record) {
  if (record.planned) return &record.planned->allocs;
  return record.extra ? &record.extra->allocs : nullptr;
}

// Fair share counts the job from its start, if it holds hosts, and no longer if it does not. Called
// whenever the record changed; does nothing when that changed nothing.
void View::charge(JobRecord* record) {
  if (!fair_share_.on() || record->step) return;
  if (record->place != Place::kHolding) return uncharge(record, now_ms_);
  if (record->charged_cpus != 0 || record->start_ms == 0) return;
  const std::vector<Alloc>* allocs = allocs_of(*record);
  if (allocs == nullptr) return;
  for (const Alloc& alloc : *allocs) record->charged_cpus += alloc.cpus;
  record->charged_from_ms = record->start_ms;
  fair_share_.start(record->key.user, record->charged_cpus, record->charged_from_ms);
}

void View::uncharge(JobRecord* record, int64_t until_ms) {
  if (record->charged_cpus == 0) return;
  fair_share_.end(record->key.user, record->charged_cpus,
                  std::max(until_ms, record->charged_from_ms));
  record->charged_cpus = 0;
}

void View::hold(const JobRecord& record, const std::vector<Alloc>& allocs) {
  const int64_t limit_s = time_limit_s(record.key);
  int64_t ends_ms = limit_s > 0 && record.start_ms > 0 ? record.start_ms + limit_s * 1000 : 0;
  if (is_evicted(record)) ends_ms = record.evicted_ends_ms;
  for (const Alloc& alloc : allocs)
    hosts_.hold(record.id,
                Hold{alloc, ends_ms, record.key.need.exclusive, record.key.user, record.key.queue});
}

void View::release(const JobRecord& record, const std::vector<Alloc>& allocs) {
  for (const Alloc& alloc : allocs) hosts_.release(alloc.host, record.id);
}

void View::place(JobRecord* record) {
  const bool waiting = is_waiting(record->state) && !record->planned;
  if (!waiting) {
    record->place = Place::kHolding;
    if (record->step) return;
    if (record->planned)
      hold(*record, record->planned->allocs);
    else if (record->extra)
      hold(*record, record->extra->allocs);
    count(*record, 1);
    return;
  }
  if (record->extra) {
    for (const Dependency& d : record->extra->dependencies) {
      if (d.kind == DependencyKind::kSingleton) continue;
      ended_.refer(d.job, record->id);
      if (to_be_asked(d.job)) unasked_.insert(d.job);
    }
    if (is_singleton(*record)) add_to(&singletons_, record->name_key, 1);
  }
  Dependency which;
  JobFate fate;
  if (record->state == JobState::kHeld) {
    record->place = Place::kHeld;
  } else if (dependencies(*record, &which, &fate) != DependencyVerdict::kMet) {
    record->place = Place::kBlocked;
    ++blocked_;
  } else if (record->retry_ms != 0) {
    record->place = Place::kParked;
    parked_.insert({record->retry_ms, record->id});
  } else {
    record->place = Place::kReady;
    ready_.add(record->key, record->id);
    if (record->reason_hash == 0) unexplained_.insert(record->id);
    return;
  }
  ++not_ready_;
  stale_reasons_.insert(record->id);
}

void View::unplace(JobRecord* record) {
  switch (record->place) {
    case Place::kNowhere: return;
    case Place::kHolding:
      if (record->step) {
        record->place = Place::kNowhere;
        return;
      }
      if (record->planned)
        release(*record, record->planned->allocs);
      else if (record->extra)
        release(*record, record->extra->allocs);
      count(*record, -1);
      record->place = Place::kNowhere;
      return;
    case Place::kReady:
      ready_.remove(record->key, record->id);
      unexplained_.erase(record->id);
      break;
    case Place::kParked: parked_.erase({record->retry_ms, record->id}); [[fallthrough]];
    case Place::kBlocked:
      if (record->place == Place::kBlocked) --blocked_;
      [[fallthrough]];
    case Place::kHeld:
      --not_ready_;
      stale_reasons_.erase(record->id);
      break;
  }
  record->place = Place::kNowhere;
  if (!record->extra) return;
  for (const Dependency& d : record->extra->dependencies) {
    if (d.kind != DependencyKind::kSingleton) ended_.unrefer(d.job, record->id);
  }
  if (is_singleton(*record)) add_to(&singletons_, record->name_key, -1);
}

void View::reconsider(JobId id) {
  auto it = jobs_.find(id);
  if (it == jobs_.end() || it->second.place == Place::kHolding) return;
  unplace(&it->second);
  place(&it->second);
}

void View::reconsider_dependents(JobId id) {
  for (const JobId dependent : ended_.dependents(id)) reconsider(dependent);
}

void View::reconsider_singletons(uint64_t name_key) {
  if (singletons_.count(name_key) == 0) return;
  // Only the first can have become ready; the next few wait for another one now.
  std::vector<JobId> first;
  for (auto it = by_name_.lower_bound({name_key, 0}); it != by_name_.end() && first.size() < 16;
       ++it) {
    if (it->first != name_key) break;
    first.push_back(it->second);
  }
  for (const JobId id : first) reconsider(id);
}

// ---- reading

const JobRecord* View::find(JobId id) const {
  auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : &it->second;
}

bool View::knows(JobId id) const { return jobs_.count(id) > 0 || ended_.find(id) != nullptr; }

const Queue* View::queue(NameId id) const {
  auto it = queues_.find(id);
  return it == queues_.end() ? nullptr : &it->second.queue;
}

void View::note_run(NameId user, int64_t run_ms) {
  constexpr double kWeight = 0.1;  // of the newest
  const auto ms = static_cast<double>(run_ms);
  auto [it, fresh] = usual_run_ms_.try_emplace(user, ms);
  if (!fresh) it->second += kWeight * (ms - it->second);
  usual_run_of_all_ms_ += (usual_run_of_all_ms_ == 0 ? 1 : kWeight) * (ms - usual_run_of_all_ms_);
}

int64_t View::usual_run_ms(NameId user) const {
  auto it = usual_run_ms_.find(user);
  return static_cast<int64_t>(it == usual_run_ms_.end() ? usual_run_of_all_ms_ : it->second);
}

void View::each_blocked(const std::function<void(const JobRecord&)>& each) const {
  if (blocked_ == 0) return;
  for (const auto& [id, record] : jobs_)
    if (record.place == Place::kBlocked) each(record);
}

int64_t View::duration_ms(const ClassKey& key) const {
  const int64_t limit_s = time_limit_s(key);
  return limit_s > 0 ? limit_s * 1000 : kNever;
}

uint32_t View::time_limit_s(const ClassKey& key) const {
  if (key.time_limit_s != 0) return key.time_limit_s;
  const Queue* record = queue(key.queue);
  return record == nullptr             ? 0
         : record->default_time_s != 0 ? record->default_time_s
                                       : record->max_time_s;
}

}  // namespace xce::sched
