// Clients work while controllers are killed, paused, cut off and slowed down; then the checker
// reads their history. XCE_CHECK_SECONDS makes it longer, XCE_CHECK_SEED another run.

#include <signal.h>

#include <cstdlib>
#include <random>

#include "absl/strings/str_cat.h"
#include "e2e/checker/workload.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {
namespace {

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

class Linearizability : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    xce_set_log_callback(nullptr, nullptr);  // the clients lose their primary all the time
    ClusterOptions options;
    options.links = true;
    options.faults = true;
    start(options);
  }

  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  void hold_on(int ms) {
    wait_until([] { return false; }, milliseconds(ms));
  }

  void restart(int node) {
    cluster_->controller(node).kill9();
    hold_on(pick(400));
    ASSERT_TRUE(cluster_->start_controller(node).ok());
  }

  void pause(int node, int ms) {
    cluster_->controller(node).signal(SIGSTOP);
    hold_on(ms);
    cluster_->controller(node).signal(SIGCONT);
  }

  void isolate(int node, LinkMode mode, int ms) {
    cluster_->links().set_node(node, mode);
    hold_on(ms);
    cluster_->links().heal();
  }

  // What the primary has proposed is on the standbys' disks, and it dies before it knows: all of it
  // is done, and every client asks again.
  void lose_answers(int primary) {
    for (int node = 0; node < 3; ++node)
      if (node != primary) cluster_->links().set_link(node, primary, LinkMode::kFrozen);
    hold_on(150);
    cluster_->controller(primary).kill9();
    cluster_->links().heal();
    ASSERT_TRUE(cluster_->start_controller(primary).ok());
  }

  // One fault, and its end. Which one follows from `turn`, so that each has its turn.
  void strike(int turn) {
    const int primary = cluster_->wait_primary(-1, milliseconds(10000));
    ASSERT_GE(primary, 0) << "no primary after " << turn << " faults";
    const int standby = (primary + 1 + pick(2)) % 3;
    switch (turn % 12) {
      case 0: return restart(primary);
      case 1: return lose_answers(primary);
      case 2: return pause(primary, 700);
      case 3: return isolate(primary, LinkMode::kFrozen, 900);
      case 4: return restart(standby);
      case 5: return isolate(primary, LinkMode::kCut, 700);
      case 6: return lose_answers(primary);
      case 7:  // an hour on, or back: sessions end after an hour of silence
        cluster_->faults(primary).set_clock_ms(turn % 24 < 12 ? 3700000 : -3700000);
        hold_on(400);
        restart(primary);
        return cluster_->faults(primary).set_clock_ms(0);
      case 8:
        for (int node : {primary, standby}) cluster_->faults(node).set_write_delay_ms(100);
        hold_on(700);
        for (int node : {primary, standby}) cluster_->faults(node).set_write_delay_ms(0);
        return;
      case 9:
        cluster_->links().set_delay(milliseconds(40));
        hold_on(500);
        restart(primary);
        return cluster_->links().heal();
      case 10:  // it is heard and does not hear
        cluster_->links().set_link(primary, standby, LinkMode::kFrozen);
        hold_on(700);
        return cluster_->links().heal();
      default:
        for (int node = 0; node < 3; ++node) cluster_->controller(node).kill9();
        for (int node = 0; node < 3; ++node)
          ASSERT_TRUE(cluster_->start_controller((node + turn) % 3).ok());
    }
  }

  std::mt19937_64 random_{static_cast<uint64_t>(setting("XCE_CHECK_SEED", 1))};
};

TEST_F(Linearizability, HistoriesUnderFaultsHaveAnOrder) {
  const std::string history = cluster_->dir() + "/history";
  WorkloadOptions options;
  options.seed = static_cast<uint64_t>(setting("XCE_CHECK_SEED", 1));
  const auto end = Clock::now() + std::chrono::seconds(setting("XCE_CHECK_SECONDS", 18));
  Workload load(cluster_->masters(), cluster_->dir() + "/work", history, options);
  load.start();
  int faults = 0;
  while (Clock::now() < end && !HasFatalFailure()) {
    hold_on(400 + pick(400));
    strike(faults++);
  }
  load.stop();
  printf("%d faults, %d operations, %d of unknown outcome, %d not applied\n", faults,
         load.operations(), load.unknown(), load.not_applied());
  EXPECT_GT(load.operations(), 500);
  const Finished check = run("e2e/checker/check/check", {history}, {}, "", milliseconds(90000));
  printf("%s%s", check.out.c_str(), check.err.c_str());
  EXPECT_EQ(check.code, 0);
  if (HasFailure()) {
    const char* kept = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
    if (kept != nullptr) run("/bin/cp", {history, kept});
  }
}

}  // namespace
}  // namespace xce::e2e
