#include "controller/state/jobs.h"

#include <utility>

namespace xce::state {
namespace {
const IdSet& no_ids() {
  static const IdSet* empty = new IdSet;
  return *empty;
}
}  // namespace

const IdSet& JobTable::lookup(const std::map<std::string, IdSet>& index, const std::string& key) {
  const auto it = index.find(key);
  return it == index.end() ? no_ids() : it->second;
}

void JobTable::drop(std::map<std::string, IdSet>& index, const std::string& key, JobId id) {
  const auto it = index.find(key);
  if (it == index.end()) return;
  it->second.erase(id);
  if (it->second.empty()) index.erase(it);
}

const IdSet& JobTable::of_user(const std::string& user) const {
  const auto it = users_.find(user);
  return it == users_.end() ? no_ids() : it->second.jobs;
}

const IdSet& JobTable::steps_of(JobId job) const {
  const auto it = steps_.find(job);
  return it == steps_.end() ? no_ids() : it->second;
}

const Job* JobTable::find(JobId id) const {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : &it->second;
}

Job* JobTable::find(JobId id) {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : &it->second;
}

void JobTable::count(const Job& job, JobState state, int delta) {
  User& user = users_[job.spec.user].user;
  const auto queue = queues_->find(job.spec.queue);
  if (is_waiting(state)) {
    waiting_ += delta;
    user.pending += delta;
    const auto own = waiting_of_.try_emplace({job.spec.queue, job.spec.user}, 0).first;
    own->second += delta;
    if (own->second == 0) waiting_of_.erase(own);
    if (queue != queues_->end()) queue->second.pending += delta;
  } else if (has_hosts(state)) {
    holding_ += delta;
    user.running += delta;
    if (queue != queues_->end()) queue->second.running += delta;
    if (!job.spec.step) return;
    IdSet& steps = steps_[job.spec.step->job];
    if (delta > 0)
      steps.insert(job.id);
    else
      steps.erase(job.id);
    if (steps.empty()) steps_.erase(job.spec.step->job);
  }
}

uint32_t JobTable::waiting(const std::string& queue, const std::string& user) const {
  const auto it = waiting_of_.find({queue, user});
  return it == waiting_of_.end() ? 0 : it->second;
}

Job& JobTable::add(Job job) {
  job.id = next_id_++;
  Job& kept = jobs_.emplace_hint(jobs_.end(), job.id, std::move(job))->second;
  UserRecord& user = users_[kept.spec.user];
  user.user.name = kept.spec.user;
  user.jobs.insert(kept.id);
  by_state_[static_cast<size_t>(kept.state)].insert(kept.id);
  by_queue_[kept.spec.queue].insert(kept.id);
  count(kept, kept.state, 1);
  return kept;
}

Job JobTable::remove(JobId id) {
  const auto it = jobs_.find(id);
  Job job = std::move(it->second);
  jobs_.erase(it);
  for (const Alloc& alloc : job.allocs) drop(by_host_, alloc.host, id);
  ended_.erase({job.modify_index, id});
  count(job, job.state, -1);
  by_state_[static_cast<size_t>(job.state)].erase(id);
  drop(by_queue_, job.spec.queue, id);
  users_[job.spec.user].jobs.erase(id);
  return job;
}

void JobTable::set_state(Job& job, JobState state) {
  if (job.state == state) return;
  count(job, job.state, -1);
  by_state_[static_cast<size_t>(job.state)].erase(job.id);
  if (is_ended(state) && !is_ended(job.state)) {
    ++finished_;
    ++users_[job.spec.user].user.finished;
  }
  job.state = state;
  by_state_[static_cast<size_t>(state)].insert(job.id);
  count(job, state, 1);
}

void JobTable::set_queue(Job& job, const std::string& queue) {
  if (job.spec.queue == queue) return;
  count(job, job.state, -1);
  drop(by_queue_, job.spec.queue, job.id);
  job.spec.queue = queue;
  by_queue_[queue].insert(job.id);
  count(job, job.state, 1);
}

void JobTable::set_allocs(Job& job, std::vector<Alloc> allocs) {
  for (const Alloc& alloc : job.allocs) drop(by_host_, alloc.host, job.id);
  job.allocs = std::move(allocs);
  for (const Alloc& alloc : job.allocs) by_host_[alloc.host].insert(job.id);
}

void JobTable::set_end(Job& job, int64_t end_ms) {
  if (job.end_ms != 0) ended_.erase({job.modify_index, job.id});
  job.end_ms = end_ms;
  if (end_ms != 0) ended_.insert({job.modify_index, job.id});
}

bool JobTable::restore(Job job) {
  if (job.id == 0 || job.id >= next_id_ || (!jobs_.empty() && job.id <= jobs_.rbegin()->first))
    return false;
  const JobId id = job.id;
  const Job& kept = jobs_.emplace_hint(jobs_.end(), id, std::move(job))->second;
  UserRecord& user = users_[kept.spec.user];
  user.user.name = kept.spec.user;
  user.jobs.insert(user.jobs.end(), id);
  IdSet& state = by_state_[static_cast<size_t>(kept.state)];
  state.insert(state.end(), id);
  IdSet& queue = by_queue_[kept.spec.queue];
  queue.insert(queue.end(), id);
  for (const Alloc& alloc : kept.allocs) by_host_[alloc.host].insert(id);
  if (kept.end_ms != 0) ended_.insert({kept.modify_index, id});
  count(kept, kept.state, 1);
  return true;
}

void JobTable::restore_user(const User& user) {
  User& kept = users_[user.name].user;
  kept.name = user.name;
  kept.finished = user.finished;
  kept.cpu_ms = user.cpu_ms;
}

void JobTable::restore_counts(JobId next_id, uint64_t finished) {
  next_id_ = next_id;
  finished_ = finished;
}

void JobTable::add_cpu(const Job& job, uint64_t cpu_ms) {
  users_[job.spec.user].user.cpu_ms += cpu_ms;
}

}  // namespace xce::state
