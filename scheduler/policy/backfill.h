// EASY backfill: the first job that must wait for hosts gets a promise, a time when it starts at
// the latest; others may start only where they cannot delay it (Lifka, "The ANL/IBM SP scheduling
// system", 1995). PURE.
#ifndef XCE_SCHEDULER_POLICY_BACKFILL_H_
#define XCE_SCHEDULER_POLICY_BACKFILL_H_

#include <cstdint>
#include <map>
#include <string>

#include "scheduler/policy/host_pool.h"

namespace xce::sched {

// What may happen while the first job in line waits for hosts.
enum class Backfill : uint8_t {
  kNone,          // nothing: strictly first come, first served
  kEasy,          // jobs start that do not delay the first in line
  kConservative,  // jobs start that delay none of those before them (plan.h)
};

// The hosts set aside for the first job in line, and until when others may use them.
class Promise {
 public:
  // Makes one for `nodes` times the need, for duration_ms (kNever: for ever). When running jobs
  // without a time limit stand in the way, the time is unknown and nobody else may start on those
  // hosts: they drain, so that a large job is never starved. False: these hosts can never do.
  bool make(const HostPool& pool, JobId job, const Need& need, uint32_t nodes, int64_t now_ms,
            int64_t duration_ms);
  bool made() const { return job_ != 0; }
  JobId job() const { return job_; }
  // When the job can start at the latest; 0: unknown.
  int64_t starts_ms() const { return starts_ms_; }
  // Whether a job may start on this host now, ending at ends_ms (0: unknown).
  bool permits(const HostSlot& host, const Need& need, int64_t ends_ms) const;
  // The permitted job does start there.
  void use(const HostSlot& host, const Need& need, int64_t ends_ms);

 private:
  JobId job_ = 0;
  int64_t starts_ms_ = 0;
  std::map<std::string, Amounts, std::less<>>
      spare_;  // a host set aside -> what it has beyond the job's need at its start
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_BACKFILL_H_
