// Whole nodes in trouble: slow, full and broken disks, cut and frozen networks, lost directories.
// Above all the rules that the Raft core leaves to its caller.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "controller/consensus/faulty_file_system.h"
#include "controller/consensus/test_cluster.h"

namespace xce::consensus {
namespace {

constexpr uint64_t kElectionMs = 300;

class TroubleTest : public testing::Test {
 protected:
  // n nodes, each with a disk of its own to break.
  void build(unsigned n, bool proxies) {
    disks_ = std::vector<FaultyFileSystem>(n);
    cluster_ = std::make_unique<TestCluster>(n);
    if (proxies) cluster_->use_proxies();
    for (unsigned i = 0; i < n; i++) cluster_->use_file_system(i + 1, &disks_[i]);
    cluster_->start_all();
    leader_ = cluster_->settle();
    ASSERT_NE(leader_, nullptr);
  }
  ~TroubleTest() override {
    for (FaultyFileSystem& disk : disks_) disk.release_writes();
  }
  FaultyFileSystem& disk(NodeId id) { return disks_[id - 1]; }
  TestNode& node(NodeId id) { return cluster_->node(id); }
  // The nodes other than the leader.
  std::vector<TestNode*> others() {
    std::vector<TestNode*> out;
    for (const auto& node : cluster_->nodes())
      if (node.get() != leader_) out.push_back(node.get());
    return out;
  }

