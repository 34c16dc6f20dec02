// Snapshots take the log's place: a controller that was away for longer than the log reaches comes
// back through one and can then lead alone with another; what was acknowledged, and what
// exactly-once needs to know, outlives the log that held it.

#include <atomic>
#include <filesystem>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"

namespace xce::e2e {
namespace {

class Snapshot : public ClusterTest {
 protected:
  static ClusterOptions options() {
    ClusterOptions options;
    options.controller_args = {"--snapshot-log-bytes", "60000", "--snapshot-trailing", "10"};
    return options;
  }
  std::string data(int node) const { return absl::StrCat(cluster_->dir(), "/c", node + 1); }
  bool has_snapshot(int node) const {
    std::error_code error;
    for (const auto& file : std::filesystem::directory_iterator(data(node) + "/snapshots", error))
      if (file.path().extension() == ".snap") return true;
    return false;
  }
  // Log of the controller, for what it says.
  std::string said(int node) const {
    return read_file(absl::StrCat(cluster_->dir(), "/logs/controller", node + 1, ".log"));
  }
  void submit(Client* client, int n) {
    for (int i = 0; i < n; ++i) {
      const std::string name = absl::StrCat("job-", acknowledged_.size());
      const int64_t id = client->submit("true", name, cluster_->dir(), "key-" + name);
      ASSERT_GT(id, 0) << xce_errname(static_cast<int>(id));
      ASSERT_TRUE(acknowledged_.emplace(id, name).second) << "id " << id << " was given twice";
    }
  }
  void expect_everything() {
    Client client(cluster_->masters());
    const auto jobs = client.jobs();
    EXPECT_EQ(jobs.size(), acknowledged_.size());
    for (const auto& [id, name] : acknowledged_) {
      ASSERT_TRUE(jobs.count(id)) << "acknowledged job " << id << " is lost";
      EXPECT_EQ(jobs.at(id).name, name);
    }
  }
  std::map<int64_t, std::string> acknowledged_;
};

TEST_F(Snapshot, AStandbyThatWasAwayComesBackThroughOneAndCanLead) {
  start(options());
  const int primary = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(primary, 0);
  const int away = (primary + 1) % 3, other = (primary + 2) % 3;
  {
    Client client(cluster_->masters());
    submit(&client, 20);
    cluster_->controller(away).kill9();
    submit(&client, 600);
    ASSERT_TRUE(wait_until([&] { return has_snapshot(primary) && has_snapshot(other); },
                           milliseconds(20000)));
    ASSERT_TRUE(cluster_->start_controller(away).ok());
    ASSERT_TRUE(
        wait_until([&] { return said(away).find("installed the snapshot") != std::string::npos; },
                   milliseconds(20000)))
        << said(away);
    // Every write now needs the one that came back.
    cluster_->controller(other).kill9();
    submit(&client, 20);
    // And with the old primary gone, too, it is the only one that knows what was acknowledged last.
    ASSERT_TRUE(cluster_->start_controller(other).ok());
    submit(&client, 5);
    cluster_->controller(primary).kill9();
    submit(&client, 20);
  }
  expect_everything();
  // All three killed and started again, each from its own snapshot.
  ASSERT_TRUE(cluster_->start_controller(primary).ok());
  ASSERT_TRUE(wait_until([&] { return has_snapshot(away); }, milliseconds(20000)));
  for (int node = 0; node < 3; ++node) cluster_->controller(node).kill9();
  for (int node = 0; node < 3; ++node) ASSERT_TRUE(cluster_->start_controller(node).ok());
  ASSERT_GE(cluster_->wait_primary(-1, milliseconds(20000)), 0);
  expect_everything();
}

TEST_F(Snapshot, KillsAtAnyMomentLoseNothingAndDoNothingTwice) {
  start(options());
  constexpr int kKills = 15;
  std::atomic<int> submitted{0};
  std::atomic<bool> stop{false};
  std::thread submitter([&] {
    Client client(cluster_->masters(), 60000);
    while (!stop && !HasFatalFailure()) {
      submit(&client, 1);
      ++submitted;
    }
  });
  for (int kill = 0; kill < kKills; ++kill) {
    // A snapshot comes about every 0.1 s here: kills meet every stage of taking, sending and
    // installing one.
    const int node = kill % 4 == 3 ? cluster_->wait_primary(-1, milliseconds(10000)) : kill % 3;
    EXPECT_GE(node, 0);
    if (node < 0) break;
    cluster_->controller(node).kill9();
    int enough = submitted + 20 + 90 * (kill % 4);
    EXPECT_TRUE(wait_until([&] { return submitted >= enough; }, milliseconds(20000)));
    EXPECT_TRUE(cluster_->start_controller(node).ok());
    enough = submitted + 60 + 17 * (kill % 5);
    EXPECT_TRUE(wait_until([&] { return submitted >= enough; }, milliseconds(20000)));
  }
  stop = true;
  submitter.join();
  ASSERT_GE(cluster_->wait_primary(-1, milliseconds(20000)), 0);
  expect_everything();
  for (int node = 0; node < 3; ++node)
    EXPECT_TRUE(cluster_->controller(node).alive()) << said(node);
}

TEST_F(Snapshot, KeysAndJobsOutliveTheLogThatHeldThem) {
  ClusterOptions one = options();
  one.controllers = 1;
  start(one);
  {
    Client client(cluster_->masters());
    submit(&client, 600);
  }
  ASSERT_TRUE(wait_until([&] { return has_snapshot(0); }, milliseconds(20000)));
  cluster_->controller(0).kill9();
  ASSERT_TRUE(cluster_->start_controller(0).ok());
  ASSERT_GE(cluster_->wait_primary(-1, milliseconds(20000)), 0);
  EXPECT_NE(said(0).find("read the snapshot"), std::string::npos) << said(0);
  expect_everything();
  Client client(cluster_->masters());
  EXPECT_EQ(client.submit("true", "job-0", cluster_->dir(), "key-job-0"), -E_XCE_DUP_JOB);
  submit(&client, 5);
  expect_everything();
}

}  // namespace
}  // namespace xce::e2e
