// Jobs that could start now, in the order in which they should. PURE.
//
// Jobs that are alike (same queue, user, priority and needs) form a class: when one of them cannot
// start in a round, none can. A round therefore looks at the head of each class only, so that it
// costs in proportion to what starts and to how many kinds of jobs wait, not to how many jobs do.
#ifndef XCE_SCHEDULER_POLICY_JOB_INDEX_H_
#define XCE_SCHEDULER_POLICY_JOB_INDEX_H_

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "absl/container/btree_set.h"
#include "libxce/model/job.h"
#include "scheduler/policy/host_pool.h"

namespace xce::sched {

using NameId = uint32_t;  // of an interned name

struct ClassKey {
  NameId queue = 0;
  int64_t negated_priority = 0;  // of the jobs, not of the queue
  NameId user = 0;
  uint32_t nodes = 1;
  uint32_t time_limit_s = 0;  // 0: the queue's default
  JobId limited_array = 0;    // the array, if it has a limit of its own
  uint32_t array_limit = 0;
  Need need;
};
bool operator<(const ClassKey& a, const ClassKey& b);

struct JobClass {
  const ClassKey* key = nullptr;
  absl::btree_set<JobId> waiting;
};

// Where a walk over a queue's classes stands.
struct Position {
  int64_t negated_priority = INT64_MIN;
  JobId id = 0;
  friend bool operator<(const Position& a, const Position& b) {
    return std::tie(a.negated_priority, a.id) < std::tie(b.negated_priority, b.id);
  }
};

class JobIndex {
 public:
  void add(const ClassKey& key, JobId id);
  void remove(const ClassKey& key, JobId id);
  // The class with the first head after `from` in this queue, or null. Moves `from` to that head.
  // Since a class whose head has started has its next head after it, the same call serves after a
  // start and after a refusal.
  const JobClass* next(NameId queue, Position* from) const;
  // Queues that have waiting jobs.
  const std::map<NameId, size_t>& waiting() const { return waiting_; }
  size_t size() const { return size_; }

 private:
  std::map<ClassKey, JobClass> classes_;
  std::map<NameId, std::map<Position, const JobClass*>> heads_;
  std::map<NameId, size_t> waiting_;
  size_t size_ = 0;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_JOB_INDEX_H_
