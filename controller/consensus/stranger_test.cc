// One node, and a test that speaks to it as a peer would: what is believed, and what is not.
#include <gtest/gtest.h>
#include <poll.h>

#include <string>
#include <vector>

#include "controller/consensus/core.h"
#include "controller/consensus/members.h"
#include "controller/consensus/memory_log.h"
#include "controller/consensus/peer_codec.h"
#include "controller/consensus/test_cluster.h"
#include "libxce/net/frame.h"

namespace xce::consensus {
namespace {

// A peer made by hand: a socket, frames in and out.
class FakePeer {
 public:
  FakePeer(TestCluster* cluster, TestNode* node) : cluster_(cluster) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(node->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    send(std::string(net::kPeerPreamble, net::kPreambleSize));
  }
  ~FakePeer() { ::close(fd_); }
  void send(const std::string& bytes) {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void hello(const Hello& hello) {
    std::string frame;
    append_hello_frame(hello, &frame);
    send(frame);
  }
  void raft(const xce_core_message& message) {
    std::string frame;
    append_raft_frame(message, &frame);
    send(frame);
  }
  // Runs the loop until the node's hello is there; its refusal.
  std::string answer() {
    Hello out;
    EXPECT_TRUE(cluster_->run_until([&] { return read_one(&out); }));
    return out.refused;
  }
  bool closed() {
    return cluster_->run_until([&] {
      pollfd poll = {fd_, POLLIN, 0};
      char buffer[4096];
      return ::poll(&poll, 1, 0) == 1 && ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT) <= 0;
    });
  }

 private:
  bool read_one(Hello* out) {
    char buffer[4096];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0) decoder_.feed({buffer, static_cast<size_t>(n)});
    auto frame = decoder_.next();
    if (!frame.ok() || !frame->has_value()) return false;
    PeerMessage message;
    EXPECT_TRUE(decode_peer_message(std::move(**frame), &message).ok());
    *out = message.hello;
    return message.kind == PeerMessage::kHello;
  }

