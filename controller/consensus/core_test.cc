// The Raft core, and the rules that it leaves to its caller: several cores in one process under a
// simulated clock, with messages that a test can hold, drop and deliver late.
#include "controller/consensus/core.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

std::string configuration(unsigned n) {
  std::vector<uint64_t> ids;
  std::vector<std::string> names;
  std::vector<const char*> raw;
  for (unsigned i = 1; i <= n; i++) {
    ids.push_back(i);
    names.push_back("host" + std::to_string(i) + ":1");
  }
  for (const std::string& name : names) raw.push_back(name.c_str());
  size_t len = 0;
  void* const bytes = xce_core_encode_configuration(ids.data(), raw.data(), n, &len);
  std::string out(static_cast<char*>(bytes), len);
  std::free(bytes);
  return out;
}

struct Entry {
  uint64_t term;
  unsigned type;
  std::string data;
};

// A message under way, with entries of its own.
struct Flight {
  xce_core_message message;  // peer is the sender
  uint64_t to;
  std::vector<Entry> entries;
};

class Cluster {
 public:
  explicit Cluster(unsigned n, unsigned max_inflight = 1024) : nodes_(n) {
    const std::string conf = configuration(n);
    for (unsigned i = 0; i < n; i++) {
      Node& node = nodes_[i];
      node.core = xce_core_new(i + 1, ("host" + std::to_string(i + 1) + ":1").c_str(), 300, 30,
                               max_inflight, i * 7919 + 1);
      node.log.push_back({1, XCE_ENTRY_CHANGE, conf});
      const xce_core_entry first = {1, XCE_ENTRY_CHANGE, conf.data(), conf.size()};
      xce_core_update update;
      EXPECT_EQ(xce_core_start(node.core, now_, 1, 0, &first, 1, &update), XCE_CORE_OK);
    }
  }
  ~Cluster() {
    for (Node& node : nodes_) xce_core_free(node.core);
  }

  // Carries out an update; writes are stored at once unless the node's disk is held.
  void absorb(uint64_t id, int rv, const xce_core_update& u) {
    if (rv != XCE_CORE_OK) return;
    Node& node = at(id);
    if ((u.flags & XCE_UPDATE_ENTRIES) != 0) {
      node.log.resize(u.entries_index - 1);
      for (unsigned i = 0; i < u.n_entries; i++)
        node.log.push_back(
            {u.entries[i].term, u.entries[i].type,
             std::string(static_cast<const char*>(u.entries[i].data), u.entries[i].len)});
    }
    for (unsigned i = 0; i < u.n_messages; i++) {
      Flight flight{u.messages[i], u.messages[i].peer, {}};
      flight.message.peer = id;
      if (flight.message.type == XCE_MSG_APPEND_ENTRIES)
        for (unsigned k = 0; k < flight.message.n_entries; k++)
          flight.entries.push_back(node.log[flight.message.prev_log_index + k]);
      flights_.push_back(std::move(flight));
    }
    if ((u.flags & XCE_UPDATE_ENTRIES) != 0 && !node.disk_held) persist(id);
  }
  void persist(uint64_t id) {
    xce_core_update u;
    const int rv = xce_core_persisted(at(id).core, now_, at(id).log.size(), &u);
    absorb(id, rv, u);
  }
  int receive(uint64_t id, const xce_core_message& m) {
    xce_core_update u;
    const int rv = xce_core_receive(at(id).core, now_, &m, &u);
    absorb(id, rv, u);
    return rv;
  }
  int deliver(Flight flight) {
    std::vector<xce_core_entry> raw;
    for (const Entry& e : flight.entries)
      raw.push_back({e.term, e.type, e.data.data(), e.data.size()});
    flight.message.entries = raw.data();
    return receive(flight.to, flight.message);
  }
  void deliver_all() {
    while (!flights_.empty()) {
      Flight flight = std::move(flights_.front());
      flights_.pop_front();
      if (cut_.count(flight.to) != 0 || cut_.count(flight.message.peer) != 0) continue;
      if (hold && hold(flight)) {
        held.push_back(std::move(flight));
        continue;
      }
      deliver(std::move(flight));
    }
  }
  void run(unsigned ms) {
    for (unsigned i = 0; i < ms; i++) {
      now_++;
      for (uint64_t id = 1; id <= nodes_.size(); id++) {
        if (stopped_.count(id) != 0 || now_ < xce_core_timeout_at(at(id).core)) continue;
        xce_core_update u;
        const int rv = xce_core_timeout(at(id).core, now_, &u);
        absorb(id, rv, u);
      }
      deliver_all();
    }
  }
  uint64_t leader() {
    for (uint64_t id = 1; id <= nodes_.size(); id++)
      if (stopped_.count(id) == 0 && cut_.count(id) == 0 &&
          xce_core_state(at(id).core) == XCE_STATE_LEADER)
        return id;
    return 0;
  }
  uint64_t wait_for_leader() {
    for (int i = 0; i < 5000 && leader() == 0; i++) run(1);
    run(100);
    return leader();
  }
  int submit(uint64_t id, unsigned n) {
    const std::string data(8, 's');
    std::vector<xce_core_entry> entries(n, {term(id), XCE_ENTRY_COMMAND, data.data(), data.size()});
    xce_core_update u;
    const int rv = xce_core_submit(at(id).core, now_, entries.data(), n, &u);
    absorb(id, rv, u);
    return rv;
  }
  // As the fast failover does: the node is told to stand in the name of the primary it knows.
  int stand(uint64_t id) {
    xce_core_message m{};
    m.type = XCE_MSG_TIMEOUT_NOW;
    m.peer = xce_core_leader(at(id).core);
    m.term = term(id);
    m.last_log_index = at(id).log.size();
    m.last_log_term = at(id).log.back().term;
    return receive(id, m);
  }
  void cut(uint64_t id) { cut_.insert(id); }
  void heal(uint64_t id) { cut_.erase(id); }
  void stop(uint64_t id) {
    cut(id);
    stopped_.insert(id);
  }
  uint64_t term(uint64_t id) { return xce_core_term(at(id).core); }
  int state(uint64_t id) { return xce_core_state(at(id).core); }
  xce_core* core(uint64_t id) { return at(id).core; }
  std::vector<Entry>& log(uint64_t id) { return at(id).log; }
  void hold_disk(uint64_t id, bool held) { at(id).disk_held = held; }
  uint64_t now() const { return now_; }

