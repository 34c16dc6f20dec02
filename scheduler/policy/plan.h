// Conservative backfill: every job near the head of the line has a reservation, and a job starts
// only where it delays none of those before it (Mu'alem and Feitelson, "Utilization,
// predictability, workloads, and user runtime estimates in scheduling the IBM SP2 with
// backfilling", 2001). PURE. Made anew for each round.
#ifndef XCE_SCHEDULER_POLICY_PLAN_H_
#define XCE_SCHEDULER_POLICY_PLAN_H_

#include <cstdint>
#include <vector>

#include "scheduler/policy/host_profile.h"

namespace xce::sched {

class Plan {
 public:
  Plan(const HostPool& pool, int64_t now_ms);
  // Of usable hosts, which must outlive it.
  Plan(const std::vector<HostSlot>& hosts, int64_t now_ms);

  struct Slot {
    int64_t starts_ms = kNever;          // kNever: no time is known at which it could start
    std::vector<const HostSlot*> hosts;  // best fit first; empty when kNever
  };
  // The first time, not before from_ms, at which `nodes` hosts have room for the need for
  // duration_ms (kNever: no limit), and those hosts.
  Slot find(const Need& need, uint32_t nodes, int64_t duration_ms, int64_t from_ms = 0) const;
  // A job is there from then on. Only with what find() answered.
  void reserve(const Slot& slot, const Need& need, int64_t duration_ms);
  // For a job that must wait for an unknown time: these hosts take nothing more, so that it is not
  // starved by jobs that come later. Chosen as the ones with most cpus free.
  void drain_for(const Need& need, uint32_t nodes);
  size_t reservations() const { return reservations_; }
  const std::vector<HostProfile>& profiles() const { return profiles_; }

 private:
  const int64_t now_ms_;
  std::vector<HostProfile> profiles_;  // of the usable hosts, by name
  size_t reservations_ = 0;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_PLAN_H_
