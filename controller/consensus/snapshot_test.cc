// Whole nodes and their snapshots: the log gets shorter, restarts work, a crash at any step of
// taking or installing one loses nothing, and a node that was away for too long comes back through
// one and can then lead.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "controller/consensus/faulty_file_system.h"
#include "controller/consensus/test_cluster.h"

namespace xce::consensus {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSegment = 64 << 10;

class SnapshotTest : public testing::Test {
 protected:
  void build(unsigned n) {
    cluster_ = std::make_unique<TestCluster>(n, kSegment);
    Options& options = cluster_->shared_options();
    options.snapshot_log_bytes = 200 << 10;
    options.snapshot_trailing = 10;
    options.snapshot_retry_ms = 100;
  }
  TestNode& node(NodeId id) { return cluster_->node(id); }
  std::string data_dir(NodeId id) { return cluster_->options(id).data_dir; }
  // Proposes entries of 4 kB.
  void propose(int n) {
    TestNode* const leader = cluster_->wait_for_leader();
    ASSERT_NE(leader, nullptr);
    int done = 0;
    for (int i = 0; i < n; i++) {
      leader->consensus->propose("entry " + std::to_string(next_++) + std::string(4000, 'x'),
                                 [&](Outcome outcome) {
                                   EXPECT_EQ(outcome.kind, Outcome::kApplied);
                                   done++;
                                 });
      if (i % 8 == 7) {
        ASSERT_TRUE(cluster_->run_until([&] { return done == i + 1; }));
      }
    }
    ASSERT_TRUE(cluster_->run_until([&] { return done == n; }));
  }
  bool wait_for_snapshot(NodeId id, uint64_t above = 0) {
    return cluster_->run_until([&] { return node(id).consensus->snapshot_index() > above; });
  }
  static bool first_segment_there(const std::string& data) {
    return fs::exists(data + "/log/segment-000000000001.log");
  }
  static std::vector<std::string> snapshots(const std::string& data) {
    std::vector<std::string> out;
    for (const auto& file : fs::directory_iterator(data + "/snapshots")) out.push_back(file.path());
    std::sort(out.begin(), out.end());
    return out;
  }