  std::function<bool(const Flight&)> hold;  // true: keep it back in `held`
  std::vector<Flight> held;

 private:
  struct Node {
    xce_core* core = nullptr;
    std::vector<Entry> log;
    bool disk_held = false;
  };
  Node& at(uint64_t id) { return nodes_[id - 1]; }

  uint64_t now_ = 1000;
  std::vector<Node> nodes_;
  std::deque<Flight> flights_;
  std::set<uint64_t> cut_;
  std::set<uint64_t> stopped_;
};

TEST(CoreTest, ABatchIsOneSubmission) {
  Cluster cluster(3);
  const uint64_t leader = cluster.wait_for_leader();
  ASSERT_NE(leader, 0u);
  const uint64_t last = cluster.log(leader).size();
  EXPECT_EQ(cluster.submit(leader, 500), XCE_CORE_OK);
  cluster.deliver_all();
  EXPECT_EQ(xce_core_commit(cluster.core(leader)), last + 500);
  EXPECT_EQ(cluster.submit(leader % 3 + 1, 1), XCE_CORE_IGNORED);
}

TEST(CoreTest, ADeadPrimaryIsReplacedInOneRoundTrip) {
  Cluster cluster(3);
  const uint64_t leader = cluster.wait_for_leader();
  const uint64_t before = cluster.now();
  cluster.stop(leader);
  const uint64_t next = leader % 3 + 1;
  EXPECT_EQ(cluster.stand(next), XCE_CORE_OK);
  cluster.deliver_all();
  EXPECT_EQ(cluster.leader(), next);
  EXPECT_EQ(cluster.now(), before);
}

TEST(CoreTest, TheRequestToStandIsIgnoredWhileEntriesArePersistedAndTakenAfterwards) {
  Cluster cluster(3);
  const uint64_t leader = cluster.wait_for_leader();
  const uint64_t next = leader % 3 + 1;
  cluster.hold_disk(next, true);
  ASSERT_EQ(cluster.submit(leader, 3), XCE_CORE_OK);
  cluster.deliver_all();
  cluster.stop(leader);
  cluster.stand(next);
  EXPECT_EQ(cluster.state(next), XCE_STATE_FOLLOWER);
  cluster.hold_disk(next, false);
  cluster.persist(next);
  cluster.stand(next);
  EXPECT_EQ(cluster.state(next), XCE_STATE_CANDIDATE);
}

