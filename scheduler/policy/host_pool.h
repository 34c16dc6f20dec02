// What each host has, what jobs hold of it, and which hosts fit a need best. PURE.
//
// Hosts that may be given work lie in a set ordered by free cpus, so that best fit is the first
// host from the need upwards and "nothing is free" is known at once. Deterministic: ties are broken
// by host name.
#ifndef XCE_SCHEDULER_POLICY_HOST_POOL_H_
#define XCE_SCHEDULER_POLICY_HOST_POOL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "libxce/model/host.h"
#include "libxce/model/job.h"
#include "scheduler/policy/kept.h"

namespace xce::sched {

// What a job needs of each of its hosts.
struct Need {
  uint32_t cpus = 1;
  uint64_t memory_mb = 0;
  std::vector<Gres> gres;  // sorted by name, counts > 0
  bool exclusive = false;
  NameId user = 0, queue = 0;  // whose it is: reservations go by that
};

// Amounts of a host, total or free or set aside.
struct Amounts {
  uint32_t cpus = 0;
  uint64_t memory_mb = 0;
  std::vector<Gres> gres;

  uint32_t gres_count(std::string_view name) const;
  // Whether need's amounts (not its exclusiveness) fit in.
  bool fits(const Need& need) const;
  // Subtracts, stopping at zero.
  void take(const Alloc& alloc);
  void take(const Need& need);
};

// A job's hold on a host, with the time when it ends at the latest (0: unknown).
struct Hold {
  Alloc alloc;
  int64_t ends_ms = 0;
  bool exclusive = false;
  NameId user = 0, queue = 0;
};

struct HostSlot {
  std::string name;
  HostState state = HostState::kUp;
  bool drained = false;
  std::string drain_reason;
  bool joined = false;  // false: only known from jobs that hold it
  Amounts total;
  Amounts free;
  std::map<JobId, Hold> holds;
  Index modify_index = 0;
  uint32_t seen = 0;                              // retake in which it was last seen
  std::vector<std::shared_ptr<const Kept>> kept;  // for some; mostly none

  // Whether new jobs may be placed here.
  bool usable() const { return joined && state == HostState::kUp && !drained; }
  bool idle() const { return holds.empty(); }
  // Whether the need fits what is free now, exclusiveness included.
  bool fits_now(const Need& need) const;
  // What keeps this job from running here from from_ms until until_ms (INT64_MAX: for ever) because
  // it is for others, or null.
  const Kept* keeps_off(const Need& need, int64_t from_ms, int64_t until_ms) const;
};

class HostPool {
 public:
  using Permits = std::function<bool(const HostSlot&)>;

  // Takes the host's record; its holds stay.
  void put(const Host& host, uint32_t seen);
  // Forgets the record. Holds of jobs stay until the jobs end.
  void remove(const std::string& name);
  // Removes hosts that were not seen in this retake.
  void remove_unseen(uint32_t seen);
  void hold(JobId job, Hold hold);  // on hold.alloc.host
  void release(const std::string& host, JobId job);

  // What is kept of hosts for some, all of it.
  void set_kept(const std::vector<std::shared_ptr<const Kept>>& all);

  // The hosts for `nodes` times the need, best fit first, or an empty list when they are not free.
  // `permits` may refuse hosts. Adds to `looks` how many hosts were looked at.
  std::vector<const HostSlot*> best_fit(const Need& need, uint32_t nodes, const Permits& permits,
                                        size_t* looks = nullptr) const;
  // Free cpus of the usable host with the most.
  uint32_t most_free_cpus() const { return by_free_.empty() ? 0 : by_free_.rbegin()->free_cpus; }
  const std::map<std::string, HostSlot, std::less<>>& hosts() const { return hosts_; }
  size_t usable_hosts() const { return by_free_.size(); }
  // What a job with this need is given on this host: an exclusive one gets every cpu.
  static Alloc alloc_of(const Need& need, const HostSlot& host);

 private:
  void unlist(const HostSlot& slot);
  void relist(HostSlot* slot);
  HostSlot& slot_of(const std::string& name);

  std::map<std::string, HostSlot, std::less<>> hosts_;
  std::map<std::string, std::vector<std::shared_ptr<const Kept>>> kept_;  // by host
  struct Listed {
    uint32_t free_cpus = 0;
    std::string_view name;  // the slot's
    const HostSlot* slot = nullptr;
    friend bool operator<(const Listed& a, const Listed& b) {
      return std::tie(a.free_cpus, a.name) < std::tie(b.free_cpus, b.name);
    }
  };
  std::set<Listed> by_free_;  // usable hosts only
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_HOST_POOL_H_