  std::unique_ptr<TestCluster> cluster_;
  int next_ = 0;
};

TEST_F(SnapshotTest, TheLogGetsShorterAndARestartWorks) {
  build(1);
  cluster_->start_all();
  propose(200);
  ASSERT_TRUE(wait_for_snapshot(1));
  propose(100);
  ASSERT_TRUE(cluster_->run_until([&] { return !first_segment_there(data_dir(1)); }));
  EXPECT_GT(node(1).consensus->first_index(), 1u);
  ASSERT_TRUE(cluster_->run_until([&] { return snapshots(data_dir(1)).size() <= 2; }));
  for (int round = 0; round < 3; round++) {
    const auto before = node(1).applied;
    node(1).kill();
    ASSERT_TRUE(cluster_->start(1).ok());
    EXPECT_EQ(node(1).restores, 1);
    ASSERT_NE(cluster_->wait_for_leader(), nullptr);
    ASSERT_TRUE(cluster_->run_until([&] { return node(1).applied.size() >= before.size(); }));
    EXPECT_EQ(node(1).applied, before);
    propose(60);
  }
}

TEST_F(SnapshotTest, AllOfThreeTakeThemAndGoOnAfterFailovers) {
  build(3);
  cluster_->start_all();
  cluster_->settle();
  for (int round = 0; round < 3; round++) {
    propose(150);
    for (NodeId id = 1; id <= 3; id++) ASSERT_TRUE(wait_for_snapshot(id));
    TestNode* const leader = cluster_->settle();
    const NodeId id = leader->id();
    leader->kill();
    ASSERT_NE(cluster_->wait_for_leader(), nullptr);
    propose(20);
    ASSERT_TRUE(cluster_->start(id).ok());
    cluster_->settle();
  }
  EXPECT_EQ(node(1).applied.size(), static_cast<size_t>(next_));
}

// ---- taking, interrupted

class TakeStep : public SnapshotTest, public testing::WithParamInterface<SnapshotStep> {};

TEST_P(TakeStep, AKilledChildChangesNothingAndTheNextOneSucceeds) {
  build(1);
  const std::string flag = cluster_->path() + "/kill";
  std::ofstream(flag) << "x";
  cluster_->shared_options().snapshot_hook = [flag, at = GetParam()](SnapshotStep step) {
    if (step == at && fs::exists(flag)) ::raise(SIGKILL);
    return 0;
  };
  cluster_->start_all();
  propose(100);
  cluster_->run_for(200);
  EXPECT_EQ(node(1).consensus->snapshot_index(), 0u);
  EXPECT_TRUE(node(1).fatal.ok()) << node(1).fatal;
  EXPECT_TRUE(first_segment_there(data_dir(1)));
  const auto before = node(1).applied;
  node(1).kill();
  ASSERT_TRUE(cluster_->start(1).ok());
  ASSERT_NE(cluster_->wait_for_leader(), nullptr);
  EXPECT_EQ(node(1).applied, before);
  fs::remove(flag);
  propose(100);
  EXPECT_TRUE(wait_for_snapshot(1));
}

TEST_P(TakeStep, AFullDiskChangesNothingAndTheNextOneSucceeds) {
  build(1);
  const std::string flag = cluster_->path() + "/full";
  std::ofstream(flag) << "x";
  cluster_->shared_options().snapshot_hook = [flag, at = GetParam()](SnapshotStep step) {
    return step == at && fs::exists(flag) ? ENOSPC : 0;
  };
  cluster_->start_all();
  propose(100);
  cluster_->run_for(200);
  EXPECT_EQ(node(1).consensus->snapshot_index(), 0u);
  EXPECT_TRUE(node(1).fatal.ok()) << node(1).fatal;
  fs::remove(flag);
  propose(60);
  EXPECT_TRUE(wait_for_snapshot(1));
  node(1).kill();
  for (const std::string& file : snapshots(data_dir(1)))
    EXPECT_EQ(file.find(".tmp"), std::string::npos) << file;
}

// The whole data directory as a kill -9 of the process at that step leaves it.
TEST_P(TakeStep, ACrashOfTheProcessLosesNothing) {
  build(1);
  const std::string data = data_dir(1);
  const std::string copy = cluster_->path() + "/copy";
  cluster_->shared_options().snapshot_hook = [data, copy, at = GetParam()](SnapshotStep step) {
    std::error_code error;
    if (step == at && !fs::exists(copy)) fs::copy(data, copy, fs::copy_options::recursive, error);
    return 0;
  };
  cluster_->start_all();
  propose(52);
  ASSERT_TRUE(wait_for_snapshot(1));
  const auto before = node(1).applied;
  node(1).kill();
  ASSERT_TRUE(fs::exists(copy));
  fs::remove_all(data);
  fs::rename(copy, data);
  ASSERT_TRUE(cluster_->start(1).ok());
  ASSERT_NE(cluster_->wait_for_leader(), nullptr);
  // Entries acknowledged before the snapshot began are there; later ones may have come after the
  // copy.
  ASSERT_GE(node(1).applied.size(), 45u);
  for (const auto& [index, entry] : node(1).applied)
    EXPECT_EQ(entry.second, before.at(index).second);
  propose(100);
  EXPECT_TRUE(wait_for_snapshot(1));
}

INSTANTIATE_TEST_SUITE_P(Steps, TakeStep,
                         testing::Values(SnapshotStep::kTakeForked, SnapshotStep::kTakeCreated,
                                         SnapshotStep::kTakeWritten, SnapshotStep::kTakeSynced,
                                         SnapshotStep::kTakeRenamed));

TEST_F(SnapshotTest, ACrashBeforeTheLogIsShortenedLosesNothing) {
  build(1);
  cluster_->shared_options().snapshot_hook = [](SnapshotStep step) {
    return step == SnapshotStep::kTakeDone ? EIO : 0;
  };
  cluster_->start_all();
  propose(100);
  ASSERT_TRUE(cluster_->run_until([&] {
    return !snapshots(data_dir(1)).empty() &&
           snapshots(data_dir(1))[0].find(".snap") != std::string::npos;
  }));
  const auto before = node(1).applied;
  node(1).kill();
  cluster_->shared_options().snapshot_hook = nullptr;
  ASSERT_TRUE(cluster_->start(1).ok());
  EXPECT_EQ(node(1).restores, 1);
  ASSERT_NE(cluster_->wait_for_leader(), nullptr);
  EXPECT_EQ(node(1).applied, before);
  propose(100);
}

// ---- damage

TEST_F(SnapshotTest, ADamagedSnapshotThatTheLogNoLongerCoversStopsTheStart) {
  build(1);
  cluster_->start_all();
  propose(300);
  ASSERT_TRUE(cluster_->run_until([&] { return !first_segment_there(data_dir(1)); }));
  cluster_->run_for(200);
  node(1).kill();
  const std::vector<std::string> files = snapshots(data_dir(1));
  ASSERT_FALSE(files.empty());
  for (const std::string& file : files) {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(5000);
    out << "damage";
  }
  const absl::Status status = cluster_->start(1);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.ToString().find(files.back()), std::string::npos) << status;
  EXPECT_NE(status.ToString().find("xce cluster replace"), std::string::npos) << status;
  for (const std::string& file : files) fs::remove(file);
  const absl::Status missing = cluster_->start(1);
  EXPECT_TRUE(absl::IsDataLoss(missing)) << missing;
  EXPECT_NE(missing.ToString().find("has no snapshot"), std::string::npos) << missing;
}

