#include "e2e/soak/plan.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace xce::e2e {
namespace {

bool same(const Fault& a, const Fault& b) {
  return a.victim == b.victim && a.harm == b.harm && a.which == b.which && a.calm_ms == b.calm_ms &&
         a.lasts_ms == b.lasts_ms;
}

TEST(Plan, ASeedIsAPlan) {
  const auto plan = make_plan(7, 300);
  const auto again = make_plan(7, 400);
  ASSERT_EQ(plan.size(), 300u);
  for (size_t i = 0; i < plan.size(); ++i) EXPECT_TRUE(same(plan[i], again[i])) << i;
  size_t equal = 0;
  const auto other = make_plan(8, 300);
  for (size_t i = 0; i < plan.size(); ++i) equal += same(plan[i], other[i]);
  EXPECT_LT(equal, 30u);
}

TEST(Plan, EveryRoleInTurnAndInEveryWay) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto plan = make_plan(seed, kVictims * kHarms);
    std::map<Victim, std::set<Harm>> seen;
    for (size_t round = 0; round < plan.size(); round += kVictims) {
      std::set<Victim> victims;
      for (size_t i = round; i < round + kVictims; ++i) victims.insert(plan[i].victim);
      EXPECT_EQ(victims.size(), size_t{kVictims}) << "seed " << seed << " from fault " << round;
    }
    for (const Fault& fault : plan) seen[fault.victim].insert(fault.harm);
    for (const auto& [victim, harms] : seen) {
      const bool few = victim == Victim::kAllControllers || victim == Victim::kPrimaryAndWorker;
      EXPECT_GE(harms.size(), few ? 3u : size_t{kHarms}) << name_of(victim) << ", seed " << seed;
    }
  }
}

TEST(Plan, TimesAreBounded) {
  int longest_of_worker = 0;
  for (const Fault& fault : make_plan(3, 2000)) {
    EXPECT_GE(fault.calm_ms, 100);
    EXPECT_LE(fault.calm_ms, 3000);
    EXPECT_GE(fault.lasts_ms, 0);
    EXPECT_LE(fault.lasts_ms, fault.victim == Victim::kWorker ? 9000 : 3000) << describe(fault);
    if (fault.victim == Victim::kWorker)
      longest_of_worker = std::max(longest_of_worker, fault.lasts_ms);
  }
  EXPECT_GT(longest_of_worker, 6000) << "longer than a lease";
}

TEST(Plan, IsToldInWords) {
  EXPECT_EQ(describe({Victim::kActiveScheduler, Harm::kPause, 0, 0, 1200}),
            "active scheduler: paused for 1200 ms");
}

}  // namespace
}  // namespace xce::e2e