// The library keeps the disrupt flag of a candidate through later timeouts: cut off, it would raise
// its term again and again, and depose a live primary on its return.
TEST(CoreTest, AStandbyThatStoodInVainDoesNotDisruptLater) {
  Cluster cluster(3);
  const uint64_t leader = cluster.wait_for_leader();
  const uint64_t term = cluster.term(leader);
  const uint64_t alone = leader % 3 + 1;
  cluster.cut(alone);
  cluster.stand(alone);
  EXPECT_EQ(cluster.state(alone), XCE_STATE_CANDIDATE);
  EXPECT_EQ(cluster.term(alone), term + 1);
  cluster.run(5000);
  EXPECT_EQ(cluster.term(alone), term + 1) << "it went on to raise its term";
  cluster.hold = [&](const Flight& flight) {
    EXPECT_FALSE(flight.message.type == XCE_MSG_REQUEST_VOTE && flight.message.disrupt_leader);
    return false;
  };
  cluster.heal(alone);
  cluster.run(2000);
  // Its one term more makes the others elect anew once, politely; that is all.
  ASSERT_NE(cluster.leader(), 0u);
  EXPECT_LE(cluster.term(cluster.leader()), term + 2);
}

TEST(CoreTest, AStandbyThatHearsNothingDoesNotDeposeALivePrimary) {
  Cluster cluster(3);
  const uint64_t leader = cluster.wait_for_leader();
  const uint64_t term = cluster.term(leader);
  const uint64_t deaf = leader % 3 + 1;
  // One way only: it hears no heartbeat, but is heard.
  cluster.hold = [&](const Flight& flight) {
    return flight.to == deaf && flight.message.type == XCE_MSG_APPEND_ENTRIES;
  };
  cluster.run(3000);
  EXPECT_EQ(cluster.leader(), leader);
  EXPECT_EQ(cluster.term(leader), term);
}

// An answer to a pre-vote carries a term that nobody has yet. Late, it must not depose anybody.
TEST(CoreTest, ALateAnswerToAPreVoteIsIgnored) {
  Cluster cluster(3);
  const uint64_t leader = cluster.wait_for_leader();
  const uint64_t term = cluster.term(leader);
  for (uint64_t id = 1; id <= 3; id++) {
    xce_core_message m{};
    m.type = XCE_MSG_REQUEST_VOTE_RESULT;
    m.peer = id % 3 + 1;
    m.term = term + 1;
    m.pre_vote = true;
    for (const bool granted : {false, true}) {
      m.vote_granted = granted;
      EXPECT_EQ(cluster.receive(id, m), XCE_CORE_IGNORED);
    }
  }
  cluster.run(1000);
  EXPECT_EQ(cluster.leader(), leader);
  EXPECT_EQ(cluster.term(leader), term);
}

TEST(CoreTest, ACompletionForWhatIsNotInTheLogIsIgnored) {
  Cluster cluster(3);
  const uint64_t leader = cluster.wait_for_leader();
  const uint64_t last = cluster.log(leader).size();
  const uint64_t stored = xce_core_stored(cluster.core(leader));
  xce_core_update u;
  EXPECT_EQ(xce_core_persisted(cluster.core(leader), cluster.now(), last + 1, &u),
            XCE_CORE_IGNORED);
  EXPECT_EQ(xce_core_persisted(cluster.core(leader), cluster.now(), stored, &u), XCE_CORE_IGNORED);
  EXPECT_EQ(xce_core_persisted(cluster.core(leader), cluster.now(), 0, &u), XCE_CORE_IGNORED);
  EXPECT_EQ(xce_core_stored(cluster.core(leader)), stored);
}

