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
#include "scheduler/policy/fair_share.h"
#include "scheduler/policy/host_pool.h"

namespace xce::sched {

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

// Classes that are served in the order of their heads. A line is a queue, or with fair share what
// one user has in a queue.
struct Line {
  NameId queue = 0;
  NameId user = 0;  // 0 without fair share
  friend bool operator<(const Line& a, const Line& b) {
    return std::tie(a.queue, a.user) < std::tie(b.queue, b.user);
  }
};

class JobIndex {
 public:
  // Each user's jobs in a line of their own. Only while empty.
  void set_by_user() { by_user_ = true; }
  void add(const ClassKey& key, JobId id);
  void remove(const ClassKey& key, JobId id);
  // The class with the first head after `from` in this line, or null. Moves `from` to that head.
  // Since a class whose head has started has its next head after it, the same call serves after a
  // start and after a refusal.
  const JobClass* next(const Line& line, Position* from) const;
  using Heads = std::map<Position, const JobClass*>;
  // Lines that have waiting jobs.
  const std::map<Line, Heads>& lines() const { return heads_; }
  size_t size() const { return size_; }

 private:
  Line line_of(const ClassKey& key) const { return Line{key.queue, by_user_ ? key.user : 0}; }

  std::map<ClassKey, JobClass> classes_;
  std::map<Line, Heads> heads_;
  size_t size_ = 0;
  bool by_user_ = false;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_JOB_INDEX_H_
