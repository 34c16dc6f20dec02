// The view's part that is about dependencies: fates of jobs and of arrays, and what is to be asked.
#include <algorithm>

#include "scheduler/policy/view.h"

namespace xce::sched {

JobFate View::fate_of(JobId id) const {
  JobFate fate;
  if (const JobRecord* record = find(id)) {
    fate.known = fate.alive = true;
    fate.state = record->state;
    fate.array_id = record->array_id;
    fate.started = record->starts > 0 || record->state == JobState::kRunning ||
                   record->state == JobState::kSuspended;
  } else if (const EndedJobs::Entry* entry = ended_.find(id)) {
    fate = entry->fate;
  }
  return fate;
}

DependencyVerdict View::dependencies(const JobRecord& job, Dependency* which, JobFate* fate) const {
  DependencyVerdict worst = DependencyVerdict::kMet;
  if (!job.extra) return worst;
  for (Dependency d : job.extra->dependencies) {
    JobFate its;
    DependencyVerdict verdict;
    if (d.kind == DependencyKind::kSingleton) {
      auto first = by_name_.lower_bound({job.name_key, 0});
      if (first == by_name_.end() || first->first != job.name_key || first->second >= job.id)
        continue;
      d.job = first->second;
      its = fate_of(d.job);
      verdict = judge(d, its);
    } else {
      its = fate_of(d.job);
      if (to_be_asked(d.job)) {
        verdict = DependencyVerdict::kUnasked;
      } else {
        if (its.array_id == d.job) its = fate_of_array(d.job, arrays_.at(d.job));
        verdict = judge(d, its);
      }
    }
    const bool worse = verdict == DependencyVerdict::kNever
                           ? worst != DependencyVerdict::kNever
                           : verdict != DependencyVerdict::kMet && worst == DependencyVerdict::kMet;
    if (!worse) continue;
    worst = verdict;
    *which = d;
    *fate = its;
  }
  return worst;
}

std::vector<JobId> View::take_unasked() {
  std::vector<JobId> ids;
  if (retaking_) return ids;
  for (const JobId id : unasked_) {
    if (to_be_asked(id)) ids.push_back(id);
  }
  unasked_.clear();
  return ids;
}

void View::set_unknown(JobId id) {
  if (!knows(id)) ended(id, JobFate{}, 0);
}

// ---- arrays

void View::count_task(const JobRecord& record, int by) {
  if (record.array_id == 0) return;
  const bool started = record.starts > 0 || record.state == JobState::kRunning ||
                       record.state == JobState::kSuspended;
  ArrayFate& array = arrays_[record.array_id];
  array.alive += by;
  if (!started) array.unstarted += by;
}

void View::task_ended(JobId array_id, JobState state) {
  if (array_id == 0) return;
  ArrayFate& array = arrays_[array_id];
  if (array.worst == JobState::kCompleted) array.worst = state;
  sweep_arrays();
}

// Forgets arrays that are over and of no interest, now and then.
void View::sweep_arrays() {
  if (arrays_.size() < sweep_at_) return;
  for (auto it = arrays_.begin(); it != arrays_.end();) {
    const bool over = it->second.alive == 0 && ended_.dependents(it->first).empty();
    it = over ? arrays_.erase(it) : std::next(it);
  }
  sweep_at_ = std::max<size_t>(2 * arrays_.size(), 4096);
}

void View::set_array_told(JobId array_id) {
  arrays_[array_id].whole = true;
  reconsider_dependents(array_id);
}

bool View::to_be_asked(JobId dependency) const {
  if (!knows(dependency)) return true;
  if (fate_of(dependency).array_id != dependency) return false;
  auto it = arrays_.find(dependency);
  return it == arrays_.end() || !it->second.whole;
}

}  // namespace xce::sched
