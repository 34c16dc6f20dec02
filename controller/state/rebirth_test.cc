// A state from a backup begins a new life: nothing runs twice, nothing old is taken for new.
#include "controller/state/rebirth.h"

#include <algorithm>

#include "controller/state/state_testutil.h"

namespace xce::state {
namespace {

std::unique_ptr<State> reborn_of(const Cluster& c, bool hold = true) {
  auto out = reborn(c.state, {c.index + kRebirthIndexes, hold, "yesterday"});
  EXPECT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)->check_invariants(), std::vector<std::string>{});
  return *std::move(out);
}

TEST(Rebirth, WaitingJobsAreHeldAndRunningOnesStay) {
  Cluster c;
  JobSpec requeued = a_job();
  requeued.requeue = true;
  const JobId running = c.running(requeued);
  const JobId starting = c.run(alice(), a_job()).job;
  c.dispatch(c.plan(starting, {"n1"}));
  const JobId waiting = c.run(alice(), a_job()).job;
  const auto state = reborn_of(c);
  EXPECT_EQ(state->job(running)->state, JobState::kRunning);
  EXPECT_FALSE(state->job(running)->spec.requeue) << "it would be started again when lost";
  // A worker starts what is STARTING and unknown to it.
  EXPECT_EQ(state->job(starting)->state, JobState::kRunning);
  EXPECT_EQ(state->job(starting)->attempt, 1u);
  EXPECT_EQ(state->job(waiting)->state, JobState::kHeld);
  EXPECT_NE(state->job(waiting)->reason.find("yesterday"), std::string::npos);
  EXPECT_EQ(state->hosts().at("n1").used_cpus, 2u);
  EXPECT_EQ(reborn_of(c, false)->job(waiting)->state, JobState::kPending);
}

TEST(Rebirth, NumbersGoOnBeyondWhatTheOldClusterUsed) {
  Cluster c;
  const JobId job = c.run(alice(), a_job()).job;
  c.join_scheduler("s", 1);
  const auto state = reborn_of(c, false);
  EXPECT_GE(state->job(job)->attempt, kRebirthAttempts);
  EXPECT_GE(state->scheduler().epoch, kRebirthEpochs);
  EXPECT_GE(state->applied(), kRebirthIndexes);
  EXPECT_GE(state->job(job)->modify_index, kRebirthIndexes);
  Entry entry;
  entry.time_ms = 1;
  entry.commands.emplace_back();
  entry.commands.back().who = alice();
  entry.commands.back().op = a_job();
  const Applied applied = state->apply(state->applied() + 1, entry);
  EXPECT_GE(applied.results.at(0).job, kRebirthJobIds);
}

TEST(Rebirth, AnOldClientsWriteIsNotAppliedAgain) {
  Cluster c;
  Command command;
  command.client = {1, 2};
  command.op_seq = 1;
  command.who = alice();
  command.op = a_job();
  c.apply({command});
  const auto state = reborn_of(c);
  Entry entry;
  entry.time_ms = 1;
  command.resent = true;
  command.birth = 900;  // higher than the backup's: it saw the old cluster go on
  entry.commands = {command};
  Applied applied = state->apply(state->applied() + 1, entry);
  EXPECT_EQ(words(applied.results.at(0).status), "UNKNOWN");
  entry.commands[0].birth = state->applied();
  entry.commands[0].client = {3, 4};
  applied = state->apply(state->applied() + 1, entry);
  EXPECT_EQ(applied.results.at(0).status, 0);
}

}  // namespace
}  // namespace xce::state