  TestCluster* const cluster_;
  int fd_ = -1;
  net::FrameDecoder decoder_;
};

// What answers at the address of a member that does not run: says hello to whoever dials it.
class FakeServer {
 public:
  FakeServer(TestCluster* cluster, NodeId id) : cluster_(cluster) {
    cluster->node(id).kill();  // its port is ours
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(cluster->node(id).port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
  }
  ~FakeServer() {
    for (const int fd : taken_) ::close(fd);
    ::close(fd_);
  }
  // Runs the loop until somebody has dialled and heard this.
  void say(const Hello& hello) {
    int fd = -1;
    EXPECT_TRUE(cluster_->run_until([&] { return (fd = ::accept(fd_, nullptr, nullptr)) >= 0; }));
    taken_.push_back(fd);
    std::string frame;
    append_hello_frame(hello, &frame);
    EXPECT_EQ(::send(fd, frame.data(), frame.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(frame.size()));
    cluster_->run_for(20);
  }

 private:
  TestCluster* const cluster_;
  int fd_ = -1;
  std::vector<int> taken_;
};

class StrangerTest : public testing::Test {
 protected:
  StrangerTest() : cluster_(3), node_(cluster_.node(1)), two_(&cluster_, 2) {
    cluster_.shared_options().election_timeout_ms = 60000;  // it must not stand while we talk
    EXPECT_TRUE(cluster_.start(1).ok());
  }
  // Node 1 reaches node 2 at its address, and so knows its data directory.
  void reach() { two_.say(hello(2)); }
  Hello hello(uint64_t id) {
    Hello out;
    out.node = id;
    out.cluster = node_.consensus->cluster_id();
    out.instance = {7, id};
    out.boot = 99;
    return out;
  }
  xce_core_message append(uint64_t term, uint64_t prev, uint64_t prev_term,
                          const std::vector<xce_core_entry>& entries) {
    xce_core_message m{};
    m.type = XCE_MSG_APPEND_ENTRIES;
    m.term = term;
    m.prev_log_index = prev;
    m.prev_log_term = prev_term;
    m.leader_commit = prev + entries.size();
    m.entries = entries.data();
    m.n_entries = static_cast<unsigned>(entries.size());
    return m;
  }

  TestCluster cluster_;
  TestNode& node_;
  FakeServer two_;
};

// A node that is started first, with another one's id, must not become that one.
TEST_F(StrangerTest, WhoComesFirstIsNotBelieved) {
  Hello impostor = hello(2);
  impostor.instance = {6, 6};
  FakePeer peer(&cluster_, &node_);
  peer.hello(impostor);
  EXPECT_NE(peer.answer().find("has not been reached"), std::string::npos);
  reach();
  FakePeer again(&cluster_, &node_);
  again.hello(impostor);
  EXPECT_NE(again.answer().find("another data directory"), std::string::npos);
  FakePeer two(&cluster_, &node_);
  two.hello(hello(2));
  EXPECT_EQ(two.answer(), "");
  // It is known also after a restart.
  node_.kill();
  ASSERT_TRUE(cluster_.start(1).ok());
  FakePeer later(&cluster_, &node_);
  later.hello(impostor);
  EXPECT_NE(later.answer().find("another data directory"), std::string::npos);
}

TEST_F(StrangerTest, OnlyMembersOfTheClusterAreLetIn) {
  reach();
  Hello bad = hello(9);
  FakePeer outsider(&cluster_, &node_);
  outsider.hello(bad);
  EXPECT_NE(outsider.answer().find("not a member"), std::string::npos);
  EXPECT_TRUE(outsider.closed());
  FakePeer twin(&cluster_, &node_);
  twin.hello(hello(1));
  EXPECT_NE(twin.answer().find("own"), std::string::npos);
  bad = hello(2);
  bad.cluster++;
  FakePeer other(&cluster_, &node_);
  other.hello(bad);
  EXPECT_NE(other.answer().find("cluster"), std::string::npos);
  FakePeer good(&cluster_, &node_);
  good.hello(hello(2));
  EXPECT_EQ(good.answer(), "");
  bad = hello(2);
  bad.instance.hi++;
  FakePeer emptied(&cluster_, &node_);
  emptied.hello(bad);
  EXPECT_NE(emptied.answer().find("another data directory"), std::string::npos);
}

TEST_F(StrangerTest, NothingIsHeardBeforeHello) {
  FakePeer peer(&cluster_, &node_);
  xce_core_message vote{};
  vote.type = XCE_MSG_REQUEST_VOTE;
  vote.term = 50;
  peer.raft(vote);
  EXPECT_TRUE(peer.closed());
  EXPECT_LT(node_.consensus->role().term, 50u);
}

TEST_F(StrangerTest, GarbageEndsTheConnectionAndNothingElse) {
  reach();
  for (const std::string& bytes :
       {std::string(64, 'x'), std::string("XCEF\x01\0\0\0\xff\xff\xff\x7f\0\0\0\0", 16)}) {
    FakePeer peer(&cluster_, &node_);
    peer.send(bytes);
    EXPECT_TRUE(peer.closed());
  }
  FakePeer peer(&cluster_, &node_);
  peer.hello(hello(2));
  EXPECT_EQ(peer.answer(), "");
  std::string frame;
  net::append_frame(std::string(64, '\xee'), &frame);
  peer.send(frame);
  EXPECT_TRUE(peer.closed());
  EXPECT_EQ(node_.consensus->role().role, Role::kFollower);
}

TEST_F(StrangerTest, AFloodOfSilentConnectionsKeepsNoPeerOut) {
  reach();
  std::vector<std::unique_ptr<FakePeer>> peers;
  for (int i = 0; i < 40; i++) {
    peers.push_back(std::make_unique<FakePeer>(&cluster_, &node_));
    cluster_.run_for(1);
  }
  EXPECT_TRUE(peers.front()->closed());
  peers.back()->hello(hello(2));
  EXPECT_EQ(peers.back()->answer(), "");
}

// Rule: the core takes a change of configuration for the first entry of its batch, so a received
// batch is split.
TEST_F(StrangerTest, AChangeOfConfigurationWithinABatchIsTakenAtItsOwnIndex) {
  std::vector<std::string> addresses;
  std::vector<const char*> raw;
  const uint64_t ids[] = {1, 2};
  for (const uint64_t id : ids)
    addresses.push_back("127.0.0.1:" + std::to_string(cluster_.node(id).port()));
  for (const std::string& address : addresses) raw.push_back(address.c_str());
  size_t length = 0;
  void* const configuration = xce_core_encode_configuration(ids, raw.data(), 2, &length);
  reach();
  const std::string command = pad_entry("command");
  const xce_core_entry entry = {2, XCE_ENTRY_COMMAND, command.data(), command.size()};
  const xce_core_entry change = {2, XCE_ENTRY_CHANGE, configuration, length};

  FakePeer peer(&cluster_, &node_);
  peer.hello(hello(2));
  ASSERT_EQ(peer.answer(), "");
  peer.raft(append(2, 1, 1, {entry, entry, change, entry}));
  ASSERT_TRUE(cluster_.run_until([&] { return node_.consensus->applied() == 5; }));
  EXPECT_EQ(node_.consensus->last_index(), 5u);
  EXPECT_EQ(node_.consensus->role().leader, 2u);
  ASSERT_EQ(node_.applied.size(), 3u);
  EXPECT_EQ(node_.applied.at(5).second, "command");
  // A second change in one batch, the first of which is not yet applied when it comes.
  peer.raft(append(2, 5, 2, {change, entry, change}));
  EXPECT_TRUE(cluster_.run_until([&] { return node_.consensus->applied() == 8; }));
  std::free(configuration);
  // The log reads back.
  const auto before = node_.applied;
  node_.kill();
  ASSERT_TRUE(cluster_.start(1).ok());
  EXPECT_EQ(node_.consensus->last_index(), 8u);
}

// Two changes, none of them applied here yet, and the second one is cut off again: the first one
// still counts. (A leader asks for one at a time, so it was committed.)
TEST_F(StrangerTest, AChangeThatIsCutOffDoesNotTakeTheOneBeforeWithIt) {
  reach();
  Members alone, two;
  alone.all = {{1, "127.0.0.1", node_.port(), 0, true}};
  two.all = alone.all;
  two.all.push_back({2, "127.0.0.1", cluster_.node(2).port(), 0, true});
  const std::string first = encode_members(alone), second = encode_members(two);
  const std::string command = pad_entry("command");
  const auto change = [](const std::string& data) {
    return xce_core_entry{2, XCE_ENTRY_CHANGE, data.data(), data.size()};
  };
  FakePeer peer(&cluster_, &node_);
  peer.hello(hello(2));
  ASSERT_EQ(peer.answer(), "");
  std::vector<xce_core_entry> entries = {change(first)};
  const auto send = [&](uint64_t term, uint64_t prev, uint64_t prev_term) {
    xce_core_message message = append(term, prev, prev_term, entries);
    message.leader_commit = 1;
    peer.raft(message);
    EXPECT_TRUE(cluster_.run_until([&] { return node_.consensus->last_index() == prev + 1; }));
    cluster_.run_for(50);  // until it is on the disk
  };
  send(2, 1, 1);
  entries = {change(second)};
  send(2, 2, 2);
  EXPECT_EQ(node_.consensus->members().all.size(), 2u);
  entries = {{3, XCE_ENTRY_COMMAND, command.data(), command.size()}};
  send(3, 2, 2);
  EXPECT_EQ(node_.consensus->members().all.size(), 1u);
  // The only voter needs nobody to lead.
  xce_core_message stand{};
  stand.type = XCE_MSG_TIMEOUT_NOW;
  stand.term = 3;
  stand.last_log_index = 3;
  stand.last_log_term = 3;
  peer.raft(stand);
  EXPECT_TRUE(cluster_.run_until([&] { return node_.consensus->role().role == Role::kLeader; }));
}

// A primary may send from before where our log begins. Were that refused, it would send a snapshot
// older than ours, again and again.
TEST_F(StrangerTest, EntriesThatTheSnapshotHoldsAreLeftOutAndTheRestIsTaken) {
  reach();
  node_.kill();
  cluster_.shared_options().snapshot_log_bytes = 4096;
  cluster_.shared_options().snapshot_trailing = 2;
  ASSERT_TRUE(cluster_.start(1).ok());
  reach();
  const std::string command = pad_entry(std::string(1000, 'x'));
  const xce_core_entry entry = {2, XCE_ENTRY_COMMAND, command.data(), command.size()};
  FakePeer peer(&cluster_, &node_);
  peer.hello(hello(2));
  ASSERT_EQ(peer.answer(), "");
  peer.raft(append(2, 1, 1, std::vector<xce_core_entry>(20, entry)));
  ASSERT_TRUE(cluster_.run_until([&] { return node_.consensus->first_index() > 6; }));
  ASSERT_EQ(node_.consensus->last_index(), 21u);
  peer.raft(append(2, 3, 2, {}));                                      // a heartbeat
  peer.raft(append(2, 3, 2, std::vector<xce_core_entry>(2, entry)));   // all of it known
  peer.raft(append(2, 3, 2, std::vector<xce_core_entry>(25, entry)));  // the last seven are new
  EXPECT_TRUE(cluster_.run_until([&] { return node_.consensus->applied() == 28; }));
  EXPECT_EQ(node_.consensus->last_index(), 28u);
  EXPECT_TRUE(node_.fatal.ok()) << node_.fatal;
}

TEST_F(StrangerTest, EntriesThatDoNotFitAreRefusedAndTheLogStays) {
  reach();
  const std::string command = pad_entry("command");
  const xce_core_entry entry = {2, XCE_ENTRY_COMMAND, command.data(), command.size()};
  FakePeer peer(&cluster_, &node_);
  peer.hello(hello(2));
  ASSERT_EQ(peer.answer(), "");
  peer.raft(append(2, 7, 2, {entry}));  // a gap
  peer.raft(append(
      2, 1, 2, {entry}));  // another term at index 1, which is committed: the core would give up
  EXPECT_TRUE(cluster_.run_until([&] { return !node_.fatal.ok(); }));
  EXPECT_EQ(node_.consensus->last_index(), 1u);
}

}  // namespace
}  // namespace xce::consensus
