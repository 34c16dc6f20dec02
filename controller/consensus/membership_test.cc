// Whole nodes over real sockets: members come, go and are replaced, with primaries dying under it.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/consensus/test_cluster.h"

namespace xce::consensus {
namespace {

std::set<NodeId> voters(const TestNode& node) {
  std::set<NodeId> out;
  for (const Member& member : node.consensus->members().all)
    if (member.voter) out.insert(member.id);
  return out;
}

class MembershipTest : public testing::Test {
 protected:
  // Every node that runs and is a member says that these are the voters.
  bool all_agree(const std::set<NodeId>& expected) {
    return cluster_->run_until([&] {
      for (const auto& node : cluster_->nodes())
        if (node->consensus && expected.count(node->id()) != 0 && voters(*node) != expected)
          return false;
      return cluster_->leader() != nullptr;
    });
  }
  void start(unsigned n, size_t segment_bytes = size_t{256} << 10) {
    cluster_ = std::make_unique<TestCluster>(n, segment_bytes);
    cluster_->start_all();
    ASSERT_NE(cluster_->settle(), nullptr);
  }
  std::string propose_some(int n) {
    TestNode* const leader = cluster_->wait_for_leader();
    for (int i = 0; i < n; ++i)
      EXPECT_EQ(cluster_->propose(*leader, "entry " + std::to_string(next_++)).kind,
                Outcome::kApplied);
    return "entry " + std::to_string(next_ - 1);
  }

