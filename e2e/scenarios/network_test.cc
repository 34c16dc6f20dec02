// Hosts with networks of their own, and cables that are pulled: nothing answers for whoever is cut
// off, no connection ends by itself. Everything speaks TLS, since nothing is loopback. Needs root;
// skipped, with the reason, where it may not make networks.

#include "e2e/scenarios/loaded.h"

namespace xce::e2e {
namespace {

constexpr int kControllers = 3, kWorkers = 2;
constexpr double kLongestPauseMs = 15000;

class Cables : public LoadedTest {
 protected:
  void start_on_network(ClusterOptions options) {
    auto made = Network::make(kControllers + kWorkers);
    if (absl::IsPermissionDenied(made.status())) GTEST_SKIP() << made.status().message();
    ASSERT_TRUE(made.ok()) << made.status();
    network_ = std::move(*made);
    options.network = network_.get();
    options.workers = kWorkers;
    options.tls = true;
    ASSERT_NO_FATAL_FAILURE(start_whole(options));
  }
  std::unique_ptr<Network> network_;
};

TEST_F(Cables, ThePrimarysIsPulled) {
  ASSERT_NO_FATAL_FAILURE(start_on_network({}));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit_long_jobs(3));
  begin_load();
  for (int round = 0; round < 3; ++round) {
    const int primary = cluster_->wait_primary(-1, kLimit);
    ASSERT_GE(primary, 0);
    ASSERT_TRUE(network_->pull(primary).ok());
    EXPECT_TRUE(progress(15)) << "round " << round;
    EXPECT_GE(cluster_->wait_primary(primary, kLimit), 0);
    ASSERT_TRUE(network_->plug(primary).ok());
    EXPECT_TRUE(progress(5));
  }
  double longest_ms = 0;
  end_load(&longest_ms);
  printf("longest pause of a caller %.0f ms\n", longest_ms);
  EXPECT_LT(longest_ms, kLongestPauseMs);
}

TEST_F(Cables, AWorkersIsPulledForLongerThanItsLeases) {
  ClusterOptions options;
  options.controller_args = {"--lease-ms", "3000", "--host-grace-ms", "1000"};
  options.worker_args = {"--hello-interval-ms", "200"};
  requeue_ = true;
  ASSERT_NO_FATAL_FAILURE(start_on_network(options));
  if (IsSkipped()) return;
  begin_load();
  EXPECT_TRUE(progress(20));
  ASSERT_TRUE(network_->pull(cluster_->worker_host(0)).ok());
  EXPECT_TRUE(host_is(XCE_HOST_GONE));
  EXPECT_TRUE(progress(20)) << "on the other worker";
  ASSERT_TRUE(network_->plug(cluster_->worker_host(0)).ok());
  EXPECT_TRUE(host_is(XCE_HOST_UP));
  end_load();
  printf("started again after their host was lost: %d\n", verdict_.attempts_again);
}

// Each host is alone for a while: nobody can be asked anything, nothing is lost.
TEST_F(Cables, AllArePulled) {
  ASSERT_NO_FATAL_FAILURE(start_on_network({}));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit_long_jobs(2));
  begin_load();
  const size_t from = cluster_->log("worker1").size();
  for (int host = 0; host < kControllers + kWorkers; ++host) ASSERT_TRUE(network_->pull(host).ok());
  EXPECT_TRUE(says("worker1", from, "no controller"));
  for (int host = 0; host < kControllers + kWorkers; ++host) ASSERT_TRUE(network_->plug(host).ok());
  EXPECT_TRUE(progress(15));
  end_load();
}

}  // namespace
}  // namespace xce::e2e