TEST(CoreTest, EntriesThatBreakTheProtocolAreRefused) {
  Cluster cluster(3);
  const uint64_t leader = cluster.wait_for_leader();
  const uint64_t follower = leader % 3 + 1;
  const std::string conf = configuration(3);
  const std::string data(8, 'd');
  const uint64_t term = cluster.term(leader);
  const uint64_t last = cluster.log(follower).size();
  const xce_core_entry command = {term, XCE_ENTRY_COMMAND, data.data(), 8};
  xce_core_message m{};
  m.type = XCE_MSG_APPEND_ENTRIES;
  m.peer = leader;
  m.term = term;
  m.prev_log_index = last;
  m.prev_log_term = cluster.log(follower).back().term;
  const auto refused = [&](std::vector<xce_core_entry> entries) {
    m.entries = entries.data();
    m.n_entries = static_cast<unsigned>(entries.size());
    EXPECT_EQ(cluster.receive(follower, m), XCE_CORE_BAD_MESSAGE);
    EXPECT_EQ(cluster.log(follower).size(), last);
  };
  refused({{0, XCE_ENTRY_COMMAND, data.data(), 8}});
  refused({{term + 1, XCE_ENTRY_COMMAND, data.data(), 8}});
  refused({{term, 0, data.data(), 8}});
  refused({{term, 4, data.data(), 8}});
  refused({{term, XCE_ENTRY_COMMAND, data.data(), 7}});
  refused({{term, XCE_ENTRY_COMMAND, data.data(), 0}});
  refused({{term, XCE_ENTRY_CHANGE, data.data(), 8}});
  // A change that is not first would be taken for the batch's first entry.
  refused({command, {term, XCE_ENTRY_CHANGE, conf.data(), conf.size()}});
  m.prev_log_term = 0;
  refused({command});
  m.prev_log_term = term + 1;
  refused({command});
  m.prev_log_term = cluster.log(follower).back().term;
  m.peer = follower;
  refused({command});
  m.peer = leader;
  std::vector<xce_core_entry> good = {{term, XCE_ENTRY_CHANGE, conf.data(), conf.size()}, command};
  m.entries = good.data();
  m.n_entries = 2;
  EXPECT_EQ(cluster.receive(follower, m), XCE_CORE_OK);
  EXPECT_EQ(cluster.log(follower).size(), last + 2);
}

TEST(CoreTest, ASecondLeaderInTheSameTermIsNotBelieved) {
  Cluster cluster(3);
  const uint64_t leader = cluster.wait_for_leader();
  xce_core_message m{};
  m.type = XCE_MSG_APPEND_ENTRIES;
  m.peer = leader % 3 + 1;
  m.term = cluster.term(leader);
  EXPECT_EQ(cluster.receive(leader, m), XCE_CORE_IGNORED);
  EXPECT_EQ(cluster.state(leader), XCE_STATE_LEADER);
}

TEST(CoreTest, ConfigurationsAreCheckedForTheirBounds) {
  const std::string good = configuration(3);
  EXPECT_TRUE(xce_core_valid_configuration(good.data(), good.size()));
  for (size_t n = 0; n < good.size(); n++) {
    // Only padding may be missing.
    const bool padding = good.find_first_not_of('\0', n) == std::string::npos && n % 8 == 0;
    if (!padding) {
      EXPECT_FALSE(xce_core_valid_configuration(good.data(), n)) << n;
    }
  }
  std::string bad = good;
  bad[1] = 100;  // more servers than there are bytes
  EXPECT_FALSE(xce_core_valid_configuration(bad.data(), bad.size()));
  bad = good;
  bad[0] = 2;
  EXPECT_FALSE(xce_core_valid_configuration(bad.data(), bad.size()));
  EXPECT_FALSE(xce_core_valid_configuration(nullptr, 0));
}

