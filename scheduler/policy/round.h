// One round of scheduling: which waiting jobs start now, and where. PURE; the time is passed in.
//
// Order: queue priority, then job priority, then fair share if it is on (who used less goes first),
// then id. First come, first served: a job that must wait for hosts gets a promise, and jobs
// after it start only where they do not delay it (backfill.h, plan.h). Jobs that wait for a limit
// (of queue, user, array) hold up nobody.
#ifndef XCE_SCHEDULER_POLICY_ROUND_H_
#define XCE_SCHEDULER_POLICY_ROUND_H_

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "libxce/model/command.h"
#include "scheduler/policy/backfill.h"
#include "scheduler/policy/view.h"

namespace xce::sched {

struct RoundLimits {
  size_t max_dispatches = 256;  // what one command may carry
  // The round ends when so many kinds of jobs did not fit, or hosts were looked at so often: it
  // costs some 50 ms then. Those that were not looked at have their turn when those before them
  // have started.
  size_t max_tries = 10'000;
  size_t max_looks = 400'000;
  Backfill backfill = Backfill::kEasy;
  size_t max_reservations = 100;  // of conservative backfill; jobs further behind have none
  int64_t eviction_ms = 40'000;   // until a job that is to make room is gone, at the latest
  size_t max_evictors = 64;       // waiting jobs for which room is made at once,
  size_t max_offers = 8'000;      // in as many looks at a host as cost some 30 ms
};

struct RoundResult {
  std::vector<Dispatch> dispatches;  // already started in the view
  std::vector<Eviction> evictions;   // running jobs that make room (preempt.h)
  bool more = false;                 // max_dispatches was reached: ask again at once
  size_t tries = 0;                  // kinds of jobs looked at
};

// Starts in the view whatever can start, and returns it.
RoundResult run_round(View* view, int64_t now_ms, const RoundLimits& limits = {});

// The job that any scheduler with this view would start at once, or 0. A standby that sees the same
// one for long knows that the active scheduler does not work.
JobId first_startable(const View& view, int64_t now_ms);

// Walks over all kinds of ready jobs in scheduling order.
class ClassWalk {
 public:
  explicit ClassWalk(const View& view, int64_t now_ms = 0);
  // The next class, or null at the end. Its job id() is the next in order.
  const JobClass* next();
  JobId id() const { return last_.id; }
  // Whether id() is not the first of its class, all of whom wait (see follow).
  bool is_follower() const { return last_.follower; }
  // Leaves out the rest of the queue of the last class.
  void drop_queue() { dropped_.insert(last_.cls->key->queue); }
  // The last job does not start: the one after it in its class comes in its turn, too.
  void follow();
  // The last job starts with so many cpus: with fair share this counts at once against its user.
  void charge(uint32_t cpus);

 private:
  struct Turn {
    int64_t negated_queue_priority = 0;
    int64_t negated_priority = 0;
    double usage = 0;
    JobId id = 0;
    size_t cursor = 0;
    const JobClass* cls = nullptr;
    bool follower = false;
    friend bool operator>(const Turn& a, const Turn& b) {
      return std::tie(a.negated_queue_priority, a.negated_priority, a.usage, a.id) >
             std::tie(b.negated_queue_priority, b.negated_priority, b.usage, b.id);
    }
  };
  struct Cursor {
    Line line;
    int64_t negated_queue_priority = 0;
    Position at;
  };
  void advance(size_t cursor);
  double usage_of(NameId user) const;

  const View& view_;
  const int64_t now_ms_;
  std::vector<Cursor> cursors_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::set<NameId> dropped_;
  std::map<NameId, double> charged_;  // cpu-seconds
  Turn last_;
};

// Needs for which there was no room: what asks for as much or more need not be tried. Holds as long
// as no room is made.
class Failures {
 public:
  void note(const Need& need, uint32_t nodes);
  bool covers(const Need& need, uint32_t nodes) const;

 private:
  static constexpr size_t kMost = 32;
  std::vector<std::pair<Need, uint32_t>> smallest_;
};

// What keeps a class from starting whatever hosts are free.
enum class Limit : uint8_t { kNone, kQueueStopped, kQueueFull, kUserFull, kUserCpus, kArrayFull };
Limit limit_of(const View& view, const ClassKey& key);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_ROUND_H_