TEST_F(SnapshotTest, ADamagedSnapshotThatTheLogStillCoversIsPassedOver) {
  build(1);
  cluster_->shared_options().snapshot_trailing = 100000;
  cluster_->start_all();
  propose(100);
  ASSERT_TRUE(wait_for_snapshot(1));
  const auto before = node(1).applied;
  node(1).kill();
  std::fstream(snapshots(data_dir(1)).back(), std::ios::in | std::ios::out | std::ios::binary)
          .seekp(9000)
      << "damage";
  ASSERT_TRUE(cluster_->start(1).ok());
  EXPECT_EQ(node(1).restores, 0);
  ASSERT_NE(cluster_->wait_for_leader(), nullptr);
  EXPECT_EQ(node(1).applied, before);
  propose(100);
  EXPECT_TRUE(wait_for_snapshot(1));
}

// ---- installing

class InstallTest : public SnapshotTest {
 protected:
  // Three nodes, of which the third is away until the others have forgotten what it needs.
  void build_and_leave_behind(bool ever_there, bool proxies = false) {
    build(3);
    if (proxies) cluster_->use_proxies();
    if (ever_there) {
      cluster_->start_all();
      cluster_->settle();
      propose(5);
      ASSERT_TRUE(cluster_->wait_until_equal());
      node(3).kill();
    } else {
      ASSERT_TRUE(cluster_->start(1).ok());
      ASSERT_TRUE(cluster_->start(2).ok());
    }
    propose(200);
    ASSERT_TRUE(wait_for_snapshot(1));
    ASSERT_TRUE(wait_for_snapshot(2));
    propose(100);
    ASSERT_TRUE(cluster_->run_until([&] {
      return node(1).consensus->first_index() > 50 && node(2).consensus->first_index() > 50;
    }));
  }
  void expect_three_equal_and_any_can_lead() {
    ASSERT_TRUE(cluster_->run_until(
        [&] { return cluster_->leader() != nullptr && cluster_->all_connected(); }));
    propose(5);
    ASSERT_TRUE(cluster_->wait_until_equal());
    EXPECT_EQ(node(3).applied.size(), static_cast<size_t>(next_));
    for (const NodeId id : {3, 1, 3}) {
      TestNode* const leader = cluster_->wait_for_leader();
      ASSERT_NE(leader, nullptr);
      if (leader->id() != id) {
        leader->consensus->transfer(id, [](absl::Status) {});
        ASSERT_TRUE(cluster_->run_until([&] { return node(id).leads(); }));
      }
      propose(60);
      ASSERT_TRUE(cluster_->wait_until_equal());
    }
    EXPECT_EQ(node(1).applied.size(), static_cast<size_t>(next_));
  }
};

TEST_F(InstallTest, ANodeThatWasAwayForTooLongCatchesUpAndCanLead) {
  build_and_leave_behind(true);
  ASSERT_TRUE(cluster_->start(3).ok());
  ASSERT_TRUE(cluster_->wait_until_equal());
  EXPECT_GE(node(3).restores, 1);
  EXPECT_LE(node(3).restores, 2);  // one that was being taken may follow the first
  EXPECT_GT(node(3).consensus->snapshot_index(), 0u);
  expect_three_equal_and_any_can_lead();
  // And it starts again from what it has got.
  node(3).kill();
  ASSERT_TRUE(cluster_->start(3).ok());
  EXPECT_EQ(node(3).restores, 1);
  cluster_->settle();
  expect_three_equal_and_any_can_lead();
}

TEST_F(InstallTest, ANodeThatIsNewCatchesUpAndCanLead) {
  build_and_leave_behind(false);
  ASSERT_TRUE(cluster_->start(3).ok());
  ASSERT_TRUE(cluster_->wait_until_equal());
  EXPECT_GE(node(3).restores, 1);
  expect_three_equal_and_any_can_lead();
}

