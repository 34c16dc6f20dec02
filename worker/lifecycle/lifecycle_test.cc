// Stories of a job's life, told as who said what and what the machine then asked for.
#include "worker/lifecycle/lifecycle.h"

#include <gtest/gtest.h>

#include <memory>

namespace xce::worker {
namespace {

constexpr int64_t kNow = 1000;
constexpr Key k17{17, 1};

Job job(JobState state, uint32_t attempt = 1, Desired desired = Desired::kRun,
        const std::string& host = "n1") {
  static Index index = 0;
  Job j;
  j.id = 17;
  j.attempt = attempt;
  j.state = state;
  j.desired = desired;
  j.modify_index = ++index;
  j.allocs = {{host, 1, 0, {}}};
  return j;
}

// What an action amounts to, in a word or two, so that a story reads on one line.
std::string words(const Action& action) {
  static const char* const kinds[] = {"start", "finish", "fail", "stop", "chkpt", "resumed"};
  if (auto* l = std::get_if<Launch>(&action))
    return "launch " + std::to_string(l->key.job) + "." + std::to_string(l->key.attempt);
  if (auto* s = std::get_if<Send>(&action)) {
    std::string text = std::string("report ") + kinds[static_cast<int>(s->report.kind)];
    if (s->report.kind == NotifyKind::kFinish || s->report.kind == NotifyKind::kFail)
      text += std::string(" ") + name_of(s->report.outcome);
    return text;
  }
  if (auto* o = std::get_if<Order>(&action)) {
    if (o->control == Control::kKill) return "kill " + std::to_string(o->signal);
    if (o->control == Control::kLimit) return "limit " + std::to_string(o->time_limit_s);
    return o->control == Control::kSuspend ? "suspend" : "resume";
  }
  if (std::get_if<Remove>(&action)) return "remove";
  return "";  // notes are for people
}

class Story : public ::testing::Test {
 protected:
  // Feeds an event and tells everything that the machine asks for.
  std::string tell(const Event& event) {
    std::string text;
    for (const Action& action : machine_.step(event, kNow)) {
      const std::string word = words(action);
      if (!word.empty()) text += (text.empty() ? "" : ", ") + word;
      if (auto* send = std::get_if<Send>(&action)) last_ = send->report;
    }
    return text;
  }
  std::string started(Key key = k17) { return tell(Started{key, 1, "/o", "/e"}); }
  std::string exited(JobState outcome = JobState::kCompleted, Key key = k17) {
    Exited e;
    e.key = key;
    e.outcome = outcome;
    e.exit_code = outcome == JobState::kCompleted ? 0 : 3;
    e.usage.cpu_ms = 5;
    return tell(e);
  }
  void run_to_running() {
    ASSERT_EQ(tell(Observed{job(JobState::kStarting)}), "launch 17.1");
    ASSERT_EQ(started(), "report start");
  }

