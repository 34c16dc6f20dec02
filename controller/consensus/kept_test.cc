// What a state machine keeps beside its snapshots (the history of ended jobs): a snapshot counts
// only once that is safe, a crash in between loses nothing, and another node gets both.
#include <gtest/gtest.h>

#include <filesystem>

#include "controller/consensus/test_cluster.h"

namespace xce::consensus {
namespace {

namespace fs = std::filesystem;

class KeptTest : public testing::Test {
 protected:
  void build(unsigned n) {
    cluster_ = std::make_unique<TestCluster>(n, 64 << 10);
    Options& options = cluster_->shared_options();
    options.snapshot_log_bytes = 200 << 10;
    options.snapshot_trailing = 10;
    options.snapshot_retry_ms = 100;
  }
  TestNode& node(NodeId id) { return cluster_->node(id); }
  std::string data_dir(NodeId id) { return cluster_->options(id).data_dir; }
  void propose(int n) {
    ASSERT_NE(cluster_->wait_for_leader(), nullptr);
    TestNode* const leader = cluster_->wait_for_leader();
    for (int i = 0; i < n; i++)
      ASSERT_EQ(
          cluster_->propose(*leader, "entry " + std::to_string(next_++) + std::string(4000, 'x'))
              .kind,
          Outcome::kApplied);
  }
  size_t files(NodeId id) {
    size_t n = 0;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(data_dir(id) + "/snapshots", error))
      n += file.path().extension() == ".snap";
    return n;
  }
  bool first_segment_there(NodeId id) {
    return fs::exists(data_dir(id) + "/log/segment-000000000001.log");
  }

  std::unique_ptr<TestCluster> cluster_;
  int next_ = 0;
};

TEST_F(KeptTest, TheLogStaysUntilBothAreSafe) {
  build(1);
  node(1).kept_upto = 0;
  cluster_->start_all();
  propose(60);
  ASSERT_TRUE(cluster_->run_until([&] { return files(1) == 1; }));
  EXPECT_GT(node(1).asked_to_keep, 0u);
  propose(60);
  cluster_->run_for(200);
  EXPECT_EQ(node(1).consensus->snapshot_index(), 0u);
  EXPECT_EQ(node(1).consensus->first_index(), 1u);
  EXPECT_TRUE(first_segment_there(1));
  EXPECT_EQ(files(1), 1u);  // no other one is begun meanwhile
  node(1).kept_upto = node(1).asked_to_keep;
  ASSERT_TRUE(cluster_->run_until([&] { return node(1).consensus->snapshot_index() > 0; }));
  EXPECT_GT(node(1).consensus->first_index(), 1u);
}

// The process dies after the snapshot has its name and before what it leaves out is safe.
TEST_F(KeptTest, ASnapshotWithoutWhatItLeavesOutIsNotUsed) {
  build(1);
  node(1).kept_upto = 0;
  cluster_->start_all();
  propose(60);
  ASSERT_TRUE(cluster_->run_until([&] { return files(1) == 1; }));
  const auto before = node(1).applied;
  node(1).kill();
  node(1).held_upto = 20;  // what the crash has left
  ASSERT_TRUE(cluster_->start(1).ok());
  EXPECT_EQ(node(1).restores, 0);  // from the log, all of it
  ASSERT_NE(cluster_->wait_for_leader(), nullptr);
  ASSERT_TRUE(cluster_->run_until([&] { return node(1).applied.size() >= before.size(); }));
  EXPECT_EQ(node(1).applied, before);
  node(1).held_upto = node(1).kept_upto = UINT64_MAX;
  propose(60);
  ASSERT_TRUE(cluster_->run_until([&] { return node(1).consensus->snapshot_index() > 0; }));
  node(1).kill();
  ASSERT_TRUE(cluster_->start(1).ok());
  EXPECT_EQ(node(1).restores, 1);
}

// Few large entries are as much memory as many small ones.
TEST_F(KeptTest, WhatStaysOfTheLogIsBoundedInBytes) {
  build(1);
  cluster_->shared_options().snapshot_trailing = 1000;
  cluster_->shared_options().snapshot_trailing_bytes = 20 << 10;  // four entries
  cluster_->start_all();
  propose(60);
  ASSERT_TRUE(cluster_->run_until([&] { return node(1).consensus->snapshot_index() > 0; }));
  const uint64_t snapshot = node(1).consensus->snapshot_index();
  EXPECT_GE(node(1).consensus->first_index(), snapshot - 5);
  EXPECT_LE(node(1).consensus->first_index(), snapshot);
}

TEST_F(KeptTest, ALostHistoryIsRefusedWithTheWayOut) {
  build(1);
  cluster_->start_all();
  propose(200);
  ASSERT_TRUE(cluster_->run_until([&] { return !first_segment_there(1); }));
  node(1).kill();
  node(1).held_upto = 0;
  const absl::Status status = cluster_->start(1);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("what is kept ends before the snapshot"),
            std::string::npos)
      << status;
  EXPECT_NE(std::string(status.message()).find("xce cluster replace"), std::string::npos);
}

TEST_F(KeptTest, ANodeThatWasAwayGetsItWithTheSnapshot) {
  build(3);
  for (NodeId id = 1; id <= 3; id++) {
    node(id).pack_directory = cluster_->path();
    node(id).to_pack = std::string(700000, static_cast<char>('a' + id));
  }
  cluster_->start_all();
  TestNode* const leader = cluster_->settle();
  const NodeId away = leader->id() % 3 + 1;
  node(away).kill();
  propose(150);
  ASSERT_TRUE(cluster_->run_until([&] { return leader->consensus->first_index() > 20; }));
  node(away).held_upto = 0;  // it must not load the snapshot before it has the rest
  node(away).told_upto = 77;
  ASSERT_TRUE(cluster_->start(away).ok());
  cluster_->settle();
  EXPECT_EQ(node(away).restores, 1);
  EXPECT_EQ(node(away).unpacked, leader->to_pack);
  EXPECT_EQ(leader->packed_after, 77u);
  EXPECT_EQ(node(away).applied, leader->applied);
  for (const auto& file : fs::recursive_directory_iterator(cluster_->path())) {
    const std::string name = file.path().filename();
    EXPECT_NE(name, "pack");
    EXPECT_NE(name.rfind("install-", 0), 0u) << name;
    EXPECT_NE(name.rfind("history-", 0), 0u) << name;
  }
}

TEST_F(KeptTest, ANodeWhoseDiskFailsBesideTheLogStopsServing) {
  build(3);
  cluster_->start_all();
  TestNode* const leader = cluster_->settle();
  leader->consensus->fail(absl::DataLossError("the history in /x cannot be written"));
  EXPECT_EQ(leader->consensus->role().role, Role::kUnavailable);
  EXPECT_NE(std::string(leader->fatal.message()).find("/x"), std::string::npos);
  ASSERT_TRUE(cluster_->run_until([&] {
    for (NodeId id = 1; id <= 3; id++)
      if (&node(id) != leader && node(id).leads()) return true;
    return false;
  }));
}

}  // namespace
}  // namespace xce::consensus
