// Exactly once: each write of a client has its effect once, however often and in whatever order it
// arrives.
#include "controller/state/sessions.h"

#include "controller/state/state_testutil.h"

namespace xce::state {
namespace {

Command write(uint64_t client, uint64_t seq, uint64_t lowest = 0, Index birth = 0) {
  Command command;
  command.client = {1, client};
  command.op_seq = seq;
  command.lowest_unanswered = lowest;
  command.birth = birth;
  command.who = alice();
  command.op = a_job();
  return command;
}

std::string send(Cluster& c, const Command& command) {
  const Result& result = c.apply({command}).results[0];
  return words(result.status) + (result.job ? " " + std::to_string(result.job) : "");
}

TEST(ExactlyOnce, AReplayGetsTheFirstAnswerAndChangesNothing) {
  Cluster c;
  EXPECT_EQ(send(c, write(1, 1)), "ok 1");
  EXPECT_EQ(send(c, write(1, 1)), "ok 1");
  EXPECT_EQ(c.applied.events.size(), 0u);
  EXPECT_EQ(send(c, write(2, 1)), "ok 2");  // another client
  Command bad = write(1, 2);
  bad.op = JobControl{{7}, JobAction::kKill};
  EXPECT_EQ(send(c, bad), "NOENT");
  for (int i = 0; i < 5; ++i) c.run(alice(), a_job());
  EXPECT_EQ(send(c, bad), "NOENT");  // job 7 exists by now; the answer stays
  EXPECT_EQ(c.job(7).state, JobState::kPending);
}

TEST(ExactlyOnce, AnOperationIdStandsForOneRequest) {
  Cluster c;
  Command first = write(1, 1);
  first.op_hash = 11;
  EXPECT_EQ(send(c, first), "ok 1");
  EXPECT_EQ(send(c, first), "ok 1");
  Command other = first;
  other.op = JobControl{{1}, JobAction::kKill};
  other.op_hash = 12;
  EXPECT_EQ(send(c, other), "INVALID");
  EXPECT_EQ(c.job(1).state, JobState::kPending);
  EXPECT_EQ(send(c, first), "ok 1");  // as good as before
}

TEST(ExactlyOnce, ManyInFlightMayArriveInAnyOrder) {
  Cluster c;
  EXPECT_EQ(send(c, write(1, 3, 1)), "ok 1");
  EXPECT_EQ(send(c, write(1, 1, 1)), "ok 2");
  EXPECT_EQ(send(c, write(1, 2, 1)), "ok 3");
  EXPECT_EQ(send(c, write(1, 1, 1)), "ok 2");
  EXPECT_EQ(send(c, write(1, 3, 1)), "ok 1");
  // Also within one entry.
  c.apply({write(1, 5, 1), write(1, 4, 1), write(1, 5, 1)});
  EXPECT_EQ(c.applied.results[0].job, 4u);
  EXPECT_EQ(c.applied.results[2].job, 4u);
  EXPECT_EQ(c.state.stats().pending, 5u);
}

TEST(ExactlyOnce, WhatWasAnsweredIsForgottenButNotDoneAgain) {
  Cluster c;
  EXPECT_EQ(send(c, write(1, 1, 1)), "ok 1");
  EXPECT_EQ(send(c, write(1, 2, 2)), "ok 2");  // the answer to 1 has arrived
  EXPECT_EQ(send(c, write(1, 1, 1)), "UNKNOWN");
  EXPECT_EQ(c.state.stats().pending, 2u);
}

TEST(ExactlyOnce, TheWindowHolds1024) {
  Cluster c;
  for (uint64_t seq = 1; seq <= kWindow; ++seq) send(c, write(1, seq, 1));
  EXPECT_EQ(send(c, write(1, 1, 1)), "ok 1");
  EXPECT_EQ(send(c, write(1, kWindow + 1, 1)), "ok 1025");
  EXPECT_EQ(send(c, write(1, 1, 1)), "UNKNOWN");
  EXPECT_EQ(send(c, write(1, 2, 1)), "ok 2");
}

TEST(ExactlyOnce, WritesWithoutASequenceAreNotRemembered) {
  Cluster c;
  EXPECT_EQ(send(c, write(1, 0)), "ok 1");
  EXPECT_EQ(send(c, write(1, 0)), "ok 2");
  EXPECT_EQ(c.state.stats().sessions, 0u);
}

TEST(ExactlyOnce, AfterAnHourOfSilenceNobodyCanTell) {
  Cluster c;
  c.apply({});
  c.apply({});
  EXPECT_EQ(send(c, write(1, 1, 1, /*birth=*/2)), "ok 1");
  c.time_ms += kIdleMs - 1;
  c.run(controller(), Tick{});
  EXPECT_EQ(c.state.stats().sessions, 1u);
  EXPECT_EQ(send(c, write(1, 1, 1, 2)), "ok 1");  // and is in use again
  c.time_ms += kIdleMs;
  EXPECT_EQ(words(c.run(root(), Tick{}).status), "PERM");
  c.run(controller(), Tick{});
  EXPECT_EQ(c.state.stats().sessions, 0u);
  EXPECT_EQ(send(c, write(1, 1, 1, 2)), "UNKNOWN");
  EXPECT_EQ(send(c, write(2, 1, 1, 1)), "UNKNOWN");  // may have been evicted too
  EXPECT_EQ(send(c, write(3, 1, 1, 3)), "ok 2");     // certainly not
  EXPECT_EQ(c.state.stats().pending, 2u);
}

TEST(ExactlyOnce, ABirthInTheFutureDoesNotLiftTheFloor) {
  Cluster c;
  EXPECT_EQ(send(c, write(1, 1, 1, ~uint64_t{0})), "ok 1");
  c.time_ms += kIdleMs;
  c.run(controller(), Tick{});
  EXPECT_EQ(send(c, write(2, 1, 1, c.index)), "ok 2");
}

TEST(ExactlyOnce, TimeNeverGoesBack) {
  Cluster c;
  send(c, write(1, 1));
  const int64_t before = c.state.now_ms();
  c.time_ms -= 500000;
  c.run(alice(), a_job());
  EXPECT_EQ(c.state.now_ms(), before);
  EXPECT_EQ(c.job(2).submit_ms, before);
}

TEST(ExactlyOnce, ThereIsAnEndToTheNumberOfSessions) {
  Sessions sessions;
  Command command;
  command.op_seq = 1;
  for (uint64_t i = 0; i < kMaxSessions + 10; ++i) {
    command.client = {2, i};
    command.birth = 5 + i;
    ASSERT_FALSE(sessions.admit(command, 1000000, static_cast<int64_t>(i)));
  }
  EXPECT_EQ(sessions.size(), kMaxSessions);
  EXPECT_EQ(sessions.floor(), 15u);  // ten were evicted, born at 5 to 14
  command.client = {2, 0};
  command.birth = 5;
  EXPECT_EQ(sessions.admit(command, 1000001, 1000000)->status, E_XCE_OUTCOME_UNKNOWN);
}

TEST(ApplyDeathTest, AnIndexIsAppliedOnce) {
  Cluster c;
  c.apply({});
  EXPECT_DEATH(c.state.apply(1, Entry{}), "");
}

}  // namespace
}  // namespace xce::state
