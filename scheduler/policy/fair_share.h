// How much of the cluster each user has had lately, for fair share. PURE; the time comes with what
// is told.
//
// A cpu-second counts in full while it is used and half after each half-life. A running job uses
// its cpus all the time, so a user's usage u follows du/dt = cpus - u * ln 2 / half_life. That has
// a closed form: it takes constant room and time a user, whatever ran, and the order in which
// starts and ends are told does not matter. (Kay and Lauder, "A fair share scheduler", 1988.)
#ifndef XCE_SCHEDULER_POLICY_FAIR_SHARE_H_
#define XCE_SCHEDULER_POLICY_FAIR_SHARE_H_

#include <cstdint>
#include <map>

#include "scheduler/policy/kept.h"

namespace xce::sched {

class FairShare {
 public:
  // 0: fair share is off, and everybody's usage is 0.
  explicit FairShare(int64_t half_life_ms = 0) : half_life_ms_(half_life_ms) {}

  bool on() const { return half_life_ms_ > 0; }
  // A job of this user holds so many cpus since from_ms.
  void start(NameId user, uint32_t cpus, int64_t from_ms);
  // A job that was told to have started holds them no longer since until_ms; the same cpus and time
  // as at its start. With until_ms == from_ms it is as if it had never run.
  void end(NameId user, uint32_t cpus, int64_t until_ms);
  // Cpu-seconds, decayed, at that time (never earlier than what was told last).
  double usage(NameId user, int64_t now_ms) const;

 private:
  struct Account {
    double used = 0;  // cpu-seconds, decayed, at at_ms
    int64_t at_ms = 0;
    int64_t cpus = 0;  // held now
  };
  // What is left after so long of one cpu-second.
  double decay(int64_t ms) const;
  // What one cpu used all that time is worth at its end.
  double accrued(int64_t ms) const;
  double value(const Account& account, int64_t at_ms) const;
  void change(NameId user, int64_t cpus, int64_t time_ms);

  int64_t half_life_ms_;
  std::map<NameId, Account> accounts_;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_FAIR_SHARE_H_
