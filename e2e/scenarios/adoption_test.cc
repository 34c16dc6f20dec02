// Worker, scheduler and apiserver together, with jobs running, being dispatched and pushed, ride
// out what happens to the controllers: a standby first in their lists, primaries that die, an
// outage longer than every budget, a partition.

#include "e2e/scenarios/loaded.h"

namespace xce::e2e {
namespace {

constexpr milliseconds kSchedulersBudget{10500};  // more than its calls' deadline

class Adoption : public LoadedTest {};

TEST_F(Adoption, AllThreeStartWithAStandbyFirstInTheirLists) {
  ASSERT_NO_FATAL_FAILURE(start_whole({}));
  const int primary = cluster_->wait_primary(-1, kLimit);
  ASSERT_GE(primary, 0);
  const std::string first = cluster_->address((primary + 1) % 3);
  for (const int node : {Cluster::worker_node(0), Cluster::worker_node(1),
                         Cluster::scheduler_node(0), Cluster::apiserver_node()})
    cluster_->set_candidates(node, first + "," + cluster_->address(primary));
  for (Process* each : {&cluster_->worker(0), &cluster_->worker(1), &cluster_->scheduler(0),
                        &cluster_->apiserver()})
    EXPECT_EQ(each->terminate(), 0);
  size_t from[] = {cluster_->log("worker1").size(), cluster_->log("worker2").size(),
                   cluster_->log("scheduler1").size(), cluster_->log("apiserver").size()};
  ASSERT_TRUE(cluster_->start_worker(0).ok() && cluster_->start_worker(1).ok());
  ASSERT_TRUE(cluster_->start_scheduler(0).ok() && cluster_->start_apiserver().ok());
  // Each names its candidates, and the one that it joined through in the end.
  for (const int i : {0, 1}) {
    const std::string name = absl::StrCat("worker", i + 1);
    EXPECT_TRUE(says(name, from[i], "candidate 1 of 2: " + first));
    EXPECT_TRUE(says(name, from[i], "joined controller " + cluster_->address(primary)));
  }
  EXPECT_TRUE(says("scheduler1", from[2], "controller candidate 1 of 2: " + first));
  EXPECT_TRUE(says("scheduler1", from[2], "joined through " + cluster_->address(primary)));
  EXPECT_TRUE(says("apiserver", from[3], first));
  EXPECT_TRUE(says("apiserver", from[3], "joined the cluster"));
  EXPECT_TRUE(wait_until([&] { return serves(); }, kLimit));
  begin_load();
  EXPECT_TRUE(progress(30));
  end_load();
}

class PrimaryDies : public Adoption, public ::testing::WithParamInterface<bool> {};

TEST_P(PrimaryDies, UnderAllThreeAtWork) {
  ClusterOptions options;
  options.tls = GetParam();
  ASSERT_NO_FATAL_FAILURE(start_whole(options));
  ASSERT_NO_FATAL_FAILURE(submit_long_jobs(3));
  begin_load();
  for (int round = 0; round < 4; ++round) {
    const int node = kill_primary();
    ASSERT_GE(node, 0);
    EXPECT_TRUE(progress(12)) << "after kill " << round + 1;  // submitted, dispatched, run, pushed
    ASSERT_TRUE(cluster_->start_controller(node).ok());
    EXPECT_TRUE(progress(4));
  }
  double longest_ms = 0;
  end_load(&longest_ms);
  printf("longest pause of a caller %.0f ms, %s TLS\n", longest_ms,
         GetParam() ? "with" : "without");
}

INSTANTIATE_TEST_SUITE_P(Plain, PrimaryDies, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Tls, PrimaryDies, ::testing::Values(true));

// No controller for longer than any call of any of the three waits. They go on by themselves when
// the controllers are back; the clients, who wait longer, see nothing but the pause.
TEST_F(Adoption, TheWholeClusterIsGoneForLongerThanTheBudgetsAndComesBack) {
  ClusterOptions options;
  options.worker_args = {"--call-deadline-ms", "4000"};
  options.apiserver_args = {"--timeout-ms", "4000"};
  ASSERT_NO_FATAL_FAILURE(start_whole(options));
  ASSERT_NO_FATAL_FAILURE(submit_long_jobs(3));
  begin_load();
  const std::vector<std::string> daemons = {"worker1", "worker2", "scheduler1", "apiserver"};
  std::vector<size_t> from;
  for (const std::string& name : daemons) from.push_back(cluster_->log(name).size());
  for (int node = 0; node < 3; ++node) cluster_->controller(node).kill9();
  const auto since = Clock::now();
  EXPECT_TRUE(says("worker1", from[0], "gave up after"));
  EXPECT_TRUE(says("worker2", from[1], "gave up after"));
  EXPECT_EQ(http_->call("GET", "/api/v1/jobs").status, 503);
  open_gate();  // the long jobs end while nobody can be told
  const auto ended = [&](uint64_t id) {
    return absl::StrContains(read_file(cluster_->dir() + "/ledger"), absl::StrCat("\n", id, ".1-"));
  };
  EXPECT_TRUE(
      wait_until([&] { return ended(long_[0]) && ended(long_[1]) && ended(long_[2]); }, kLimit));
  // Not a state to wait for: so long, and not less, nobody is there.
  wait_until([&] { return Clock::now() - since > kSchedulersBudget; }, kLimit);
  for (int node = 0; node < 3; ++node) ASSERT_TRUE(cluster_->start_controller(node).ok());
  EXPECT_TRUE(progress(20));
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(says(daemons[i], from[i], "joined controller"));
  EXPECT_TRUE(says("scheduler1", from[2], "joined at revision"));
  EXPECT_TRUE(says("apiserver", from[3], "joined the cluster"));
  end_load();
}

// One worker of two is cut off from three controllers, also where their redirects lead, for longer
// than its jobs' leases.
TEST_F(Adoption, AWorkerIsPartitionedForLongerThanItsLeases) {
  ClusterOptions options;
  options.daemon_links = true;
  options.controller_args = {"--lease-ms", "3000", "--host-grace-ms", "1000"};
  options.worker_args = {"--hello-interval-ms", "200"};
  requeue_ = true;
  ASSERT_NO_FATAL_FAILURE(start_whole(options));
  if (!cluster_->links_work()) GTEST_SKIP() << "no preloaded library under a sanitizer";
  begin_load();
  EXPECT_TRUE(progress(20));
  for (const LinkMode mode : {LinkMode::kMute, LinkMode::kDeaf}) {
    cluster_->links().set_node(Cluster::worker_node(0), mode);
    EXPECT_TRUE(host_is(XCE_HOST_GONE));
    EXPECT_TRUE(progress(20)) << "on the other worker";
    cluster_->links().heal();
    EXPECT_TRUE(host_is(XCE_HOST_UP));
    EXPECT_TRUE(progress(10));
  }
  end_load();
  printf("started again after their host was lost: %d\n", verdict_.attempts_again);
}

}  // namespace
}  // namespace xce::e2e
