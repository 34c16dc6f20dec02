// Whether this scheduler has joined, must join (again) or take the state (again), and whether it is
// the active one.
//
// Any thread; no I/O and no call into libxce, so that the reconnect hook and the push handler may
// use it (A2). A request to join is done with only when a join that began after it has succeeded:
// never because it was tried.
#ifndef XCE_SCHEDULER_PIPELINE_MEMBERSHIP_H_
#define XCE_SCHEDULER_PIPELINE_MEMBERSHIP_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "scheduler/pipeline/controller_port.h"

namespace xce::sched {

class Membership {
 public:
  // ---- requests
  void want_join();
  void want_state();
  // Who the active scheduler is. A newer epoch than ours: another one has taken over, and we stand
  // by. Name "": nobody is, and one that stands by takes over.
  void scheduler_is(uint64_t epoch, const std::string& name);

  // ---- the publisher's side
  bool needs_join() const;
  bool needs_state() const;
  // Call before a join or a taking of state; hand the token to the answer.
  uint64_t begin() const;
  // True when this changed whether we are the active one.
  bool joined(uint64_t token, const JoinAnswer& answer);
  void state_taken(uint64_t token);
  // True when it is known that another scheduler has taken over since we joined.
  bool overtaken() const;

  // ---- whether to decide
  // The epoch to decide in; nothing while standing by, before the first join, and while a join or
  // the state is outstanding.
  std::optional<uint64_t> deciding_epoch() const;
  // Whether a decision of this epoch may still be published.
  bool may_publish(uint64_t epoch) const;
  bool active() const;
  // Joined, with the state taken, while another one is active.
  bool standing_by() const;

 private:
  mutable std::mutex mutex_;
  uint64_t requests_ = 1;     // counts both kinds, so that one token serves
  uint64_t join_wanted_ = 1;  // the newest request to join
  uint64_t vacancy_ = 0;      // the newest one made because nobody was active
  uint64_t state_wanted_ = 1;
  uint64_t join_done_ = 0;  // the newest request that a join has satisfied
  uint64_t state_done_ = 0;
  uint64_t epoch_ = 0;
  uint64_t newest_epoch_ = 0;  // heard of
  bool active_ = false;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_PIPELINE_MEMBERSHIP_H_
