// What is to be broken, when and how long, from a seed: every role in turn, each time in another
// way. The same seed is the same plan. PURE.
#ifndef XCE_E2E_SOAK_PLAN_H_
#define XCE_E2E_SOAK_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

namespace xce::e2e {

enum class Victim {
  kPrimary,
  kStandby,
  kAllControllers,
  kActiveScheduler,
  kStandbyScheduler,
  kWorker,
  kApiserver,
  kPrimaryAndWorker,
};
constexpr int kVictims = 8;

enum class Harm {
  kKill,       // SIGKILL, later started again
  kTerminate,  // SIGTERM, later started again
  kPause,      // SIGSTOP, later SIGCONT
  kFreeze,     // its packets are dropped both ways
  kMute,       // those that it sends are
  kDeaf,       // those that it should get are
  kCut,        // its connections end and new ones are refused
};
constexpr int kHarms = 7;

struct Fault {
  Victim victim = Victim::kPrimary;
  Harm harm = Harm::kKill;
  uint32_t which = 0;  // any number: of several (workers, standbys) the one of that number
  int calm_ms = 0;     // nothing is broken so long before it
  int lasts_ms = 0;    // until it is mended
};

// `count` faults. Each victim comes once in every kVictims of them, and by and by in every way that
// makes sense for it.
std::vector<Fault> make_plan(uint64_t seed, size_t count);

// "active scheduler: paused for 1200 ms".
std::string describe(const Fault& fault);
const char* name_of(Victim victim);
const char* name_of(Harm harm);

}  // namespace xce::e2e

#endif  // XCE_E2E_SOAK_PLAN_H_
