// The state survives being saved and loaded: random lives go on after it as if nothing had been;
// bodies are shared again; what was cut short or changed is refused.
#include "controller/service/state_codec.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "controller/state/chaos_testutil.h"
#include "controller/state/state_testutil.h"

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
    ASSERT_EQ(saved(**copy), saved(second));
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