  std::unique_ptr<TestCluster> cluster_;
  int next_ = 0;
};

// Founded with --single, it did not say where the others find it.
TEST_F(MembershipTest, TheOnlyMemberSaysWhereItIs) {
  cluster_ = std::make_unique<TestCluster>(1);
  Options options = cluster_->options(1);
  options.peers = {{1, "localhost", 9990}};
  ASSERT_TRUE(cluster_->node(1).start(options).ok());
  ASSERT_NE(cluster_->wait_for_leader(), nullptr);
  propose_some(1);
  EXPECT_EQ(cluster_->node(1).consensus->members().all.front().port, 9990);
  cluster_->node(1).kill();
  options.advertise_host = "127.0.0.1";
  options.advertise_port = cluster_->node(1).port();
  ASSERT_TRUE(cluster_->node(1).start(options).ok());
  ASSERT_TRUE(cluster_->run_until([&] {
    return cluster_->node(1).consensus->members().all.front().port == options.advertise_port;
  }));
  propose_some(1);
  cluster_->add_node();
  ASSERT_TRUE(cluster_->start(2).ok());
  const absl::Status status = cluster_->change(cluster_->add(2));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(all_agree({1, 2}));
}

TEST_F(MembershipTest, GrowsFromOneToThree) {
  start(1);
  propose_some(3);
  for (NodeId id = 2; id <= 3; ++id) {
    cluster_->add_node();
    ASSERT_TRUE(cluster_->start(id).ok());
    const absl::Status status = cluster_->change(cluster_->add(id));
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_TRUE(all_agree({1, 2, 3}));
  // It is a cluster of three now: it survives its founder.
  const std::string last = propose_some(1);
  ASSERT_TRUE(cluster_->wait_until_equal());
  cluster_->node(1).kill();
  TestNode* const leader = cluster_->wait_for_leader();
  ASSERT_NE(leader, nullptr);
  EXPECT_EQ(leader->entries().back(), last);
  EXPECT_EQ(cluster_->propose(*leader, "after").kind, Outcome::kApplied);
  ASSERT_TRUE(cluster_->start(1).ok());
  EXPECT_TRUE(cluster_->wait_until_equal());
}

TEST_F(MembershipTest, GrowsToFiveAndShrinksToThreeThePrimaryIncluded) {
  start(3);
  for (NodeId id = 4; id <= 5; ++id) {
    cluster_->add_node();
    ASSERT_TRUE(cluster_->start(id).ok());
    const absl::Status status = cluster_->change(cluster_->add(id));
    ASSERT_TRUE(status.ok()) << status;
    propose_some(2);
  }
  EXPECT_TRUE(all_agree({1, 2, 3, 4, 5}));
  // Any two may die now.
  ASSERT_TRUE(cluster_->wait_until_equal());
  std::set<NodeId> left = {1, 2, 3, 4, 5};
  for (int i = 0; i < 2; ++i) {
    TestNode* const leader = cluster_->wait_for_leader();
    ASSERT_NE(leader, nullptr);
    const NodeId gone = leader->id();
    const absl::Status status = cluster_->change(TestCluster::remove(gone));
    ASSERT_TRUE(status.ok()) << status;
    left.erase(gone);
    EXPECT_TRUE(all_agree(left));
    propose_some(2);
    // It learns that it was removed, says so and stops.
    EXPECT_TRUE(cluster_->run_until([&] { return !cluster_->node(gone).fatal.ok(); }));
    EXPECT_NE(cluster_->node(gone).fatal.ToString().find("was removed from the cluster"),
              std::string::npos)
        << cluster_->node(gone).fatal;
    cluster_->node(gone).kill();
  }
  // Restart in another order than they came, from disk.
  for (const NodeId id : left) cluster_->node(id).kill();
  for (auto id = left.rbegin(); id != left.rend(); ++id) ASSERT_TRUE(cluster_->start(*id).ok());
  ASSERT_NE(cluster_->wait_for_leader(), nullptr);
  EXPECT_TRUE(all_agree(left));
  EXPECT_TRUE(cluster_->wait_until_equal());
}

TEST_F(MembershipTest, RestartsInEveryOrderWithOldPeers) {
  start(3);
  cluster_->add_node();
  ASSERT_TRUE(cluster_->start(4).ok());
  ASSERT_TRUE(cluster_->change(cluster_->add(4)).ok());
  ASSERT_TRUE(cluster_->change(TestCluster::remove(1)).ok());
  cluster_->node(1).kill();
  std::vector<NodeId> order = {2, 3, 4};
  do {
    const std::string last = propose_some(1);
    for (const NodeId id : order) cluster_->node(id).kill();
    for (const NodeId id : order) {
      ASSERT_TRUE(cluster_->start(id).ok());
      cluster_->run_for(20);
    }
    TestNode* const leader = cluster_->wait_for_leader();
    ASSERT_NE(leader, nullptr);
    EXPECT_EQ(leader->entries().back(), last);
    EXPECT_TRUE(all_agree({2, 3, 4}));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(MembershipTest, ANewNodeGetsTheSnapshotWhenTheLogIsGone) {
  cluster_ = std::make_unique<TestCluster>(3, size_t{64} << 10);
  cluster_->shared_options().snapshot_log_bytes = 20000;
  cluster_->shared_options().snapshot_trailing = 4;
  cluster_->start_all();
  ASSERT_NE(cluster_->settle(), nullptr);
  for (int i = 0; i < 40; ++i)
    ASSERT_EQ(cluster_->propose(*cluster_->leader(), std::string(2000, 'x')).kind,
              Outcome::kApplied);
  ASSERT_TRUE(cluster_->run_until(
      [&] { return cluster_->leader() && cluster_->leader()->consensus->first_index() > 5; }));
  TestNode& four = cluster_->add_node();
  ASSERT_TRUE(cluster_->start(4).ok());
  const absl::Status status = cluster_->change(cluster_->add(4));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GE(four.restores, 1);
  EXPECT_TRUE(cluster_->wait_until_equal());
  four.kill();
  ASSERT_TRUE(cluster_->start(4).ok());
  EXPECT_TRUE(all_agree({1, 2, 3, 4}));
  EXPECT_TRUE(cluster_->wait_until_equal());
}

// A node that lost its disk does not vote anew by itself; replaced, it is the member that it was.
TEST_F(MembershipTest, ALostDiskIsReplaced) {
  start(3);
  const std::string last = propose_some(3);
  const NodeId lost = cluster_->leader()->id() % 3 + 1;
  cluster_->node(lost).kill();
  cluster_->lose_disk(lost);
  EXPECT_FALSE(cluster_->change(TestCluster::replace(lost)).ok()) << "nobody is there yet";
  ASSERT_TRUE(cluster_->start(lost).ok());
  cluster_->run_for(300);
  EXPECT_TRUE(cluster_->node(lost).applied.empty()) << "taken back without being replaced";
  const absl::Status status = cluster_->change(TestCluster::replace(lost));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(all_agree({1, 2, 3}));
  EXPECT_EQ(cluster_->node(lost).entries().back(), last);
  // It counts: with it, the primary may die.
  cluster_->leader()->kill();
  TestNode* const next = cluster_->wait_for_leader();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(cluster_->propose(*next, "on").kind, Outcome::kApplied);
}

// It must not refuse the only one that can tell it who belongs to the cluster now.
TEST_F(MembershipTest, AMemberThatWasAwayTakesAPrimaryThatJoinedMeanwhile) {
  start(3);
  propose_some(3);
  cluster_->node(3).kill();
  cluster_->add_node();
  ASSERT_TRUE(cluster_->start(4).ok());
  const absl::Status status = cluster_->change(cluster_->add(4));
  ASSERT_TRUE(status.ok()) << status;
  cluster_->wait_for_leader()->consensus->transfer(4, [](absl::Status) {});
  ASSERT_TRUE(cluster_->run_until([&] { return cluster_->node(4).leads(); }));
  propose_some(1);
  ASSERT_TRUE(cluster_->start(3).ok());
  EXPECT_TRUE(all_agree({1, 2, 3, 4}));
  EXPECT_TRUE(cluster_->wait_until_equal());
  EXPECT_TRUE(cluster_->node(4).leads());
}

// It knows the old data directory of the one that leads now.
TEST_F(MembershipTest, AMemberThatWasAwayTakesAPrimaryThatWasReplacedMeanwhile) {
  start(3);
  propose_some(3);
  cluster_->add_node();
  ASSERT_TRUE(cluster_->start(4).ok());
  ASSERT_TRUE(cluster_->change(cluster_->add(4)).ok());
  ASSERT_TRUE(cluster_->run_until([&] { return cluster_->all_connected(); }));
  cluster_->node(3).kill();
  cluster_->wait_for_leader()->consensus->transfer(1, [](absl::Status) {});
  ASSERT_TRUE(cluster_->run_until([&] { return cluster_->node(1).leads(); }));
  cluster_->node(2).kill();
  cluster_->lose_disk(2);
  ASSERT_TRUE(cluster_->start(2).ok());
  absl::Status status = absl::UnknownError("not asked");
  for (int i = 0; i < 50 && !status.ok(); ++i) {  // until the primary has seen that it is gone
    status = cluster_->change(TestCluster::replace(2));
    cluster_->run_for(50);
  }
  ASSERT_TRUE(status.ok()) << status;
  cluster_->wait_for_leader()->consensus->transfer(2, [](absl::Status) {});
  ASSERT_TRUE(cluster_->run_until([&] { return cluster_->node(2).leads(); }));
  ASSERT_TRUE(cluster_->start(3).ok());
  EXPECT_TRUE(cluster_->wait_until_equal());
  EXPECT_TRUE(cluster_->node(2).leads());
}

// A member that was taken in knows the others' data directories as well as a founder does.
TEST_F(MembershipTest, OneThatJoinedRefusesAMemberThatComesBackEmpty) {
  start(3);
  propose_some(3);
  cluster_->add_node();
  ASSERT_TRUE(cluster_->start(4).ok());
  const absl::Status status = cluster_->change(cluster_->add(4));
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(cluster_->run_until([&] { return cluster_->all_connected(); }));
  cluster_->wait_for_leader()->consensus->transfer(4, [](absl::Status) {});
  ASSERT_TRUE(cluster_->run_until([&] { return cluster_->node(4).leads(); }));
  cluster_->node(3).kill();
  cluster_->lose_disk(3);
  ASSERT_TRUE(cluster_->start(3).ok());
  cluster_->run_for(300);
  EXPECT_TRUE(cluster_->node(3).applied.empty()) << "taken back without being replaced";
  const absl::Status replaced = cluster_->change(TestCluster::replace(3));
  ASSERT_TRUE(replaced.ok()) << replaced;
  EXPECT_TRUE(all_agree({1, 2, 3, 4}));
  EXPECT_TRUE(cluster_->wait_until_equal());
}

// Each step of a change, and the primary dies when the new member is first seen in the log, when it
// is a standby, and when it is a voter.
TEST_F(MembershipTest, ThePrimaryDiesOnTheWay) {
  for (int round = 0; round < 3; ++round) {
    start(3);
    propose_some(2);
    TestNode& four = cluster_->add_node();
    ASSERT_TRUE(cluster_->start(4).ok());
    TestNode* const first = cluster_->leader();
    first->consensus->change_members(cluster_->add(4), [](const absl::Status&) {});
    ASSERT_TRUE(cluster_->run_until([&] {
      const Member* const member = first->consensus->members().find(4);
      if (member == nullptr) return false;
      return round == 0 || (round == 1 && four.consensus->members().find(4) != nullptr) ||
             (round == 2 && member->voter);
    }));
    const NodeId dead = first->id();
    first->kill();
    MemberChange again = cluster_->add(4);
    again.resent = true;
    again.birth = 1;
    const absl::Status status = cluster_->change(again);
    // What the dead one had told nobody is gone, and then this is honest: look again.
    if (absl::IsUnknown(status)) {
      ASSERT_TRUE(cluster_->change(cluster_->add(4)).ok());
    } else {
      ASSERT_TRUE(status.ok()) << status;
    }
    ASSERT_TRUE(cluster_->start(dead).ok());
    EXPECT_TRUE(all_agree({1, 2, 3, 4}));
    propose_some(1);
    EXPECT_TRUE(cluster_->wait_until_equal());
  }
}

// The same while a member is replaced: whoever leads next goes on when asked again.
TEST_F(MembershipTest, ThePrimaryDiesWhileAMemberIsReplaced) {
  for (const bool late : {false, true}) {
    start(5);
    propose_some(2);
    TestNode* const first = cluster_->leader();
    const NodeId lost = first->id() % 5 + 1;
    cluster_->node(lost).kill();
    cluster_->lose_disk(lost);
    ASSERT_TRUE(cluster_->start(lost).ok());
    ASSERT_TRUE(cluster_->run_until([&] {
      for (const PeerStatus& peer : first->consensus->peers())
        if (peer.id == lost && peer.connected) return false;
      return true;
    }));
    const MemberChange wish = {MemberChange::kReplace, lost, "127.0.0.1",
                               cluster_->node(lost).port()};
    first->consensus->change_members(wish, [](const absl::Status&) {});
    ASSERT_TRUE(cluster_->run_until([&] {
      const Member* const member = first->consensus->members().find(lost);
      return late ? member != nullptr && !member->voter : member == nullptr;
    }));
    first->kill();
    MemberChange again = wish;
    again.resent = true;
    const absl::Status status = cluster_->change(again);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(cluster_->start(first->id()).ok());
    EXPECT_TRUE(all_agree({1, 2, 3, 4, 5}));
    EXPECT_TRUE(cluster_->wait_until_equal());
  }
}

TEST_F(MembershipTest, ANodeThatWillNotDoChangesNothing) {
  start(3);
  const uint64_t before = cluster_->leader()->consensus->last_index();
  // Nobody there.
  cluster_->add_node().kill();
  absl::Status status = cluster_->change(cluster_->add(4));
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_NE(status.ToString().find("start it there first"), std::string::npos) << status;
  // Somebody else.
  TestNode& five = cluster_->add_node();
  ASSERT_TRUE(cluster_->start(5).ok());
  status = cluster_->change(cluster_->add(4, five.port()));
  EXPECT_NE(status.ToString().find("node 5 answers"), std::string::npos) << status;
  // One of another cluster.
  TestNode& six = cluster_->add_node();
  Options other = cluster_->options(6);
  other.join = false;
  other.peers = {{6, "127.0.0.1", six.port()}};
  ASSERT_TRUE(six.start(other).ok());
  status = cluster_->change(cluster_->add(6));
  EXPECT_NE(status.ToString().find("belongs to cluster"), std::string::npos) << status;
  EXPECT_EQ(cluster_->leader()->consensus->members().all.size(), 3u);
  EXPECT_EQ(cluster_->leader()->consensus->last_index(), before);
  // And the right one, in the end.
  status = cluster_->change(cluster_->add(5));
  EXPECT_TRUE(status.ok()) << status;
}

// A new member that is cut off on the way costs nothing, and becomes a voter when it is back; or is
// given up.
TEST_F(MembershipTest, ANewMemberThatIsCutOffJoinsLaterOrIsGivenUp) {
  start(3);
  TestNode& four = cluster_->add_node();
  TestProxy to_four(cluster_->loop(), four.port());
  ASSERT_TRUE(cluster_->start(4).ok());
  const auto answer = std::make_shared<absl::Status>(absl::UnknownError("none yet"));
  TestNode* const leader = cluster_->leader();
  leader->consensus->change_members(cluster_->add(4, to_four.port()),
                                    [answer](const absl::Status& s) { *answer = s; });
  ASSERT_TRUE(cluster_->run_until([&] { return leader->consensus->members().find(4) != nullptr; }));
  four.kill();
  propose_some(3);
  cluster_->run_for(500);
  EXPECT_TRUE(absl::IsUnknown(*answer)) << *answer;
  EXPECT_EQ(voters(*leader), (std::set<NodeId>{1, 2, 3}));
  const absl::Status back = cluster_->start(4);
  ASSERT_TRUE(back.ok()) << back;
  ASSERT_TRUE(cluster_->run_until([&] { return answer->ok(); })) << *answer;
  EXPECT_TRUE(all_agree({1, 2, 3, 4}));
  // The other way: it never comes back, and is taken out again.
  ASSERT_TRUE(cluster_->change(TestCluster::remove(4)).ok());
  TestNode& five = cluster_->add_node();
  ASSERT_TRUE(cluster_->start(5).ok());
  cluster_->wait_for_leader()->consensus->change_members(
      cluster_->add(5), [answer](const absl::Status& s) { *answer = s; });
  ASSERT_TRUE(cluster_->run_until(
      [&] { return cluster_->leader()->consensus->members().find(5) != nullptr; }));
  five.kill();
  if (!voters(*cluster_->leader()).count(5)) {
    absl::Status gone = absl::AbortedError("");  // until its addition is committed
    EXPECT_TRUE(cluster_->run_until([&] {
      gone = cluster_->change(TestCluster::remove(5));
      return !absl::IsAborted(gone);
    }));
    EXPECT_TRUE(gone.ok()) << gone;
    EXPECT_EQ(cluster_->leader()->consensus->members().all.size(), 3u);
  }
}

// What is given on the command line later need not be what the cluster was founded with, but must
// have something to do with it.
TEST_F(MembershipTest, OldAndNewPeersAreFineAndOtherOnesAreNot) {
  start(3);
  cluster_->add_node();
  ASSERT_TRUE(cluster_->start(4).ok());
  ASSERT_TRUE(cluster_->change(cluster_->add(4)).ok());
  cluster_->node(2).kill();
  ASSERT_TRUE(cluster_->start(2).ok()) << "as it was founded";
  cluster_->node(2).kill();
  Options options = cluster_->options(2);
  options.peers = {{2, "127.0.0.1", cluster_->node(2).port()},
                   {4, "127.0.0.1", cluster_->node(4).port()}};
  ASSERT_TRUE(cluster_->node(2).start(options).ok()) << "as it is now";
  EXPECT_TRUE(cluster_->wait_until_equal());
  cluster_->node(2).kill();
  options.peers = {{2, "127.0.0.1", 1}, {7, "127.0.0.1", 2}};
  const absl::Status status = cluster_->node(2).start(options);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_NE(status.ToString().find("whose members are"), std::string::npos) << status;
}

}  // namespace
}  // namespace xce::consensus
