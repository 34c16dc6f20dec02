// One round of scheduling: which waiting jobs start now, and where. PURE; the time is passed in.
//
// Order: queue priority, then job priority, then id. First come, first served: a job that must wait
// for hosts gets a reservation, and jobs after it start only where they do not delay it
// (backfill.h). Jobs that wait for a limit (of queue, user, array) hold up nobody.
#ifndef XCE_SCHEDULER_POLICY_ROUND_H_
#define XCE_SCHEDULER_POLICY_ROUND_H_

#include <cstdint>
#include <map>
#include <vector>

#include "libxce/model/command.h"
#include "scheduler/policy/backfill.h"
#include "scheduler/policy/view.h"

namespace xce::sched {

struct RoundLimits {
  size_t max_dispatches = 256;  // what one command may carry
  size_t max_tries = 1000;      // kinds of jobs that may fail to fit before the round ends
};

struct RoundResult {
  std::vector<Dispatch> dispatches;  // already started in the view
  bool more = false;                 // max_dispatches was reached: ask again at once
  size_t tries = 0;                  // kinds of jobs looked at
};

// Starts in the view whatever can start, and returns it.
RoundResult run_round(View* view, int64_t now_ms, const RoundLimits& limits = {});

// The job that any scheduler with this view would start at once, or 0. A standby that sees the same
// one for long knows that the active scheduler does not work.
JobId first_startable(const View& view);

// Walks over all kinds of ready jobs in scheduling order.
class ClassWalk {
 public:
  explicit ClassWalk(const View& view);
  // The next class, or null at the end. Its head is the next job in order.
  const JobClass* next();
  // Leaves out the rest of the queue of the last class.
  void drop_queue();

 private:
  struct Cursor {
    NameId queue = 0;
    int64_t negated_priority = 0;  // of the queue
    Position at;
    bool done = false;
  };
  const View& view_;
  std::vector<Cursor> cursors_;  // by queue priority, then name
  size_t last_ = 0;
};

// What keeps a class from starting whatever hosts are free.
enum class Limit : uint8_t { kNone, kQueueStopped, kQueueFull, kUserFull, kArrayFull };
Limit limit_of(const View& view, const ClassKey& key);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_ROUND_H_
