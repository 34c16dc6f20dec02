// A few seconds of random trouble on a whole cluster, then the account: what was acknowledged is
// there, once and in order; what was refused is not; and no two nodes ever applied different
// entries at one index.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "controller/consensus/faulty_file_system.h"
#include "controller/consensus/test_cluster.h"

namespace xce::consensus {
namespace {

class Soak {
 public:
  // snapshot_log_bytes: 0 for a cluster that never takes a snapshot.
  Soak(uint64_t seed, size_t snapshot_log_bytes) : random_(seed), disks_(3), cluster_(3, 64 << 10) {
    cluster_.shared_options().snapshot_log_bytes = snapshot_log_bytes;
    cluster_.shared_options().snapshot_trailing = 5;
    cluster_.shared_options().snapshot_retry_ms = 50;
    cluster_.use_proxies();
    for (NodeId id = 1; id <= 3; id++) cluster_.use_file_system(id, &disks_[id - 1]);
    cluster_.start_all();
  }
  ~Soak() {
    for (FaultyFileSystem& disk : disks_) disk.release_writes();
  }

  void run(int steps) {
    for (int step = 0; step < steps; step++) {
      propose();
      if (random_() % 3 == 0) trouble();
      cluster_.run_for(random_() % 40);
      check_applied();
      if (testing::Test::HasFatalFailure()) return;
    }
    calm();
  }

  void account() {
    ASSERT_NE(cluster_.wait_for_leader(), nullptr);
    EXPECT_EQ(cluster_.propose(*cluster_.leader(), "last").kind, Outcome::kApplied);
    ASSERT_TRUE(cluster_.wait_until_equal());
    check_applied();
    const std::vector<std::string> entries = cluster_.leader()->entries();
    std::map<std::string, int> count;
    for (const std::string& entry : entries) count[entry]++;
    for (const std::string& entry : acknowledged_)
      EXPECT_EQ(count[entry], 1) << entry << " was acknowledged";
    for (const std::string& entry : refused_) EXPECT_EQ(count[entry], 0) << entry << " was refused";
    for (const auto& [entry, n] : count) EXPECT_LE(n, 1) << entry << " is there twice";
    printf("%zu acknowledged, %zu refused, %d unknown, %d reads, term %d\n", acknowledged_.size(),
           refused_.size(), unknown_, reads_,
           static_cast<int>(cluster_.leader()->consensus->role().term));
    EXPECT_GT(acknowledged_.size(), 50u);
  }

 private:
  void propose() {
    for (const auto& node : cluster_.nodes()) {
      if (!node->consensus || node->consensus->role().role != Role::kLeader) continue;
      const int n = static_cast<int>(random_() % 20);
      for (int i = 0; i < n; i++) {
        const std::string entry =
            "entry " + std::to_string(next_++) + std::string(random_() % 2000, '.');
        node->consensus->propose(entry, [this, entry](Outcome o) {
          if (o.kind == Outcome::kApplied) acknowledged_.push_back(entry);
          if (o.kind == Outcome::kNotApplied) refused_.insert(entry);
          if (o.kind == Outcome::kUnknown) unknown_++;
        });
      }
      // A read must see everything that had been acknowledged, by whomever, when it was asked.
      const size_t before = acknowledged_.size();
      TestNode* const raw = node.get();
      const uint64_t incarnation = incarnations_[raw->id()];
      node->consensus->barrier([this, before, raw, incarnation](bool ok) {
        if (!ok || incarnations_[raw->id()] != incarnation) return;
        reads_++;
        EXPECT_GE(raw->applied.size(), before) << "a stale read on node " << raw->id();
      });
    }
  }

  void trouble() {
    const NodeId id = 1 + random_() % 3;
    const NodeId other = 1 + (id - 1 + 1 + random_() % 2) % 3;
    TestNode& node = cluster_.node(id);
    switch (random_() % 9) {
      case 0:
      case 1:
        if (node.consensus) {
          // A stopping node tells its clients "unknown"; a killed one would tell them nothing.
          disks_[id - 1].release_writes();
          incarnations_[id]++;
          node.kill();
        }
        break;
      case 2: cluster_.with_links_of(id, [](TestProxy& link) { link.freeze(); }); break;
      case 3: cluster_.link(id, other).cut(); break;
      case 4: disks_[id - 1].block_writes(); break;
      case 5:
        if (node.leads())
          node.consensus->transfer(random_() % 2 == 0 ? 0 : other, [](absl::Status) {});
        break;
      default: calm();
    }
  }

  void calm() {
    for (FaultyFileSystem& disk : disks_) disk.release_writes();
    for (NodeId id = 1; id <= 3; id++) {
      cluster_.with_links_of(id, [](TestProxy& link) { link.heal(); });
      if (!cluster_.node(id).consensus) {
        const absl::Status status = cluster_.start(id);
        ASSERT_TRUE(status.ok()) << status;
      }
    }
  }

  void check_applied() {
    for (const auto& node : cluster_.nodes()) {
      for (const auto& [index, entry] : node->applied) {
        const auto [known, fresh] = history_.emplace(index, entry);
        ASSERT_EQ(known->second, entry) << "index " << index << " on node " << node->id();
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<FaultyFileSystem> disks_;
  int next_ = 0;
  std::vector<std::string> acknowledged_;
  std::set<std::string> refused_;
  int unknown_ = 0;
  int reads_ = 0;
  std::map<NodeId, uint64_t> incarnations_;
  std::map<uint64_t, std::pair<uint64_t, std::string>> history_;
  TestCluster cluster_;  // last: its end calls back
};

// XCE_SOAK_SEED=n runs that one seed, for longer.
void soak(size_t snapshot_log_bytes) {
  const char* const only = std::getenv("XCE_SOAK_SEED");
  const uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  for (uint64_t seed = first; seed < first + (only != nullptr ? 1 : 2); seed++) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Soak soak(seed, snapshot_log_bytes);
    soak.run(only != nullptr ? 1000 : 150);
    if (testing::Test::HasFatalFailure()) return;
    soak.account();
  }
}

TEST(SoakTest, NothingAcknowledgedIsLost) { soak(0); }
TEST(SoakTest, NothingAcknowledgedIsLostWithSnapshotsAllTheTime) { soak(60 << 10); }

}  // namespace
}  // namespace xce::consensus