  std::vector<FaultyFileSystem> disks_;
  std::unique_ptr<TestCluster> cluster_;
  TestNode* leader_ = nullptr;
};

// Rule: apply only up to min(commit, stored).
TEST_F(TroubleTest, WhatIsNotOnItsOwnDiskIsNotApplied) {
  build(3, false);
  TestNode* const slow = others()[0];
  disk(slow->id()).block_writes();
  const uint64_t before = slow->consensus->applied();
  EXPECT_EQ(cluster_->propose(*leader_, "x").kind, Outcome::kApplied);
  // It has the entry and knows that it is committed; only its disk has not answered.
  ASSERT_TRUE(cluster_->run_until([&] { return slow->consensus->commit() > before; }));
  EXPECT_EQ(slow->consensus->applied(), before);
  for (const PeerStatus& peer : leader_->consensus->peers()) {
    if (peer.id == slow->id()) {
      EXPECT_EQ(peer.match_index, before) << "it acknowledged what it does not have";
    }
  }
  disk(slow->id()).release_writes();
  EXPECT_TRUE(cluster_->wait_until_equal());
}

// The same for the leader: two others have it on disk, but the leader has not.
TEST_F(TroubleTest, ALeaderWithASlowDiskWaitsForIt) {
  build(3, false);
  disk(leader_->id()).block_writes();
  Outcome outcome;
  bool told = false;
  leader_->consensus->propose("x", [&](Outcome o) {
    outcome = o;
    told = true;
  });
  const uint64_t last = leader_->consensus->last_index();
  ASSERT_TRUE(cluster_->run_until([&] { return leader_->consensus->commit() > last; }));
  EXPECT_FALSE(told);
  disk(leader_->id()).release_writes();
  ASSERT_TRUE(cluster_->run_until([&] { return told; }));
  EXPECT_EQ(outcome.kind, Outcome::kApplied);
}

// But not for ever: after a while another one, whose disk works, leads.
TEST_F(TroubleTest, ALeaderWhoseDiskStallsHandsOver) {
  build(3, false);
  TestNode* const stalled = leader_;
  disk(stalled->id()).block_writes();
  int outcomes = 0;
  stalled->consensus->propose("x", [&](Outcome o) {
    outcomes++;
    EXPECT_NE(o.kind, Outcome::kNotApplied);
  });
  ASSERT_TRUE(cluster_->run_until([&] {
    for (TestNode* other : others())
      if (other->leads()) return true;
    return false;
  }));
  TestNode* const next = cluster_->leader();
  ASSERT_NE(next, stalled);
  EXPECT_EQ(cluster_->propose(*next, "y").kind, Outcome::kApplied);
  disk(stalled->id()).release_writes();
  EXPECT_TRUE(cluster_->wait_until_equal());
  EXPECT_EQ(next->entries(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(outcomes, 1);
}

// Where every disk stalls, the role stays.
TEST_F(TroubleTest, ALeaderWhoseDiskIsNoSlowerThanTheOthersStays) {
  build(3, false);
  for (NodeId id = 1; id <= 3; id++) disk(id).block_writes();
  bool told = false;
  leader_->consensus->propose("x", [&](Outcome) { told = true; });
  cluster_->run_for(2500);
  EXPECT_TRUE(leader_->leads());
  for (NodeId id = 1; id <= 3; id++) disk(id).release_writes();
  EXPECT_TRUE(cluster_->run_until([&] { return told; }));
}

// Rule: no message leaves before the term and vote that it rests on are durable. First the
// candidate's own vote.
TEST_F(TroubleTest, NoVoteIsAskedForBeforeTheTermIsOnDisk) {
  build(3, false);
  // Logs are equal, so the higher id stands.
  TestNode* const stands = others()[1];
  TestNode* const votes = others()[0];
  disk(stands->id()).block_writes();
  const uint64_t term = leader_->consensus->role().term;
  leader_->kill();
  ASSERT_TRUE(
      cluster_->run_until([&] { return stands->consensus->role().role == Role::kCandidate; }));
  cluster_->run_for(100);
  EXPECT_EQ(votes->consensus->role().term, term)
      << "it was asked for its vote in a term that is on no disk";
  disk(stands->id()).release_writes();
  EXPECT_TRUE(cluster_->run_until([&] { return stands->leads() || votes->leads(); }));
}

// Then the vote that is given.
TEST_F(TroubleTest, NoVoteIsGivenBeforeItIsOnDisk) {
  build(3, false);
  TestNode* const stands = others()[1];
  TestNode* const votes = others()[0];
  disk(votes->id()).block_writes();
  const uint64_t term = leader_->consensus->role().term;
  leader_->kill();
  ASSERT_TRUE(cluster_->run_until([&] { return votes->consensus->role().term > term; }));
  cluster_->run_for(100);
  EXPECT_NE(stands->consensus->role().role, Role::kLeader)
      << "it won with a vote that is on no disk";
  disk(votes->id()).release_writes();
  EXPECT_TRUE(cluster_->run_until([&] { return stands->leads() || votes->leads(); }));
}

// The fast failover is asked for again after each write: the core ignores it while entries are on
// their way to disk.
TEST_F(TroubleTest, AStandbyThatIsWritingStandsOnceItHasWritten) {
  build(3, false);
  TestNode* const behind = others()[0];
  TestNode* const stands = others()[1];
  disk(stands->id()).block_writes();
  disk(behind->id()).block_writes();
  leader_->consensus->propose("x", [](Outcome) {});
  const uint64_t last = leader_->consensus->last_index();
  ASSERT_TRUE(cluster_->run_until([&] {
    return stands->consensus->last_index() > last && behind->consensus->last_index() > last;
  }));
  const uint64_t term = leader_->consensus->role().term;
  leader_->kill();
  cluster_->run_for(50);
  EXPECT_EQ(stands->consensus->role().role, Role::kFollower);
  disk(behind->id()).release_writes();
  disk(stands->id()).release_writes();
  const uint64_t start = uv_hrtime();
  ASSERT_TRUE(cluster_->run_until([&] { return stands->leads() || behind->leads(); }));
  EXPECT_LT((uv_hrtime() - start) / 1000000, kElectionMs / 2) << "only the timer did it";
  EXPECT_EQ(cluster_->leader()->consensus->role().term, term + 1);
  EXPECT_EQ(cluster_->leader()->entries(), std::vector<std::string>{"x"});
}

// Rule: a completion for entries that a truncation has superseded is dropped.
TEST_F(TroubleTest, AWriteThatATruncationHasOvertakenDoesNotCount) {
  build(5, true);
  TestNode* const victim = others()[0];
  // Only the victim hears of what the old leader proposes last, and its disk is slow.
  for (TestNode* other : others())
    if (other != victim) cluster_->link(leader_->id(), other->id()).cut();
  disk(victim->id()).block_writes();
  const uint64_t last = leader_->consensus->last_index();
  int unknown = 0;
  for (int i = 0; i < 5; i++)
    leader_->consensus->propose("lost " + std::to_string(i),
                                [&](Outcome o) { unknown += o.kind == Outcome::kUnknown; });
  ASSERT_TRUE(cluster_->run_until([&] { return victim->consensus->last_index() == last + 5; }));
  const NodeId old = leader_->id();
  leader_->kill();
  EXPECT_EQ(unknown, 5);
  // The victim's log is the longest, but it cannot stand; the others outvote it.
  ASSERT_TRUE(cluster_->run_until([&] { return cluster_->leader() != nullptr; }));
  ASSERT_NE(cluster_->leader(), victim);
  EXPECT_EQ(cluster_->propose(*cluster_->leader(), "kept").kind, Outcome::kApplied);
  // By now the victim's log has been truncated, with the old write still under way.
  ASSERT_TRUE(cluster_->run_until([&] { return victim->consensus->commit() > last; }));
  EXPECT_TRUE(victim->applied.empty());
  disk(victim->id()).release_writes();
  ASSERT_TRUE(cluster_->wait_until_equal());
  EXPECT_EQ(victim->entries(), std::vector<std::string>{"kept"});
  // The old leader has the lost entries on disk; it drops them as well, and so does a restart.
  cluster_->with_links_of(old, [](TestProxy& link) { link.heal(); });
  ASSERT_TRUE(cluster_->start(old).ok());
  victim->kill();
  ASSERT_TRUE(cluster_->start(victim->id()).ok());
  ASSERT_TRUE(cluster_->wait_until_equal());
  EXPECT_EQ(node(old).entries(), std::vector<std::string>{"kept"});
  EXPECT_EQ(victim->entries(), std::vector<std::string>{"kept"});
}

TEST_F(TroubleTest, AStandbyThatAloneHasLostThePrimaryChangesNothing) {
  build(3, true);
  TestNode* const alone = others()[0];
  const uint64_t term = leader_->consensus->role().term;
  cluster_->link(leader_->id(), alone->id()).cut();
  cluster_->link(alone->id(), leader_->id()).cut();
  cluster_->run_for(4 * kElectionMs);
  EXPECT_TRUE(leader_->leads());
  EXPECT_EQ(leader_->consensus->role().term, term);
  EXPECT_EQ(alone->consensus->role().term, term);
  EXPECT_EQ(cluster_->propose(*leader_, "x").kind, Outcome::kApplied);
  cluster_->link(leader_->id(), alone->id()).heal();
  cluster_->link(alone->id(), leader_->id()).heal();
  EXPECT_TRUE(cluster_->wait_until_equal());
  EXPECT_EQ(leader_->consensus->role().term, term);
}

TEST_F(TroubleTest, ACutInOneDirectionChangesNothing) {
  for (const bool to_leader : {false, true}) {
    build(3, true);
    TestNode* const alone = others()[0];
    const uint64_t term = leader_->consensus->role().term;
    TestProxy& link = to_leader ? cluster_->link(alone->id(), leader_->id())
                                : cluster_->link(leader_->id(), alone->id());
    link.cut();
    cluster_->run_for(3 * kElectionMs);
    EXPECT_TRUE(leader_->leads());
    EXPECT_EQ(leader_->consensus->role().term, term);
    link.heal();
    EXPECT_TRUE(cluster_->wait_until_equal());
    EXPECT_EQ(leader_->consensus->role().term, term);
    cluster_.reset();
  }
}

// A paused process or machine: nothing ends, nothing passes. The timer's turn.
TEST_F(TroubleTest, AFrozenPrimaryIsReplacedByTheTimer) {
  build(3, true);
  TestNode* const frozen = leader_;
  const uint64_t start = uv_hrtime();
  cluster_->with_links_of(frozen->id(), [](TestProxy& link) { link.freeze(); });
  ASSERT_TRUE(cluster_->run_until([&] {
    for (TestNode* other : others())
      if (other->leads()) return true;
    return false;
  }));
  printf("frozen to ready: %d ms\n", static_cast<int>((uv_hrtime() - start) / 1000000));
  // What the old one still believes does no harm: it cannot serve a read.
  int answer = -1;
  frozen->consensus->barrier([&](bool ok) { answer = ok; });
  ASSERT_TRUE(cluster_->run_until([&] { return answer != -1; }));
  EXPECT_EQ(answer, 0);
  cluster_->with_links_of(frozen->id(), [](TestProxy& link) { link.heal(); });
  EXPECT_TRUE(cluster_->wait_until_equal());
}

TEST_F(TroubleTest, APrimaryWithAFullDiskStopsAndTheOthersGoOn) {
  build(3, false);
  EXPECT_EQ(cluster_->propose(*leader_, "before").kind, Outcome::kApplied);
  disk(leader_->id()).fail_writes(ENOSPC);
  // The others may commit it; what became of it this node cannot tell.
  EXPECT_EQ(cluster_->propose(*leader_, "during").kind, Outcome::kUnknown);
  EXPECT_EQ(leader_->consensus->role().role, Role::kUnavailable);
  EXPECT_TRUE(absl::IsResourceExhausted(leader_->fatal)) << leader_->fatal;
  EXPECT_NE(leader_->fatal.ToString().find(cluster_->path()), std::string::npos) << leader_->fatal;
  EXPECT_EQ(cluster_->propose(*leader_, "after").kind, Outcome::kNotApplied);
  const uint64_t start = uv_hrtime();
  ASSERT_TRUE(cluster_->run_until([&] { return cluster_->leader() != nullptr; }));
  EXPECT_LT((uv_hrtime() - start) / 1000000, kElectionMs)
      << "it says that it has stopped, so nobody need wait";
  EXPECT_EQ(cluster_->propose(*cluster_->leader(), "go on").kind, Outcome::kApplied);
  // Space is made, the node is started again.
  disk(leader_->id()).fail_writes(0);
  const NodeId id = leader_->id();
  leader_->kill();
  ASSERT_TRUE(cluster_->start(id).ok());
  EXPECT_TRUE(cluster_->wait_until_equal());
}

TEST_F(TroubleTest, AStandbyWithABrokenDiskStopsAndThePrimaryStays) {
  build(3, false);
  TestNode* const broken = others()[0];
  disk(broken->id()).fail_writes(EIO);
  EXPECT_EQ(cluster_->propose(*leader_, "x").kind, Outcome::kApplied);
  ASSERT_TRUE(cluster_->run_until([&] { return !broken->fatal.ok(); }));
  EXPECT_TRUE(absl::IsDataLoss(broken->fatal)) << broken->fatal;
  EXPECT_EQ(cluster_->propose(*leader_, "y").kind, Outcome::kApplied);
  EXPECT_TRUE(leader_->leads());
}

TEST_F(TroubleTest, ShortWritesAreNoTrouble) {
  build(3, false);
  for (NodeId id = 1; id <= 3; id++) disk(id).shorten_writes(1000);
  EXPECT_EQ(cluster_->propose(*leader_, std::string(10000, 'x')).kind, Outcome::kApplied);
  EXPECT_TRUE(cluster_->wait_until_equal());
}

// A node that comes back with an empty directory would vote anew.
TEST_F(TroubleTest, AKnownNodeThatComesBackEmptyIsRefused) {
  build(3, false);
  TestNode* const wiped = others()[0];
  EXPECT_EQ(cluster_->propose(*leader_, "x").kind, Outcome::kApplied);
  ASSERT_TRUE(cluster_->wait_until_equal());
  const NodeId id = wiped->id();
  wiped->kill();
  std::filesystem::remove_all(cluster_->options(id).data_dir);
  ASSERT_TRUE(cluster_->start(id).ok());
  cluster_->run_for(3 * kElectionMs);
  EXPECT_TRUE(wiped->applied.empty());
  EXPECT_EQ(wiped->consensus->role().leader, 0u);
  EXPECT_TRUE(leader_->leads());
  for (const PeerStatus& peer : leader_->consensus->peers())
    EXPECT_EQ(peer.connected, peer.id != id);
  // Its vote counts for nothing, also when it is needed.
  for (TestNode* other : others())
    if (other != wiped) other->kill();
  cluster_->run_for(4 * kElectionMs);
  EXPECT_EQ(cluster_->leader(), nullptr);
}

// What lies there may be somebody's work, and a mistyped --data-dir must not mix with it.
TEST_F(TroubleTest, ADirectoryInOtherUseIsLeftAlone) {
  build(1, false);
  leader_->kill();
  Options options = cluster_->options(1);
  options.data_dir += "-other";
  std::filesystem::create_directory(options.data_dir);
  const std::filesystem::path homework = std::filesystem::path(options.data_dir) / "homework";
  std::filesystem::create_directory(homework);
  const absl::Status refused = leader_->start(options);
  EXPECT_NE(std::string(refused.message()).find("homework"), std::string::npos) << refused;
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(options.data_dir) / "identity"));
  std::filesystem::remove(homework);
  EXPECT_TRUE(leader_->start(options).ok());
}

TEST_F(TroubleTest, ANodeOfAnotherClusterIsRefused) {
  build(3, false);
  TestNode* const stranger = others()[0];
  const NodeId id = stranger->id();
  stranger->kill();
  Options options = cluster_->options(id);
  options.data_dir += "-other";
  options.peers[leader_->id() - 1].host =
      "localhost";  // another first entry, though the same place
  ASSERT_TRUE(stranger->start(options).ok());
  cluster_->run_for(2 * kElectionMs);
  EXPECT_EQ(stranger->consensus->role().leader, 0u);
  EXPECT_TRUE(leader_->leads());
}

TEST_F(TroubleTest, AFollowerFarBehindCatchesUp) {
  build(3, false);
  TestNode* const late = others()[0];
  const NodeId id = late->id();
  late->kill();
  int done = 0;
  for (int batch = 1; batch <= 40; batch++) {
    for (int i = 0; i < 500; i++)
      leader_->consensus->propose(std::string(900, 'e'),
                                  [&](Outcome o) { done += o.kind == Outcome::kApplied; });
    ASSERT_TRUE(cluster_->run_until([&] { return done == batch * 500; }));
  }
  for (int i = 0; i < 20; i++)
    ASSERT_EQ(cluster_->propose(*leader_, std::string(100000, 'b')).kind, Outcome::kApplied);
  ASSERT_TRUE(cluster_->start(id).ok());
  const uint64_t start = uv_hrtime();
  ASSERT_TRUE(cluster_->wait_until_equal());
  printf("caught up with 20 MB in %d ms\n", static_cast<int>((uv_hrtime() - start) / 1000000));
  EXPECT_EQ(late->applied.size(), 20020u);
}

}  // namespace
}  // namespace xce::consensus
