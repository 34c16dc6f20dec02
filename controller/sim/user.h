// A person with a program: submits, holds, releases, kills, asks, a few things at a time, and tells
// the oracle what it was answered.
#ifndef XCE_CONTROLLER_SIM_USER_H_
#define XCE_CONTROLLER_SIM_USER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "controller/sim/context.h"
#include "controller/sim/oracle.h"

namespace xce::sim {

// What all users know together.
struct Gossip {
  std::vector<JobId> jobs;  // acknowledged
  uint64_t keys = 0;        // submit keys in use
};

class User {
 public:
  User(World* world, Network* network, Oracle* oracle, Gossip* gossip, int number, int controllers);

  // Begins `width` strands of calls, each with pauses of about `pause`; until stop().
  void start(int width, uint64_t pause);
  void stop() { stopped_ = true; }
  bool idle() const { return context_.under_way() == 0; }
  uint64_t done() const { return done_; }
  uint64_t failed() const { return failed_; }
  // One read now: *answered becomes true when it succeeds; it is repeated until then.
  void probe(bool* answered);

 private:
  void next();
  void act();
  void submit();
  void control();
  void list();
  void info();
  void written(const CallResult& result);

  World* const world_;
  Oracle* const oracle_;
  Gossip* const gossip_;
  const int number_;
  Random random_;
  Context context_;
  uint64_t pause_ = 0;
  uint64_t submissions_ = 0;
  uint64_t done_ = 0, failed_ = 0;
  bool stopped_ = false;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_USER_H_
