#include "e2e/soak/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/sim/random.h"

namespace xce::e2e {
namespace {

constexpr int kCalmMs[] = {400, 2200};
constexpr int kRestartMs[] = {0, 1500};  // how long a daemon is gone
constexpr int kPauseMs[] = {300, 2500};
constexpr int kPartitionMs[] = {300, 3000};
constexpr uint64_t kLongOneIn = 5;       // of partitions and pauses of workers,
constexpr int kLongMs[] = {6000, 9000};  // longer than their leases

std::vector<Harm> harms_of(Victim victim) {
  switch (victim) {
    case Victim::kAllControllers:
      return {Harm::kKill, Harm::kTerminate, Harm::kPause, Harm::kFreeze, Harm::kCut};
    case Victim::kPrimaryAndWorker: return {Harm::kKill, Harm::kTerminate, Harm::kPause};
    default:
      return {Harm::kKill, Harm::kTerminate, Harm::kPause, Harm::kFreeze,
              Harm::kMute, Harm::kDeaf,      Harm::kCut};
  }
}

template <class T>
void shuffle(std::vector<T>* items, sim::Random* random) {
  for (size_t i = items->size(); i > 1; --i) std::swap((*items)[i - 1], (*items)[random->below(i)]);
}

int lasts_ms(const Fault& fault, sim::Random* random) {
  const auto between = [random](const int(&range)[2]) {
    return static_cast<int>(
        random->between(static_cast<uint64_t>(range[0]), static_cast<uint64_t>(range[1])));
  };
  const bool restart = fault.harm == Harm::kKill || fault.harm == Harm::kTerminate;
  if (fault.victim == Victim::kWorker && !restart && random->one_in(kLongOneIn))
    return between(kLongMs);
  if (restart) return between(kRestartMs);
  return fault.harm == Harm::kPause ? between(kPauseMs) : between(kPartitionMs);
}

}  // namespace

std::vector<Fault> make_plan(uint64_t seed, size_t count) {
  sim::Random random(seed);
  std::vector<Victim> round;
  std::vector<std::vector<Harm>> left(kVictims);  // not done to each victim yet
  for (int i = 0; i < kVictims; ++i) round.push_back(static_cast<Victim>(i));
  std::vector<Fault> plan;
  while (plan.size() < count) {
    if (plan.size() % kVictims == 0) shuffle(&round, &random);
    Fault fault;
    fault.victim = round[plan.size() % kVictims];
    std::vector<Harm>& harms = left[static_cast<size_t>(fault.victim)];
    if (harms.empty()) {
      harms = harms_of(fault.victim);
      shuffle(&harms, &random);
    }
    fault.harm = harms.back();
    harms.pop_back();
    fault.which = static_cast<uint32_t>(random.below(1u << 20));
    fault.calm_ms = static_cast<int>(random.between(kCalmMs[0], kCalmMs[1]));
    fault.lasts_ms = lasts_ms(fault, &random);
    plan.push_back(fault);
  }
  return plan;
}

const char* name_of(Victim victim) {
  switch (victim) {
    case Victim::kPrimary: return "primary";
    case Victim::kStandby: return "standby";
    case Victim::kAllControllers: return "all controllers";
    case Victim::kActiveScheduler: return "active scheduler";
    case Victim::kStandbyScheduler: return "standby scheduler";
    case Victim::kWorker: return "worker";
    case Victim::kApiserver: return "apiserver";
    case Victim::kPrimaryAndWorker: return "primary and worker";
  }
  return "?";
}

const char* name_of(Harm harm) {
  switch (harm) {
    case Harm::kKill: return "killed";
    case Harm::kTerminate: return "restarted";
    case Harm::kPause: return "paused";
    case Harm::kFreeze: return "partitioned";
    case Harm::kMute: return "not heard";
    case Harm::kDeaf: return "hears nothing";
    case Harm::kCut: return "connections cut";
  }
  return "?";
}

std::string describe(const Fault& fault) {
  return absl::StrCat(name_of(fault.victim), ": ", name_of(fault.harm), " for ", fault.lasts_ms,
                      " ms");
}

}  // namespace xce::e2e
