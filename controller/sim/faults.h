// The faults of a run: which kinds, when, for how long, from the seed. Each run has a mixture of
// its own, so that rare combinations come about.
#ifndef XCE_CONTROLLER_SIM_FAULTS_H_
#define XCE_CONTROLLER_SIM_FAULTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "controller/sim/machine.h"
#include "controller/sim/network.h"

namespace xce::sim {

class Faults {
 public:
  Faults(World* world, Network* network, std::vector<std::unique_ptr<Machine>>* machines);

  // One fault after the other until `until`; several may hold at once.
  void start(uint64_t until);
  // Ends all of them: links heal, disks work, every node runs.
  void end_all();

 private:
  enum Kind {
    kKill,
    kKillAt,  // in the middle of some operation on its disk
    kPower,
    kPowerAll,
    kPause,
    kIsolate,
    kCutOne,
    kCutOneWay,
    kDelay,
    kReset,
    kSlowDisk,
    kBadDisk,
    kClock,
    kTransfer,
    kRefuse,
    kKinds
  };
  void next();
  void cause(Kind kind);
  void hit(Kind kind, Machine* machine);
  void cut(Kind kind, Machine* machine);
  void bad_disk(Machine* machine);
  void start_later(Machine* machine);
  Machine* any();
  Machine* primary();
  uint64_t some_time() { return random_.between(50, random_.one_in(3) ? 4000 : 900) * kMs; }

  World* const world_;
  Network* const network_;
  std::vector<std::unique_ptr<Machine>>* const machines_;
  Random random_;
  std::vector<Kind> kinds_;
  uint64_t until_ = 0;
  uint64_t pause_ = 0;
  bool over_ = false;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_FAULTS_H_
