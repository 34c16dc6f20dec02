// When each waiting job may start, for people to read. PURE.
//
// In two steps, so that the view need not be locked for long: gather_outlook copies what matters,
// estimate_starts works on the copy. The first jobs in line are planned host by host, as
// conservative backfill would; those behind them are put in their order into one pool of cpus,
// which takes little time a job however many wait (Smith, Taylor and Foster, "Using run-time
// predictions to estimate queue wait times", 1999).
//
// A job runs as long as its time limit allows; without one as long as its user's jobs usually do;
// when nothing is known, an hour.
#ifndef XCE_SCHEDULER_POLICY_ESTIMATE_H_
#define XCE_SCHEDULER_POLICY_ESTIMATE_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "scheduler/policy/view.h"

namespace xce::sched {

struct EstimateLimits {
  size_t exact_jobs = 500;       // planned host by host, at most
  size_t host_budget = 300'000;  // exact jobs times hosts, at most
  int64_t unknown_run_ms = 3'600'000;
};

struct StartEstimate {
  JobId job = 0;
  int64_t start_ms = 0;
};

// What bounds the jobs that run at once, beyond hosts: a queue, a user in a queue, or an array.
struct RunLimit {
  uint32_t most = 0;
  std::vector<int64_t> ends_ms;  // of the jobs that count against it now
};

// What the estimates are made of.
struct Outlook {
  int64_t now_ms = 0;
  std::vector<HostSlot> hosts;  // usable; a job without a known end has a likely one
  struct Class {                // jobs that are alike
    int64_t negated_queue_priority = 0;
    int64_t negated_priority = 0;
    double usage = 0;
    Need need;
    uint32_t nodes = 1;
    int64_t run_ms = 0;
    std::vector<size_t> limits;  // places in `limits`
    JobId array_id = 0;
    bool possible = true;  // hosts can run it, and its queue starts jobs
  };
  std::vector<Class> classes;
  std::vector<RunLimit> limits;
  struct Waiting {
    JobId job = 0;
    uint32_t cls = 0;
  };
  std::vector<Waiting> ready;
  struct Blocked {
    JobId job = 0;
    uint32_t cls = 0;
    JobId array_id = 0;
    JobId waits_for = 0;
    bool whole_array = false;  // waits_for stands for an array
    bool for_its_start = false;
  };
  std::vector<Blocked> blocked;            // by id
  std::map<JobId, JobId> arrays;           // of ready jobs that belong to one, when somebody waits
  std::map<JobId, int64_t> ends_ms;        // of running jobs that others wait for
  std::map<JobId, int64_t> array_ends_ms;  // the latest of its running tasks
};

Outlook gather_outlook(const View& view, int64_t now_ms, const EstimateLimits& limits);

// Jobs of which a time is known, in no order; the others can never start as things are, or wait for
// such a job.
std::vector<StartEstimate> estimate_starts(Outlook outlook, const EstimateLimits& limits);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_ESTIMATE_H_