// A restart of the whole: random cuts and deaths, and the logs still agree where they are
// committed.
TEST(CoreTest, CommittedEntriesStayThroughRandomTrouble) {
  for (unsigned seed = 1; seed <= 30; seed++) {
    std::srand(seed);
    Cluster cluster(3, 16);
    std::map<uint64_t, uint64_t> committed;  // index -> term
    uint64_t cut = 0;
    for (int round = 0; round < 200; round++) {
      if (std::rand() % 10 == 0) {
        if (cut != 0) cluster.heal(cut);
        cut = std::rand() % 2 == 0 ? 0 : 1 + static_cast<uint64_t>(std::rand() % 3);
        if (cut != 0) cluster.cut(cut);
      }
      for (uint64_t id = 1; id <= 3; id++) {
        cluster.hold_disk(id, std::rand() % 4 == 0);
        if (cluster.state(id) == XCE_STATE_LEADER)
          cluster.submit(id, 1 + static_cast<unsigned>(std::rand() % 5));
        if (std::rand() % 30 == 0 && cluster.state(id) == XCE_STATE_FOLLOWER &&
            xce_core_leader(cluster.core(id)) != 0)
          cluster.stand(id);
      }
      cluster.run(1 + static_cast<unsigned>(std::rand() % 60));
      for (uint64_t id = 1; id <= 3; id++) {
        cluster.persist(id);
        const uint64_t safe =
            std::min(xce_core_commit(cluster.core(id)), xce_core_stored(cluster.core(id)));
        for (uint64_t i = 1; i <= safe; i++) {
          const auto [at, fresh] = committed.emplace(i, cluster.log(id)[i - 1].term);
          ASSERT_EQ(at->second, cluster.log(id)[i - 1].term)
              << "seed " << seed << " index " << i << " node " << id;
        }
      }
    }
    EXPECT_GT(committed.size(), 10u) << "seed " << seed;
  }
}

// ---- snapshots

class SnapshotCore : public testing::Test {
 protected:
  ~SnapshotCore() override { xce_core_free(core_); }
  // One of `voters` nodes whose log is the founding entry and n others of term 1.
  void start(unsigned voters, unsigned n) {
    conf_ = configuration(voters);
    core_ = xce_core_new(1, "host1:1", 300, 30, 1024, 1);
    std::vector<xce_core_entry> entries = {{1, XCE_ENTRY_CHANGE, conf_.data(), conf_.size()}};
    for (unsigned i = 0; i < n; i++) entries.push_back({1, XCE_ENTRY_COMMAND, "12345678", 8});
    ASSERT_EQ(xce_core_start(core_, 1000, 2, 0, entries.data(), n + 1, &update_), XCE_CORE_OK);
  }
  xce_core_snapshot snapshot(uint64_t index, uint64_t term) const {
    return {index, term, 1, conf_.data(), conf_.size()};
  }
  int install(uint64_t index, uint64_t term, uint64_t leader_term) {
    const xce_core_snapshot from = snapshot(index, term);
    xce_core_message message{};
    message.type = XCE_MSG_INSTALL_SNAPSHOT;
    message.peer = 2;
    message.term = leader_term;
    message.snapshot = &from;
    return xce_core_receive(core_, 1001, &message, &update_);
  }
  int append(uint64_t prev_index, uint64_t prev_term, uint64_t leader_term) {
    const xce_core_entry entry = {leader_term, XCE_ENTRY_COMMAND, "abcdefgh", 8};
    xce_core_message message{};
    message.type = XCE_MSG_APPEND_ENTRIES;
    message.peer = 2;
    message.term = leader_term;
    message.prev_log_index = prev_index;
    message.prev_log_term = prev_term;
    message.entries = &entry;
    message.n_entries = 1;
    return xce_core_receive(core_, 1002, &message, &update_);
  }

  std::string conf_;
  xce_core* core_ = nullptr;
  xce_core_update update_;
};

TEST_F(SnapshotCore, OneOfWhatIsNotCommittedOrOldOrMalformedIsNotTaken) {
  start(1, 10);  // leads at once, with an entry of its own term under way or none
  ASSERT_EQ(xce_core_state(core_), XCE_STATE_LEADER);
  const uint64_t commit = xce_core_commit(core_);
  xce_core_snapshot later = snapshot(commit + 1, 1);
  EXPECT_EQ(xce_core_snapshot_taken(core_, 1001, &later, 2, &update_), XCE_CORE_IGNORED);
  xce_core_snapshot bad = snapshot(commit, 1);
  bad.conf_len = 3;
  EXPECT_EQ(xce_core_snapshot_taken(core_, 1001, &bad, 2, &update_), XCE_CORE_BAD_MESSAGE);
  bad = snapshot(commit, 1);
  bad.conf_index = commit + 1;
  EXPECT_EQ(xce_core_snapshot_taken(core_, 1001, &bad, 2, &update_), XCE_CORE_BAD_MESSAGE);
  xce_core_snapshot good = snapshot(commit, 1);
  EXPECT_EQ(xce_core_snapshot_taken(core_, 1001, &good, 2, &update_), XCE_CORE_OK);
  EXPECT_EQ(xce_core_snapshot_taken(core_, 1001, &good, 2, &update_), XCE_CORE_IGNORED) << "twice";
  EXPECT_EQ(xce_core_snapshot_installed(core_, 1001, &update_), XCE_CORE_IGNORED);
}

