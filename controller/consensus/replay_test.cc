// A node that has a long log to apply, as after its start: it goes on hearing the others between
// short shares of that, and does not keep a role that another one can fill at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "controller/consensus/consensus.h"
#include "controller/consensus/hand_driven.h"
#include "controller/consensus/memory_log.h"
#include "controller/consensus/test_cluster.h"

namespace xce::consensus {
namespace {

constexpr uint64_t kEntryNs = 300000;  // to apply one
constexpr uint64_t kTurn = 4;          // of which so many go into one turn's share at most
constexpr uint64_t kLast = 400;        // index of the log's last entry, which has term 1

class Slow final : public StateMachine {
 public:
  explicit Slow(Hand* hand) : hand_(hand) {}
  void apply(uint64_t, uint64_t, std::string_view) override { hand_->clock_ns += kEntryNs; }

 private:
  Hand* const hand_;
};

// Node 3 of three, so that by its id it would win. Primary 1 has given it its log, and just now
// said that all of it is committed.
class Replay : public testing::Test {
 protected:
  Replay() : machine_(&hand_) {
    Options options;
    options.self = 3;
    for (NodeId id = 1; id <= 3; ++id)
      options.peers.push_back({id, "127.0.0.1", static_cast<uint16_t>(id)});
    options.data_dir = directory_.path() + "/node";
    node_ = std::make_unique<Consensus>(std::make_unique<HandDriven>(&hand_), options, &machine_,
                                        &listener_);
    const absl::Status status = node_->start();
    EXPECT_TRUE(status.ok()) << status;

    const std::string data = pad_entry("x");
    const std::vector<xce_core_entry> entries(kLast - 1,
                                              {1, XCE_ENTRY_COMMAND, data.data(), data.size()});
    xce_core_message append{};
    append.type = XCE_MSG_APPEND_ENTRIES;
    append.term = append.prev_log_index = append.prev_log_term = append.leader_commit = 1;
    append.entries = entries.data();
    append.n_entries = static_cast<unsigned>(entries.size());
    hand_.deliver(1, append);
    hand_.finish_writes();
    EXPECT_EQ(node_->applied(), 1u);
    heartbeat();
    EXPECT_GT(node_->applied(), 1u);
  }

  void heartbeat() {
    xce_core_message message{};
    message.type = XCE_MSG_APPEND_ENTRIES;
    message.term = message.prev_log_term = 1;
    message.prev_log_index = message.leader_commit = kLast;
    hand_.deliver(1, message);
  }
  // Node 2 has lost primary 1 as well; its log ends at `last`, and it has applied so much.
  void suspected(uint64_t last, uint64_t applied) {
    hand_.events->on_gone(1);
    std::string frame;
    append_suspect_frame({1, 1, 1, last, applied}, &frame);
    hand_.deliver(2, frame);
    hand_.finish_writes();
  }
  // Node 2 says yes to node 3, which stands.
  void elect() {
    xce_core_message vote{};
    vote.type = XCE_MSG_REQUEST_VOTE_RESULT;
    vote.version = 2;
    vote.term = 2;
    vote.vote_granted = true;
    hand_.deliver(2, vote);
  }
  // Node 2 has stored all that it was sent.
  void stored_by_2() {
    xce_core_message result{};
    result.type = XCE_MSG_APPEND_ENTRIES_RESULT;
    result.term = 2;
    result.last_log_index = node_->last_index();
    hand_.deliver(2, result);
  }

  TestDirectory directory_;
  Hand hand_;
  Slow machine_;
  Listener listener_;
  std::unique_ptr<Consensus> node_;
};

TEST_F(Replay, EachTurnAppliesAShareAndAllGetsApplied) {
  int turns = 0;
  for (uint64_t before = node_->applied(); before < kLast; before = node_->applied()) {
    hand_.turn();
    ASSERT_GT(node_->applied(), before);
    ASSERT_LE(node_->applied(), before + kTurn);
    ASSERT_LT(++turns, 1000);
  }
  EXPECT_FALSE(hand_.busy);
}

TEST_F(Replay, EventsOfOneTurnHaveOneShare) {
  hand_.turn();
  const uint64_t before = node_->applied();
  for (int i = 0; i < 10; ++i) heartbeat();
  EXPECT_EQ(node_->applied(), before);
}

// From the question to the answer one turn and one write.
TEST_F(Replay, AVoteIsAnsweredWithinTheTurn) {
  hand_.turn();
  const uint64_t before = node_->applied();
  xce_core_message ask{};
  ask.type = XCE_MSG_REQUEST_VOTE;
  ask.version = 2;
  ask.term = 2;
  ask.last_log_index = kLast;
  ask.last_log_term = 1;
  ask.disrupt_leader = true;
  hand_.deliver(2, ask);
  EXPECT_EQ(hand_.last_sent(2, XCE_MSG_REQUEST_VOTE_RESULT), nullptr) << "not on disk yet";
  hand_.finish_writes();
  const xce_core_message* const answer = hand_.last_sent(2, XCE_MSG_REQUEST_VOTE_RESULT);
  ASSERT_NE(answer, nullptr);
  EXPECT_TRUE(answer->vote_granted);
  EXPECT_LE(node_->applied(), before + kTurn);
  hand_.turn();
  EXPECT_GT(node_->applied(), before) << "and it goes on";
}

TEST_F(Replay, ItDoesNotStandWhereAnotherWithTheSameLogHasAppliedIt) {
  suspected(kLast, kLast);
  EXPECT_EQ(node_->role().role, Role::kFollower);
  ASSERT_FALSE(hand_.sent.empty());
  const PeerMessage& told = hand_.sent.back().second;
  ASSERT_EQ(told.kind, PeerMessage::kSuspect);
  EXPECT_EQ(told.suspect.applied, node_->applied());
}

TEST_F(Replay, WithTheLongestLogItIsElectedAndHandsOver) {
  suspected(kLast - 1, kLast - 1);
  ASSERT_EQ(node_->role().role, Role::kCandidate);
  elect();
  ASSERT_EQ(node_->role().role, Role::kLeader);
  hand_.finish_writes();
  stored_by_2();
  const xce_core_message* const now = hand_.last_sent(2, XCE_MSG_TIMEOUT_NOW);
  ASSERT_NE(now, nullptr);
  EXPECT_EQ(now->term, 2u);
  EXPECT_LT(node_->applied(), kLast);
}

TEST_F(Replay, WhoHasAppliedLessIsNoBetter) {
  suspected(kLast - 1, 1);
  elect();
  ASSERT_EQ(node_->role().role, Role::kLeader);
  hand_.finish_writes();
  stored_by_2();
  while (hand_.busy) hand_.turn();
  EXPECT_EQ(hand_.last_sent(2, XCE_MSG_TIMEOUT_NOW), nullptr);
  EXPECT_TRUE(node_->role().ready);
}

}  // namespace
}  // namespace xce::consensus
