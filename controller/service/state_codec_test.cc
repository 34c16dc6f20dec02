// The state survives being saved and loaded: random lives go on after it as if nothing had been;
// bodies are shared again; what was cut short or changed is refused.
#include "controller/service/state_codec.h"

#include <capnp/message.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "controller/state/chaos_testutil.h"
#include "controller/state/state_testutil.h"
#include "controller/state/submit_keys.h"
#include "libxce/schema/snapshot.capnp.h"
#include "libxce/wire/codec.h"

namespace xce::service {
namespace {

using state::Applied;
using state::State;

std::string saved(const State& state) {
  std::string bytes;
  EXPECT_TRUE(save_state(state, [&](std::string_view more) {
    bytes.append(more);
    return true;
  }));
  return bytes;
}

absl::StatusOr<std::unique_ptr<State>> loaded(const std::string& bytes) {
  size_t at = 0;
  return load_state([&](char* to, size_t n) {
    n = std::min({n, bytes.size() - at, size_t{4099}});  // in odd pieces
    std::memcpy(to, bytes.data() + at, n);
    at += n;
    return n;
  });
}

class RoundTrip : public testing::TestWithParam<uint32_t> {};

TEST_P(RoundTrip, AReplicaThatIsLoadedGoesOnAsTheOneThatWasSaved) {
  state::Chaos chaos(GetParam());
  State first, second;
  Index index = 0;
  for (int round = 1; round <= 1500; ++round) {
    Entry entry;
    entry.time_ms = 1000000 + 900 * round;
    entry.commands.push_back(chaos.command(first));
    entry.commands.back().client = {3, 1 + chaos.upto(5)};
    entry.commands.back().op_seq = static_cast<uint64_t>(round);
    ++index;
    const Applied one = first.apply(index, entry);
    const Applied two = second.apply(index, entry);
    ASSERT_EQ(state::tell(one.events), state::tell(two.events));
    ASSERT_EQ(one.results[0].status, two.results[0].status);
    if (round % 100 != 0) continue;
    auto copy = loaded(saved(second));
    ASSERT_TRUE(copy.ok()) << copy.status();
    ASSERT_EQ((*copy)->fingerprint(), first.fingerprint()) << "round " << round;
    ASSERT_EQ((*copy)->check_invariants(), std::vector<std::string>{});
    // Once loaded it is saved as the same bytes ever after. (Before that it may share more bodies:
    // what its interner remembers is not a part of the state.)
    auto again = loaded(saved(**copy));
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_TRUE(saved(**again) == saved(**copy)) << "round " << round;
    second.swap(**copy);
  }
  EXPECT_EQ(first.fingerprint(), second.fingerprint());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RoundTrip, testing::Range(1u, 9u));

TEST(StateCodec, AnEmptyStateComesBack) {
  State state;
  auto copy = loaded(saved(state));
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ((*copy)->fingerprint(), state.fingerprint());
}

TEST(StateCodec, TasksOfAnArrayShareTheirBodyOnDiskAndAfterwards) {
  state::Cluster cluster;
  JobSpec spec = state::a_job({"/bin/echo", std::string(10000, 'x')});
  for (uint32_t i = 0; i < 2000; ++i) spec.array.push_back(i);
  ASSERT_EQ(cluster.run(state::alice(), spec).status, 0);
  const std::string bytes = saved(cluster.state);
  EXPECT_LT(bytes.size(), 2000u * 700u);
  auto copy = loaded(bytes);
  ASSERT_TRUE(copy.ok()) << copy.status();
  std::set<const JobBody*> bodies;
  for (JobId id = 1; id <= 2000; ++id) bodies.insert((*copy)->job(id)->spec.body.get());
  EXPECT_EQ(bodies.size(), 1u);
  EXPECT_EQ((*copy)->fingerprint(), cluster.state.fingerprint());
}

// Jobs with arguments of their own and one environment: that is there once, on disk and afterwards.
TEST(StateCodec, JobsShareTheirEnvironment) {
  state::Cluster cluster;
  for (int i = 0; i < 600; ++i) {
    JobSpec spec = state::a_job();
    auto body = std::make_shared<JobBody>();
    body->args = {"/bin/echo", std::to_string(i)};
    body->env = std::vector<std::string>{std::string(5000, 'e')};
    spec.body = body;
    ASSERT_EQ(cluster.run(state::alice(), spec).status, 0);
  }
  std::set<const void*> envs;
  for (JobId id = 1; id <= 600; ++id) envs.insert(cluster.state.job(id)->spec.body->env.identity());
  EXPECT_EQ(envs.size(), 1u);
  const std::string bytes = saved(cluster.state);
  EXPECT_LT(bytes.size(), 600u * 900u);
  auto copy = loaded(bytes);
  ASSERT_TRUE(copy.ok()) << copy.status();
  envs.clear();
  for (JobId id = 1; id <= 600; ++id) {
    const JobBody& body = *(*copy)->job(id)->spec.body;
    envs.insert(body.env.identity());
    EXPECT_EQ(body.args[1], std::to_string(id - 1));
  }
  EXPECT_EQ(envs.size(), 1u);
  EXPECT_EQ((*copy)->fingerprint(), cluster.state.fingerprint());
}

// What version 2 wrote: the key itself, where there is a hash of it now.
TEST(StateCodec, KeysOfAnOlderSnapshotAreKnown) {
  std::string bytes;
  const auto put = [&](const std::function<void(wire::StateRecord::Builder)>& fill) {
    capnp::MallocMessageBuilder message;
    fill(message.initRoot<wire::StateRecord>());
    const std::string words = wire::flatten(message);
    const uint64_t n = words.size() / 8;
    bytes.append(reinterpret_cast<const char*>(&n), sizeof n).append(words);
  };
  const std::string name("alice\0nightly", 13), orphan("bob\0k", 5);
  const auto data = [](const std::string& text) {
    return capnp::Data::Reader(reinterpret_cast<const kj::byte*>(text.data()), text.size());
  };
  put([](wire::StateRecord::Builder record) {
    auto totals = record.initTotals();
    totals.setVersion(2);
    totals.setApplied(5);
    totals.setNextJob(10);
    totals.setNowMs(1000);
  });
  put([&](wire::StateRecord::Builder record) {
    auto keys = record.initKeys(2);
    keys[0].setName(data(name));
    keys[0].setJob(3);
    keys[0].setCount(1);
    keys[0].setKept(1);
    keys[0].setBodyHash(77);
    keys[1].setName(data(orphan));
    keys[1].setJob(4);
    keys[1].setCount(1);
  });
  put([&](wire::StateRecord::Builder record) {
    auto orphans = record.initOrphans(1);
    orphans[0].setRemovedMs(1000);
    orphans[0].setName(data(orphan));
  });
  put([](wire::StateRecord::Builder record) { record.setEnd(0); });
  auto copy = loaded(bytes);
  ASSERT_TRUE(copy.ok()) << copy.status();
  const auto submit = [&](Index index, const Identity& who, const std::string& key, int64_t at_ms) {
    Entry entry;
    entry.time_ms = at_ms;
    entry.commands.resize(2);
    entry.commands[0].who.role = Role::kController;
    entry.commands[0].op = Tick{};
    entry.commands[1].who = who;
    JobSpec spec = state::a_job();
    spec.submit_key = key;
    entry.commands[1].op = spec;
    return (*copy)->apply(index, entry).results[1];
  };
  EXPECT_EQ(submit(6, state::alice(), "nightly", 2000).job, 3u);
  EXPECT_EQ(submit(7, state::bob(), "k", 2000).job, 4u);
  EXPECT_NE(submit(8, state::bob(), "k", 1000 + 2 * state::kKeyKeepMs).job, 4u);  // forgotten
}

TEST(StateCodec, AResentWriteGetsItsFirstResultAfterwards) {
  State state;
  Entry entry;
  entry.commands.resize(1);
  entry.commands[0].client = {1, 2};
  entry.commands[0].op_seq = 7;
  entry.commands[0].who = state::alice();
  entry.commands[0].op = state::a_job();
  entry.commands[0].op_hash = 99;
  const Result before = state.apply(1, entry).results[0];
  auto copy = loaded(saved(state));
  ASSERT_TRUE(copy.ok()) << copy.status();
  const Applied again = (*copy)->apply(2, entry);
  EXPECT_EQ(again.results[0].job, before.job);
  EXPECT_TRUE(again.events.empty());
  entry.commands[0].op_hash = 98;  // the id was another request's
  EXPECT_EQ((*copy)->apply(3, entry).results[0].status, E_XCE_INVALID);
}

TEST(StateCodec, WhatIsCutShortOrChangedIsRefused) {
  state::Cluster cluster;
  for (int i = 0; i < 50; ++i) cluster.run(state::alice(), state::a_job());
  const std::string bytes = saved(cluster.state);
  for (size_t n = 0; n < bytes.size(); n += 997) EXPECT_FALSE(loaded(bytes.substr(0, n)).ok()) << n;
  for (size_t at = 0; at < bytes.size(); at += 61) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    (void)loaded(changed);  // whatever it says, it must say it
  }
}

TEST(StateCodec, AFullDiskEndsTheSaving) {
  state::Cluster cluster;
  for (int i = 0; i < 50; ++i) cluster.run(state::alice(), state::a_job());
  int calls = 0;
  EXPECT_FALSE(save_state(cluster.state, [&](std::string_view) { return ++calls < 3; }));
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace xce::service
