// The cluster under a seeded clock, network and disk: a few hundred seeds, the same as everywhere;
// and those that once found something. More: ./dev sim --seeds 5000.
#include "controller/sim/simulation.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

namespace xce::sim {
namespace {

constexpr uint64_t kSeeds = 200;

class SimulationTest : public testing::Test {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
  static void run(uint64_t seed) {
    const RunReport report = simulate(seed, false);
    EXPECT_EQ(report.wrong, "") << "again: ./dev sim --seeds 1 --seed " << seed << " --trace";
  }
};

TEST_F(SimulationTest, TheSameSeedIsTheSameRun) {
  const RunReport first = simulate(1, false), second = simulate(1, false),
                  other = simulate(2, false);
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_EQ(first.events, second.events);
  EXPECT_NE(first.hash, other.hash);
}

TEST_F(SimulationTest, KeepsItsPromisesWithManySeeds) {
  for (uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) run(seed);
}

}  // namespace
}  // namespace xce::sim
