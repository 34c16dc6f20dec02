// A person who adds, removes and replaces controllers while everything else goes on: one wish after
// the other, each asked again until it is known to be done or refused.
#ifndef XCE_CONTROLLER_SIM_ADMIN_H_
#define XCE_CONTROLLER_SIM_ADMIN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "controller/consensus/members.h"
#include "controller/sim/machine.h"

namespace xce::sim {

class Admin {
 public:
  // Those of `machines` from `founders` on are spare: they wait to be taken in.
  Admin(World* world, std::vector<std::unique_ptr<Machine>>* machines, size_t founders);

  // Now and then a wish, until `until`.
  void start(uint64_t until);
  // The last wish has come to its end, and all members are voters.
  bool idle() const;
  // Whether that machine is a member, by what the last wish came to.
  bool is_member(const Machine& machine) const { return members_.find(machine.id()) != nullptr; }
  uint64_t changes() const { return changes_; }

 private:
  void next();
  bool choose();
  Machine* pick(bool member);
  Machine* serving() const;
  void wipe(Machine* machine);
  void ask();
  void answered(uint64_t asked, const absl::Status& status, const consensus::Members& members);
  void look_again();
  void check(const consensus::Members& members);
  void finished(const consensus::Members& members);

  World* const world_;
  std::vector<std::unique_ptr<Machine>>* const machines_;
  Random random_;
  consensus::Members members_;  // as the last answer had them
  bool wishing_ = false;
  consensus::MemberChange wish_;
  uint64_t asked_ = 0;  // counts; answers to older questions do not count
  uint64_t until_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_ADMIN_H_
