// Whether what a job waits for has happened. PURE.
#ifndef XCE_SCHEDULER_POLICY_DEPENDENCIES_H_
#define XCE_SCHEDULER_POLICY_DEPENDENCIES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "libxce/model/job.h"

namespace xce::sched {

// What is known of a job that others depend on.
struct JobFate {
  bool known = false;  // false: there is no such job (any more)
  bool alive = false;
  bool started = false;  // at least once
  JobState state = JobState::kPending;
  JobId array_id = 0;  // of its array; equal to its id: it stands for the whole array
};

enum class DependencyVerdict : uint8_t { kMet, kWaits, kNever, kUnasked };

// How one dependency stands, given the fate of its job.
DependencyVerdict judge(const Dependency& dependency, const JobFate& fate);
// The words for a dependency that is not met.
std::string dependency_words(const Dependency& dependency, DependencyVerdict verdict,
                             const JobFate& fate);

// What is known of an array as a whole, beyond its tasks that are alive. A dependency on the id of
// its first task means all of them: it has started when all have, ended when all have, and
// succeeded when all did.
struct ArrayFate {
  uint32_t alive = 0, unstarted = 0;      // tasks; those that never started are alive, too
  JobState worst = JobState::kCompleted;  // the end of a task that did not complete
  bool whole = false;  // all tasks were told of, also those that ended before this scheduler came
};
JobFate fate_of_array(JobId id, const ArrayFate& array);

// Ended jobs whose fate may still matter: those that a waiting job refers to, and the newest few
// thousand.
class EndedJobs {
 public:
  struct Entry {
    JobFate fate;
    Index modify_index = 0;
    bool in_ring = false;
  };
  static constexpr size_t kRing = 4096;

  void put(JobId id, const JobFate& fate, Index modify_index);
  const Entry* find(JobId id) const;
  void erase(JobId id) { entries_.erase(id); }
  // While frozen nothing is forgotten (state is being taken, and stale rows of ended jobs may still
  // come).
  void set_frozen(bool frozen);
  // Waiting jobs that refer to a job.
  void refer(JobId dependency, JobId dependent);
  void unrefer(JobId dependency, JobId dependent);
  std::vector<JobId> dependents(JobId dependency) const;

 private:
  void trim();
  std::map<JobId, Entry> entries_;
  std::deque<JobId> ring_;
  std::map<JobId, absl::btree_set<JobId>> dependents_;
  bool frozen_ = false;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_DEPENDENCIES_H_