  Lifecycle machine_{"n1"};
  Report last_;
};

TEST_F(Story, FromDispatchToConfirmation) {
  EXPECT_EQ(tell(Observed{job(JobState::kStarting)}), "launch 17.1");
  EXPECT_EQ(started(), "report start");
  EXPECT_EQ(last_.stdout_file, "/o");
  EXPECT_EQ(tell(Observed{job(JobState::kRunning)}), "");
  EXPECT_EQ(exited(), "report finish COMPLETED");
  EXPECT_EQ(last_.usage.cpu_ms, 5u);
  EXPECT_EQ(tell(Observed{job(JobState::kCompleted)}), "");
  EXPECT_EQ(tell(FinalConfirmed{k17}), "remove");
  EXPECT_TRUE(machine_.jobs().empty());
}

TEST_F(Story, ADispatchSeenTwiceStartsNothing) {
  run_to_running();
  EXPECT_EQ(tell(Observed{job(JobState::kStarting)}), "");
  exited();
  EXPECT_EQ(tell(Observed{job(JobState::kStarting)}), "");
  tell(FinalConfirmed{k17});
  // A listing that was read before the end was confirmed arrives late.
  EXPECT_EQ(tell(Observed{job(JobState::kStarting)}), "");
  EXPECT_EQ(tell(Observed{job(JobState::kRunning)}), "");
}

// A command inside attempt 1 of job 17 (xce run --job).
Job step(JobState state, JobId id = 18, Desired desired = Desired::kRun) {
  Job j = job(state, 1, desired);
  j.id = id;
  j.spec.step = std::make_shared<const Step>(Step{17, {"n1"}, 1, 0, 0});
  return j;
}
constexpr Key k18{18, 1};

TEST_F(Story, AStepEndsWithItsJobWithoutBeingTold) {
  run_to_running();
  EXPECT_EQ(tell(Observed{step(JobState::kStarting)}), "launch 18.1");
  EXPECT_EQ(tell(Observed{step(JobState::kStarting, 19)}), "launch 19.1");
  EXPECT_EQ(started(k18), "report start");
  EXPECT_EQ(exited(), "report finish COMPLETED, kill 9");
  EXPECT_EQ(started({19, 1}), "report start, kill 9") << "it was just about to start";
  EXPECT_EQ(tell(Observed{step(JobState::kRunning, 18, Desired::kSuspend)}), "");
  EXPECT_EQ(exited(JobState::kKilled, k18), "report finish KILLED");
  // One that comes late is not started any more, also when its job is forgotten.
  EXPECT_EQ(tell(Observed{step(JobState::kStarting, 20)}), "report fail KILLED");
  EXPECT_EQ(tell(FinalConfirmed{k17}), "remove");
  EXPECT_EQ(tell(Observed{step(JobState::kStarting, 21)}), "report fail KILLED");
}

TEST_F(Story, AStepEndsWithItsJobAlsoWhenThatEndedUnwatched) {
  Found found{k18, Phase::kRunning, true, false, "/o", "/e", k17};
  EXPECT_EQ(tell(found), "");
  EXPECT_EQ(tell(Found{k17, Phase::kRunning, true, false, "/o", "/e", {}}), "");
  EXPECT_EQ(tell(Vanished{k17, 1, JobState::kLost, "gone"}), "report fail LOST, kill 9");
  found.key = {19, 1};
  EXPECT_EQ(tell(found), "kill 9") << "found after its job's end was";
  // A job of another host is not known here: its controller tells of its end.
  found.key = {31, 1};
  found.part_of = {30, 1};
  EXPECT_EQ(tell(found), "");
}

TEST_F(Story, NewControllersMayUseOldNumbers) {
  run_to_running();
  exited();
  tell(FinalConfirmed{k17});
  EXPECT_EQ(tell(ControllersReset{}), "");
  EXPECT_EQ(tell(Observed{job(JobState::kStarting)}), "launch 17.1");
}

TEST_F(Story, ALowerAttemptIsIgnored) {
  EXPECT_EQ(tell(Observed{job(JobState::kStarting, 3)}), "launch 17.3");
  EXPECT_EQ(tell(Observed{job(JobState::kStarting, 2)}), "");
}

TEST_F(Story, ANewAttemptReplacesTheOldOne) {
  run_to_running();
  EXPECT_EQ(tell(Observed{job(JobState::kStarting, 2)}), "kill 0, launch 17.2");
  EXPECT_EQ(exited(JobState::kKilled), "report finish KILLED");
  EXPECT_EQ(started({17, 2}), "report start");
  EXPECT_EQ(tell(FinalConfirmed{k17}), "remove");
  EXPECT_EQ(exited(JobState::kCompleted, {17, 2}), "report finish COMPLETED");
}

TEST_F(Story, KilledBeforeItsStartWasSeen) {
  EXPECT_EQ(tell(Observed{job(JobState::kStarting, 1, Desired::kKill)}), "report fail KILLED");
  EXPECT_EQ(tell(Observed{job(JobState::kStarting, 1, Desired::kKill)}), "");
}

TEST_F(Story, KilledWhileItsShepherdStarts) {
  EXPECT_EQ(tell(Observed{job(JobState::kStarting)}), "launch 17.1");
  EXPECT_EQ(tell(Observed{job(JobState::kStarting, 1, Desired::kKill)}), "");
  EXPECT_EQ(started(), "report start, kill 0");
  EXPECT_EQ(exited(JobState::kKilled), "report finish KILLED");
}

TEST_F(Story, KillIsOrderedOnceAndIsFinal) {
  run_to_running();
  EXPECT_EQ(tell(Observed{job(JobState::kRunning, 1, Desired::kKill)}), "kill 0");
  EXPECT_EQ(tell(Observed{job(JobState::kRunning, 1, Desired::kKill)}), "");
  EXPECT_EQ(tell(Observed{job(JobState::kRunning, 1, Desired::kRun)}), "");
}

TEST_F(Story, ASignalThenAKill) {
  run_to_running();
  Job j = job(JobState::kRunning, 1, Desired::kKill);
  j.kill_signal = 10;
  EXPECT_EQ(tell(Observed{j}), "kill 10");
  EXPECT_EQ(tell(Observed{j}), "");
  EXPECT_EQ(tell(Observed{job(JobState::kRunning, 1, Desired::kKill)}), "kill 0");
}

TEST_F(Story, SuspendedAndResumed) {
  run_to_running();
  EXPECT_EQ(tell(Observed{job(JobState::kRunning, 1, Desired::kSuspend)}), "suspend");
  EXPECT_EQ(tell(Suspended{k17, 2}), "report stop");
  EXPECT_EQ(tell(Observed{job(JobState::kSuspended, 1, Desired::kSuspend)}), "");
  EXPECT_EQ(tell(Observed{job(JobState::kSuspended, 1, Desired::kRun)}), "resume");
  EXPECT_EQ(tell(Resumed{k17, 3}), "report resumed");
  EXPECT_EQ(exited(), "report finish COMPLETED");
}

TEST_F(Story, TheTimeLimitIsChanged) {
  run_to_running();
  Job j = job(JobState::kRunning);
  j.spec.time_limit_s = 60;
  EXPECT_EQ(tell(Observed{j}), "limit 60");
  EXPECT_EQ(tell(Observed{j}), "");
}

TEST_F(Story, TheTimeLimitAfterARestartIsToldAnew) {
  EXPECT_EQ(tell(Found{k17, Phase::kRunning, true, false, "/o", "/e"}), "");
  EXPECT_EQ(tell(Observed{job(JobState::kRunning)}), "limit 0");
  EXPECT_EQ(tell(Observed{job(JobState::kRunning)}), "");
}

TEST_F(Story, AnOldRecordDoesNotUndoANewWish) {
  run_to_running();
  const Job old = job(JobState::kRunning);
  EXPECT_EQ(tell(Observed{job(JobState::kRunning, 1, Desired::kSuspend)}), "suspend");
  EXPECT_EQ(tell(Observed{old}), "");
}

TEST_F(Story, CouldNotStart) {
  tell(Observed{job(JobState::kStarting)});
  EXPECT_EQ(exited(JobState::kFailed), "report fail FAILED");
  tell(FinalConfirmed{k17});
}

TEST_F(Story, TheShepherdWasKilled) {
  run_to_running();
  EXPECT_EQ(tell(Vanished{k17, 1, JobState::kLost, "killed"}), "report fail LOST");
  EXPECT_EQ(last_.message, "killed");
  EXPECT_EQ(exited(), "");  // only one end is reported
}

TEST_F(Story, TheControllerSaysItRunsHereAndItDoesNot) {
  EXPECT_EQ(tell(Observed{job(JobState::kRunning)}), "report fail LOST");
  EXPECT_NE(last_.message.find("lost on host n1"), std::string::npos);
  EXPECT_EQ(tell(Observed{job(JobState::kRunning)}), "");
}

TEST_F(Story, TheControllerNoLongerCountsItAsOurs) {
  run_to_running();
  EXPECT_EQ(tell(Disowned{k17, "the controller does not know it"}), "kill 0");
  EXPECT_EQ(tell(Observed{job(JobState::kRunning)}), "");  // what is being killed stays killed
  EXPECT_EQ(exited(JobState::kKilled), "report finish KILLED");
}

TEST_F(Story, TheControllerEndedItMeanwhile) {
  run_to_running();
  EXPECT_EQ(tell(Observed{job(JobState::kLost)}), "kill 0");
}

TEST_F(Story, JobsOfOtherHostsAreNotOurs) {
  EXPECT_EQ(tell(Observed{job(JobState::kStarting, 1, Desired::kRun, "n2")}), "");
  EXPECT_EQ(tell(Observed{job(JobState::kRunning, 1, Desired::kRun, "n2")}), "");
  EXPECT_EQ(tell(Observed{job(JobState::kPending)}), "");
}

TEST_F(Story, FoundRunningAfterARestart) {
  EXPECT_EQ(tell(Found{k17, Phase::kRunning, true, false, "/o", "/e"}), "");
  EXPECT_EQ(exited(), "report finish COMPLETED");
  EXPECT_EQ(last_.stderr_file, "/e");
}

TEST_F(Story, FoundRunningWithItsStartUnreported) {
  EXPECT_EQ(tell(Found{k17, Phase::kRunning, false, false, "/o", "/e"}), "report start");
}

TEST_F(Story, FoundSuspendedWithThatUnreported) {
  EXPECT_EQ(tell(Found{k17, Phase::kSuspended, true, false, "/o", "/e"}), "report stop");
  EXPECT_EQ(tell(Observed{job(JobState::kRunning, 1, Desired::kSuspend)}), "limit 0");
  EXPECT_EQ(tell(Observed{job(JobState::kSuspended, 1, Desired::kRun)}), "resume");
}

TEST_F(Story, FoundWithItsEndReportedAndUnconfirmed) {
  EXPECT_EQ(tell(Found{k17, Phase::kEnded, true, false, "/o", "/e"}), "");
  EXPECT_EQ(tell(Observed{job(JobState::kRunning)}), "");
  EXPECT_EQ(tell(FinalConfirmed{k17}), "remove");
}

TEST_F(Story, AJobThatTheHostCannotStartIsGivenBackAndMayComeAgain) {
  EXPECT_EQ(tell(Observed{job(JobState::kStarting)}), "launch 17.1");
  EXPECT_EQ(tell(GivenBack{k17, 5, "disk full"}), "report fail PENDING");
  EXPECT_EQ(last_.message, "disk full");
  EXPECT_EQ(tell(GivenBack{k17, 6, "disk full"}), "");
  EXPECT_EQ(tell(Observed{job(JobState::kStarting)}), "") << "an old record";
  EXPECT_EQ(tell(FinalConfirmed{k17}), "remove");
  EXPECT_EQ(tell(Observed{job(JobState::kStarting)}), "") << "an old record still";
  EXPECT_EQ(tell(Observed{job(JobState::kStarting, 2)}), "launch 17.2");
}

TEST_F(Story, ALaunchThatWasPutOffAndDroppedIsMadeWhenTheJobIsObservedAgain) {
  EXPECT_EQ(tell(Observed{job(JobState::kStarting)}), "launch 17.1");
  EXPECT_EQ(tell(NotLaunched{k17}), "");
  EXPECT_EQ(machine_.find(k17), nullptr);
  EXPECT_EQ(tell(Observed{job(JobState::kStarting)}), "launch 17.1");
  started();
  EXPECT_EQ(tell(NotLaunched{k17}), "");
  EXPECT_NE(machine_.find(k17), nullptr) << "what runs is not dropped";
}

}  // namespace
}  // namespace xce::worker
