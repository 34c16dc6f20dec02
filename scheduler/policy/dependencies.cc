#include "scheduler/policy/dependencies.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace xce::sched {

DependencyVerdict judge(const Dependency& dependency, const JobFate& fate) {
  const bool ended = fate.known && !fate.alive;
  switch (dependency.kind) {
    case DependencyKind::kAfter:
      return fate.started || ended ? DependencyVerdict::kMet
             : fate.known          ? DependencyVerdict::kWaits
                                   : DependencyVerdict::kNever;
    case DependencyKind::kAfterOk:
      if (fate.alive) return DependencyVerdict::kWaits;
      return ended && fate.state == JobState::kCompleted ? DependencyVerdict::kMet
                                                         : DependencyVerdict::kNever;
    case DependencyKind::kAfterNotOk:
      if (fate.alive) return DependencyVerdict::kWaits;
      return ended && fate.state != JobState::kCompleted ? DependencyVerdict::kMet
                                                         : DependencyVerdict::kNever;
    case DependencyKind::kAfterAny:
      if (fate.alive) return DependencyVerdict::kWaits;
      return ended ? DependencyVerdict::kMet : DependencyVerdict::kNever;
    case DependencyKind::kSingleton:
      return fate.alive ? DependencyVerdict::kWaits : DependencyVerdict::kMet;
  }
  return DependencyVerdict::kNever;
}

JobFate fate_of_array(JobId id, const ArrayFate& array) {
  JobFate fate;
  fate.known = true;
  fate.array_id = id;
  fate.alive = array.alive > 0;
  fate.started = array.unstarted == 0;
  fate.state = fate.alive ? JobState::kPending : array.worst;
  return fate;
}

std::string dependency_words(const Dependency& dependency, DependencyVerdict verdict,
                             const JobFate& fate) {
  const bool array = fate.array_id != 0 && fate.array_id == dependency.job;
  const std::string what = absl::StrCat(array ? "array " : "job ", dependency.job);
  if (verdict == DependencyVerdict::kUnasked) return absl::StrCat("waits for ", what);
  if (verdict == DependencyVerdict::kNever) {
    if (!fate.known) return absl::StrCat("dependency can never be met: ", what, " is not known");
    const char* how = fate.state == JobState::kCompleted ? "completed"
                      : fate.state == JobState::kFailed  ? "failed"
                      : fate.state == JobState::kKilled  ? "was killed"
                      : fate.state == JobState::kTimeout ? "ran into its time limit"
                                                         : "was lost with its host";
    const char* of = array && fate.state != JobState::kCompleted ? "a task of " : "";
    return absl::StrCat("dependency can never be met: ", of, what, " ", how);
  }
  switch (dependency.kind) {
    case DependencyKind::kAfter: return absl::StrCat("waits for ", what, " to start");
    case DependencyKind::kAfterOk: return absl::StrCat("waits for ", what, " to succeed");
    case DependencyKind::kAfterNotOk: return absl::StrCat("waits for ", what, " to fail");
    case DependencyKind::kAfterAny: return absl::StrCat("waits for ", what, " to end");
    case DependencyKind::kSingleton:
      return absl::StrCat("waits for job ", dependency.job, " of the same name and user to end");
  }
  return "";
}

void EndedJobs::put(JobId id, const JobFate& fate, Index modify_index) {
  Entry& entry = entries_[id];
  entry.fate = fate;
  entry.modify_index = modify_index;
  if (!entry.in_ring) {
    entry.in_ring = true;
    ring_.push_back(id);
    trim();
  }
}

const EndedJobs::Entry* EndedJobs::find(JobId id) const {
  auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

void EndedJobs::set_frozen(bool frozen) {
  frozen_ = frozen;
  trim();
}

void EndedJobs::trim() {
  while (!frozen_ && ring_.size() > kRing) {
    const JobId id = ring_.front();
    ring_.pop_front();
    auto it = entries_.find(id);
    if (it == entries_.end()) continue;
    it->second.in_ring = false;
    if (dependents_.count(id) == 0) entries_.erase(it);
  }
}

void EndedJobs::refer(JobId dependency, JobId dependent) {
  dependents_[dependency].insert(dependent);
}

void EndedJobs::unrefer(JobId dependency, JobId dependent) {
  auto it = dependents_.find(dependency);
  if (it == dependents_.end()) return;
  it->second.erase(dependent);
  if (!it->second.empty()) return;
  dependents_.erase(it);
  // Kept a little longer: its dependent may only be on its way from one place to another.
  auto entry = entries_.find(dependency);
  if (entry == entries_.end() || entry->second.in_ring) return;
  entry->second.in_ring = true;
  ring_.push_back(dependency);
}

std::vector<JobId> EndedJobs::dependents(JobId dependency) const {
  auto it = dependents_.find(dependency);
  if (it == dependents_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

}  // namespace xce::sched
