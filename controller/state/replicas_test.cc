// Random lives of a cluster from fixed seeds, applied by two replicas; and one by
// a client that resends everything in any order. Replicas must agree, invariants must hold, nothing
// may happen twice.
#include <algorithm>

#include "controller/state/chaos_testutil.h"
#include "controller/state/state_testutil.h"

namespace xce::state {
namespace {

// A write that was answered arrives again: the answer is the same, and nothing changes.
void resend(State& first, State& second, Index index, const std::pair<Command, Result>& answered) {
  Entry entry;
  entry.commands = {answered.first};
  const Applied again = first.apply(index, entry);
  second.apply(index, entry);
  EXPECT_EQ(tell(again.events), "");
  EXPECT_EQ(again.results[0].status, answered.second.status);
  EXPECT_EQ(again.results[0].message, answered.second.message);
  EXPECT_EQ(again.results[0].job, answered.second.job);
  EXPECT_EQ(again.results[0].item_status, answered.second.item_status);
}

class Replicas : public testing::TestWithParam<uint32_t> {};

TEST_P(Replicas, AgreeAndKeepTheInvariants) {
  Chaos chaos(GetParam());
  State first, second;
  Index index = 0;
  int64_t time_ms = 1000;
  std::map<JobId, Job> seen;  // what a subscriber knows
  std::vector<std::pair<Command, Result>> answered;
  for (int round = 0; round < 4000; ++round) {
    Entry entry;
    time_ms += static_cast<int64_t>(chaos.upto(2000)) - 200;
    entry.time_ms = time_ms;
    for (uint64_t n = chaos.upto(4); n > 0; --n) entry.commands.push_back(chaos.command(first));
    for (Command& command : entry.commands) {
      if (command.client == ClientId{}) command.client = {5, chaos.upto(3)};
      command.op_seq =
          answered.size() + static_cast<uint64_t>(&command - entry.commands.data()) + 1;
      command.lowest_unanswered = command.op_seq > 500 ? command.op_seq - 500 : 1;
    }
    ++index;
    const Applied one = first.apply(index, entry);
    const Applied two = second.apply(index, entry);
    ASSERT_EQ(tell(one.events), tell(two.events));
    for (size_t i = 0; i < entry.commands.size(); ++i)
      answered.emplace_back(entry.commands[i], one.results[i]);
    if (!answered.empty() && chaos.one_in(3)) {
      const size_t back = 1 + chaos.upto(std::min<size_t>(answered.size(), 400));
      resend(first, second, ++index, answered[answered.size() - back]);
    }
    for (const Event& event : one.events) {
      if (const Job* job = std::get_if<Job>(&event)) seen[job->id] = *job;
      if (const JobRemoved* gone = std::get_if<JobRemoved>(&event)) seen.erase(gone->id);
    }
    if (round % 50 != 0) continue;
    ASSERT_EQ(first.check_invariants(), std::vector<std::string>{})
        << "seed " << GetParam() << " index " << index;
    ASSERT_EQ(first.fingerprint(), second.fingerprint());
  }
  // Following the events gives the same jobs as asking.
  const State::JobPage all = first.jobs(JobFilter{}, 1000000);
  ASSERT_EQ(all.jobs.size(), seen.size());
  for (const Job* job : all.jobs) {
    const Job& known = seen.at(job->id);
    EXPECT_EQ(known.modify_index, job->modify_index);
    EXPECT_EQ(Tell{}(known) + known.reason, Tell{}(*job) + job->reason);
  }
  EXPECT_GT(first.stats().finished, 100u) << "the random life was too dull to test anything";
}

TEST_P(Replicas, EachWriteHasItsEffectOnceInWhateverOrderItIsResent) {
  Chaos chaos(GetParam() + 1000);
  State state;
  constexpr uint64_t kClients = 4, kWrites = 300;
  struct Sent {
    Command command;
    bool applied = false;
    Result result;
  };
  std::vector<Sent> sent;
  for (uint64_t client = 1; client <= kClients; ++client) {
    for (uint64_t seq = 1; seq <= kWrites; ++seq) {
      Sent write;
      write.command.client = {7, client};
      write.command.op_seq = seq;
      write.command.lowest_unanswered = seq > 100 ? seq - 100 : 1;
      write.command.who = alice();
      write.command.op = a_job();
      sent.push_back(write);
    }
  }
  // Arrivals: each write one to four times, up to 80 places from where it was sent.
  std::vector<std::pair<uint64_t, size_t>> arrivals;
  for (size_t i = 0; i < sent.size(); ++i) {
    for (uint64_t times = 1 + chaos.upto(4); times > 0; --times)
      arrivals.push_back({i % kWrites + chaos.upto(80), i});
  }
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Index index = 0;
  for (size_t at = 0; at < arrivals.size();) {
    Entry entry;
    std::vector<size_t> which;
    for (uint64_t n = 1 + chaos.upto(8); n > 0 && at < arrivals.size(); --n, ++at) {
      which.push_back(arrivals[at].second);
      entry.commands.push_back(sent[which.back()].command);
    }
    const Applied applied = state.apply(++index, entry);
    for (size_t i = 0; i < which.size(); ++i) {
      Sent& write = sent[which[i]];
      const Result& result = applied.results[i];
      ASSERT_EQ(result.status, 0) << result.message;
      if (write.applied) {
        ASSERT_EQ(result.job, write.result.job);
      }
      write.applied = true;
      write.result = result;
    }
  }
  EXPECT_EQ(state.stats().pending, kClients * kWrites);
  EXPECT_EQ(state.check_invariants(), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Seeds, Replicas, testing::Range(1u, 13u));

TEST(Fingerprint, SeesEveryDifference) {
  Cluster a, b;
  EXPECT_EQ(a.state.fingerprint(), b.state.fingerprint());
  JobSpec spec = a_job();
  a.run(alice(), spec);
  spec.comment = "x";
  b.run(alice(), spec);
  EXPECT_NE(a.state.fingerprint(), b.state.fingerprint());
}

}  // namespace
}  // namespace xce::state