TEST_F(InstallTest, ALargeSnapshotDeposesNobody) {
  build(3);
  cluster_->shared_options().snapshot_log_bytes = 4 << 20;
  ASSERT_TRUE(cluster_->start(1).ok());
  ASSERT_TRUE(cluster_->start(2).ok());
  propose(5000);
  ASSERT_TRUE(wait_for_snapshot(1));
  ASSERT_TRUE(wait_for_snapshot(2));
  const uint64_t term = cluster_->leader()->consensus->role().term;
  ASSERT_TRUE(cluster_->start(3).ok());
  ASSERT_TRUE(cluster_->run_until([&] { return node(3).restores == 1; }));
  ASSERT_TRUE(cluster_->wait_until_equal());
  EXPECT_EQ(cluster_->leader()->consensus->role().term, term);
}

TEST_F(InstallTest, ABrokenConnectionMeansToStartAnew) {
  std::atomic<int> pieces{0};
  build(3);
  cluster_->use_proxies();
  ASSERT_TRUE(cluster_->start(1).ok());
  ASSERT_TRUE(cluster_->start(2).ok());
  propose(400);
  ASSERT_TRUE(cluster_->run_until([&] {
    return node(1).consensus->first_index() > 50 && node(2).consensus->first_index() > 50;
  }));
  cluster_->shared_options().snapshot_hook = [&](SnapshotStep step) {
    if (step == SnapshotStep::kInstallPiece) pieces++;
    return 0;
  };
  ASSERT_TRUE(cluster_->start(3).ok());
  for (int cut = 1; cut <= 3; cut++) {
    const int before = pieces;
    ASSERT_TRUE(cluster_->run_until([&] { return pieces > before || node(3).restores > 0; }));
    cluster_->with_links_of(3, [](TestProxy& link) { link.cut(); });
    cluster_->run_for(50);
    cluster_->with_links_of(3, [](TestProxy& link) { link.heal(); });
  }
  ASSERT_TRUE(cluster_->run_until([&] { return node(3).restores > 0; }, 20000));
  cluster_->settle();
  expect_three_equal_and_any_can_lead();
}

class InstallStep : public InstallTest, public testing::WithParamInterface<SnapshotStep> {};

TEST_P(InstallStep, ACrashOfTheProcessLosesNothing) {
  build_and_leave_behind(true);
  const std::string data = data_dir(3);
  const std::string copy = cluster_->path() + "/copy";
  std::atomic<bool> copied{false};
  std::promise<void> dying;
  const std::thread::id loop = std::this_thread::get_id();
  cluster_->shared_options().snapshot_hook =
      [&, at = GetParam(), dies = dying.get_future().share()](SnapshotStep step) {
        if (step == at && !copied) {
          std::error_code error;
          fs::copy(data, copy, fs::copy_options::recursive, error);
          EXPECT_FALSE(error) << error.message();
          copied = true;
          // It dies here: were it to go on, it could tell the primary that it has what the copy
          // lacks, and no node that forgets what it has acknowledged is ever sent that again.
          if (std::this_thread::get_id() != loop) dies.wait();
        }
        return 0;
      };
  ASSERT_TRUE(cluster_->start(3).ok());
  ASSERT_TRUE(cluster_->run_until([&] { return copied.load(); }));
  dying.set_value();
  node(3).kill();
  fs::remove_all(data);
  fs::rename(copy, data);
  const absl::Status status = cluster_->start(3);
  ASSERT_TRUE(status.ok()) << status;
  cluster_->settle();
  expect_three_equal_and_any_can_lead();
}

TEST_P(InstallStep, AFullDiskIsToldAndTheNextOneSucceeds) {
  build_and_leave_behind(true);
  if (GetParam() == SnapshotStep::kInstallTaken) return;  // nothing more is written
  std::atomic<int> failures{0};
  cluster_->shared_options().snapshot_hook = [&, at = GetParam()](SnapshotStep step) {
    return step == at && failures++ == 0 ? ENOSPC : 0;
  };
  ASSERT_TRUE(cluster_->start(3).ok());
  ASSERT_TRUE(cluster_->run_until([&] { return node(3).restores > 0; }, 20000));
  EXPECT_GE(failures, 1);
  cluster_->settle();
  expect_three_equal_and_any_can_lead();
}

INSTANTIATE_TEST_SUITE_P(Steps, InstallStep,
                         testing::Values(SnapshotStep::kInstallBegun, SnapshotStep::kInstallPiece,
                                         SnapshotStep::kInstallReceived,
                                         SnapshotStep::kInstallLoaded,
                                         SnapshotStep::kInstallRenamed,
                                         SnapshotStep::kInstallTaken));

}  // namespace
}  // namespace xce::consensus