TEST_F(SnapshotCore, AnInstalledOneTakesTheLogsPlace) {
  start(3, 5);
  ASSERT_EQ(install(100, 2, 3), XCE_CORE_OK);
  EXPECT_NE(update_.flags & XCE_UPDATE_SNAPSHOT, 0u);
  EXPECT_NE(update_.flags & XCE_UPDATE_TERM, 0u);
  EXPECT_EQ(update_.n_messages, 0u);
  EXPECT_EQ(install(200, 2, 3), XCE_CORE_IGNORED) << "one at a time";
  ASSERT_EQ(xce_core_snapshot_installed(core_, 1001, &update_), XCE_CORE_OK);
  ASSERT_EQ(update_.n_messages, 1u);
  EXPECT_EQ(update_.messages[0].type, XCE_MSG_APPEND_ENTRIES_RESULT);
  EXPECT_EQ(update_.messages[0].last_log_index, 100u);
  EXPECT_EQ(update_.messages[0].rejected, 0u);
  EXPECT_EQ(xce_core_commit(core_), 100u);
  EXPECT_EQ(xce_core_stored(core_), 100u);
  ASSERT_EQ(append(100, 2, 3), XCE_CORE_OK);
  EXPECT_EQ(update_.entries_index, 101u);
  EXPECT_EQ(xce_core_voters(core_), 3u);
}

TEST_F(SnapshotCore, OneThatTheLogHoldsAlreadyIsAnsweredAndNotTaken) {
  start(3, 5);
  ASSERT_EQ(install(4, 1, 3), XCE_CORE_OK);
  EXPECT_EQ(update_.flags & XCE_UPDATE_SNAPSHOT, 0u);
  ASSERT_EQ(update_.n_messages, 1u);
  EXPECT_EQ(update_.messages[0].last_log_index, 4u);
  ASSERT_EQ(install(100, 2, 1), XCE_CORE_BAD_MESSAGE) << "a term above its sender's";
  ASSERT_EQ(install(100, 1, 2), XCE_CORE_OK) << "from a leader of the past";
  EXPECT_EQ(update_.flags & XCE_UPDATE_SNAPSHOT, 0u);
}

TEST_F(SnapshotCore, ALogMayBeginAfterOne) {
  conf_ = configuration(3);
  const xce_core_snapshot from = snapshot(100, 2);
  const std::vector<xce_core_entry> entries = {{2, XCE_ENTRY_COMMAND, "12345678", 8},
                                               {2, XCE_ENTRY_COMMAND, "12345678", 8}};
  const auto begin = [&](uint64_t term, uint64_t start, unsigned n) {
    xce_core_free(core_);
    core_ = xce_core_new(1, "host1:1", 300, 30, 1024, 1);
    return xce_core_start_from(core_, 1000, term, 0, &from, start, entries.data(), n, &update_);
  };
  EXPECT_EQ(begin(1, 101, 2), XCE_CORE_BAD_MESSAGE) << "a term below the snapshot's";
  EXPECT_EQ(begin(3, 102, 2), XCE_CORE_BAD_MESSAGE) << "a gap";
  EXPECT_EQ(begin(3, 98, 2), XCE_CORE_BAD_MESSAGE) << "a log that ends before";
  EXPECT_EQ(begin(3, 101, 0), XCE_CORE_OK);
  EXPECT_EQ(xce_core_stored(core_), 100u);
  EXPECT_EQ(append(100, 2, 3), XCE_CORE_OK);
  EXPECT_EQ(update_.entries_index, 101u);
  EXPECT_EQ(begin(3, 100, 2), XCE_CORE_OK);
  EXPECT_EQ(xce_core_stored(core_), 101u);
  EXPECT_EQ(begin(3, 101, 2), XCE_CORE_OK);
  EXPECT_EQ(xce_core_stored(core_), 102u);
  EXPECT_EQ(xce_core_commit(core_), 100u);
  EXPECT_EQ(xce_core_voters(core_), 3u);
}

}  // namespace
