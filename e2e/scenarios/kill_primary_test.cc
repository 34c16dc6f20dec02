// The primary is killed between and during requests: the next request succeeds, during the election
// a caller sees success or cluster-not-ready and nothing else, and a client that knows only a
// standby reaches the primary in one hop.

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"

namespace xce::e2e {
namespace {

class KillPrimary : public ClusterTest {};

TEST_F(KillPrimary, BetweenRequestsTheNextOneSucceeds) {  // L1.2, L2.1, L3.2
  start({});
  Client client(cluster_->masters());
  ASSERT_GT(client.submit("true", "before", cluster_->dir()), 0);
  const int old_primary = kill_primary();
  ASSERT_GE(old_primary, 0);
  int status = -1;
  EXPECT_EQ(client.jobs(&status).size(), 1u) << xce_errname(status);
  EXPECT_EQ(status, 0);
  EXPECT_GT(client.submit("true", "after", cluster_->dir()), 0);
  EXPECT_EQ(client.jobs().size(), 2u);
  EXPECT_NE(cluster_->primary(), old_primary);
}

TEST_F(KillPrimary, DuringRequestsEachIsDoneOnce) {  // L5.1-L5.3
  start({});
  constexpr int kClients = 4;
  constexpr int kEach = 60;
  std::atomic<int> done{0};
  std::vector<std::vector<int64_t>> ids(kClients);
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([&, c] {
      Client client(cluster_->masters());
      for (int i = 0; i < kEach; ++i) {
        ids[c].push_back(client.submit("true", absl::StrCat("c", c, "-", i), cluster_->dir()));
        ++done;
      }
    });
  }
  EXPECT_TRUE(wait_until([&] { return done > kClients * kEach / 4; }, milliseconds(60000)));
  EXPECT_GE(kill_primary(), 0);
  for (std::thread& thread : threads) thread.join();
  Client client(cluster_->masters());
  const auto jobs = client.jobs();
  EXPECT_EQ(jobs.size(), size_t{kClients * kEach});
  std::set<std::string> names;
  for (const auto& [id, job] : jobs) names.insert(job.name);
  EXPECT_EQ(names.size(), size_t{kClients * kEach});
  for (const auto& list : ids)
    for (int64_t id : list) EXPECT_TRUE(jobs.count(id)) << id;
}

TEST_F(KillPrimary, JoblistDuringTheElectionSucceedsOrSaysNotReady) {  // L3.3, L3.4
  start({});
  Client patient(cluster_->masters());
  ASSERT_GT(patient.submit("true", "one", cluster_->dir()), 0);
  std::atomic<bool> stop{false};
  std::atomic<int> good{0}, not_ready{0};
  std::vector<int> other;
  std::thread asker([&] {
    while (!stop) {
      Client hasty(cluster_->masters(), 20);  // 20 ms: less than an election may take
      int status = 0;
      hasty.jobs(&status);
      if (status == 0) {
        ++good;
      } else if (status == -E_XCE_NOT_READY) {
        ++not_ready;
      } else {
        other.push_back(status);
      }
    }
  });
  for (int round = 0; round < 3; ++round) {
    const int before = good;
    const int node = kill_primary();
    EXPECT_GE(node, 0);
    EXPECT_TRUE(wait_until([&] { return good > before + 3; }, milliseconds(20000)));
    EXPECT_TRUE(cluster_->start_controller(node).ok());
  }
  // Two of three gone: nobody can serve, and the answer says so.
  const int first = kill_primary();
  const int second = kill_primary();
  EXPECT_GE(second, 0);
  const int before = not_ready;
  EXPECT_TRUE(wait_until([&] { return not_ready > before + 3; }, milliseconds(20000)));
  EXPECT_TRUE(cluster_->start_controller(first).ok());
  const int healed = good;
  EXPECT_TRUE(wait_until([&] { return good > healed; }, milliseconds(20000)));
  stop = true;
  asker.join();
  EXPECT_TRUE(other.empty()) << xce_errname(other.front());
}

TEST_F(KillPrimary, AClientThatKnowsOnlyAStandbyLandsOnThePrimaryInOneHop) {  // L8.1, L8.3
  start({});
  const int primary = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(primary, 0);
  Client client(cluster_->address((primary + 1) % 3));
  const auto begin = Clock::now();
  EXPECT_GT(client.submit("true", "hop", cluster_->dir()), 0);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(client.master(), cluster_->address(primary));
}

TEST_F(KillPrimary, TheLastControllerStillTellsTheClustersStatus) {  // docs/semantics.md
  start({});
  Client client(cluster_->masters(), 3000);
  ASSERT_GT(client.submit("true", "one", cluster_->dir()), 0);
  ASSERT_GE(kill_primary(), 0);
  ASSERT_GE(kill_primary(), 0);
  xce_cluster_status_t* status = nullptr;
  ASSERT_EQ(xcecli_clusterstatus(client.ctx(), &status), 0);
  EXPECT_EQ(status->nnodes, 3u);
  EXPECT_STRNE(status->role, "leader");
  xce_free_cluster_status(status);
  int rc = 0;
  client.jobs(&rc);
  EXPECT_EQ(rc, -E_XCE_NOT_READY);
}

}  // namespace
}  // namespace xce::e2e
