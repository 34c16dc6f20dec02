// The whole worker but for libxce: jobs, restarts, joins.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "worker/agent/agent_testutil.h"

namespace xce::worker {
namespace {

TEST_F(AgentTest, RunsAJobAndCleansUp) {
  daemon_->link.dispatch(17, 1, {"sh", "-c", "echo hi"}, data_);
  ASSERT_TRUE(reaches(17, JobState::kCompleted));
  EXPECT_EQ(reports(17), "SF");
  EXPECT_TRUE(job_dirs_gone());
  EXPECT_EQ(read_small_file(data_ + "/xce-17.out"), "hi\n");
}

// A command inside a job knows whose it is, goes on while the daemon is away, and ends with the
// job.
TEST_F(AgentTest, AStepHasItsJobsPlaceAndEndsWithIt) {
  daemon_->link.dispatch(17, 2, until("stop"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  const std::string script =
      "echo $XCE_JOB_ID $XCE_ATTEMPT $XCE_STEP_ID $XCE_HOST_INDEX $XCE_NODELIST $XCE_ARRAY_ID "
      "$XCE_ARRAY_INDEX $XCE_CPUS > told; sleep 600";
  daemon_->link.dispatch(18, 1, {"sh", "-c", script}, data_, true, false, [](Job* job) {
    job->spec.step = std::make_shared<const Step>(Step{17, {"n0", "n1"}, 2, 12, 5});
    job->spec.cpus = 3;
  });
  EXPECT_TRUE(eventually([&] {
    return read_small_file(data_ + "/told") == "17 2 18 1 n0,n1 12 5 3\n";
  })) << read_small_file(data_ + "/told");
  restart();
  with_cluster([&] { cluster_.reachable = false; });
  touch("stop");
  EXPECT_TRUE(eventually([&] { return shepherds().empty(); })) << "without a controller";
  with_cluster([&] { cluster_.reachable = true; });
  EXPECT_TRUE(reaches(18, JobState::kKilled));
  EXPECT_TRUE(reaches(17, JobState::kCompleted));
}

TEST_F(AgentTest, TheSameDispatchTwiceStartsOnce) {
  daemon_->link.dispatch(17, 1, until("stop"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  daemon_->link.dispatch(17, 1, until("stop"), data_);
  touch("stop");
  ASSERT_TRUE(reaches(17, JobState::kCompleted));
  EXPECT_EQ(read_small_file(data_ + "/ran"), "x\n");
}

TEST_F(AgentTest, ADispatchWhosePushWasLostIsFoundAtTheNextJoin) {
  ASSERT_TRUE(eventually([&] { return joins() > 0; }));
  for (JobId id = 1; id <= 5; ++id) daemon_->link.dispatch(id, 1, {"true"}, data_, false);
  daemon_->link.reconnect(true);
  for (JobId id = 1; id <= 5; ++id) EXPECT_TRUE(reaches(id, JobState::kCompleted));
}

TEST_F(AgentTest, AGapInThePushesIsMadeGood) {
  ASSERT_TRUE(eventually([&] { return joins() > 0; }));
  daemon_->link.dispatch(1, 1, {"true"}, data_, false);
  daemon_->link.push(PushedGap{});
  EXPECT_TRUE(reaches(1, JobState::kCompleted));
}

TEST_F(AgentTest, KillSuspendResume) {
  daemon_->link.dispatch(17, 1, until("never"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  daemon_->link.wish(17, Desired::kSuspend);
  ASSERT_TRUE(reaches(17, JobState::kSuspended));
  daemon_->link.wish(17, Desired::kRun);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  daemon_->link.wish(17, Desired::kKill);
  ASSERT_TRUE(reaches(17, JobState::kKilled));
  EXPECT_EQ(reports(17), "STRF");
}

TEST_F(AgentTest, AKillRightBehindTheDispatch) {
  daemon_->link.dispatch(17, 1, until("never"), data_);
  daemon_->link.wish(17, Desired::kKill);
  EXPECT_TRUE(reaches(17, JobState::kKilled));
}

TEST_F(AgentTest, JobsOutliveTheDaemonAndAreTakenUpAgain) {
  daemon_->link.dispatch(17, 1, until("stop"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  restart();
  ASSERT_EQ(daemon_->supervisor.alive().size(), 1u);
  touch("stop");
  ASSERT_TRUE(reaches(17, JobState::kCompleted));
  EXPECT_EQ(reports(17), "SF");
  EXPECT_EQ(read_small_file(data_ + "/ran"), "x\n");
  EXPECT_TRUE(job_dirs_gone());
}

TEST_F(AgentTest, AJobThatEndsWhileNoDaemonRunsIsReportedLater) {
  daemon_->link.dispatch(17, 1, until("stop"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  daemon_.reset();
  touch("stop");
  ASSERT_TRUE(eventually([&] {
    return JobStore(data_, "n1", {}).read_status({17, 1}).exit.has_value();
  }));
  start();
  ASSERT_TRUE(reaches(17, JobState::kCompleted));
  EXPECT_EQ(reports(17), "SF");
}

TEST_F(AgentTest, AKilledShepherdMeansALostJob) {
  daemon_->link.dispatch(17, 1, until("never"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  for (pid_t pid : shepherds()) kill(pid, SIGKILL);
  ASSERT_TRUE(reaches(17, JobState::kLost));
  EXPECT_NE(message(17).find("shepherd"), std::string::npos);
}

TEST_F(AgentTest, AShepherdKilledWhileNoDaemonRuns) {
  daemon_->link.dispatch(17, 1, until("never"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  daemon_.reset();
  for (pid_t pid : shepherds()) kill(pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return shepherds().empty(); }));
  start();
  EXPECT_TRUE(reaches(17, JobState::kLost));
}

TEST_F(AgentTest, WithoutAControllerJobsGoOnAndResultsWait) {
  daemon_->link.dispatch(17, 1, until("stop"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  with_cluster([&] { cluster_.reachable = false; });
  touch("stop");
  ASSERT_TRUE(eventually([&] { return daemon_->supervisor.alive().empty(); }));
  EXPECT_EQ(state(17), JobState::kRunning);
  restart();  // also over a restart
  with_cluster([&] { cluster_.reachable = true; });
  EXPECT_TRUE(reaches(17, JobState::kCompleted));
  EXPECT_EQ(reports(17), "SF");
}

TEST_F(AgentTest, WhatWasDispatchedStartsWithoutAController) {
  ASSERT_TRUE(eventually([&] { return joins() > 0; }));
  with_cluster([&] { cluster_.reachable = false; });
  daemon_->link.dispatch(17, 1, {"sh", "-c", "echo x >> ran; exit 3"}, data_);
  ASSERT_TRUE(eventually([&] { return daemon_->outbox->last_seq() == 2; }));
  EXPECT_EQ(read_small_file(data_ + "/ran"), "x\n");
  EXPECT_EQ(state(17), JobState::kStarting);
  with_cluster([&] { cluster_.reachable = true; });
  EXPECT_TRUE(reaches(17, JobState::kFailed));
  EXPECT_EQ(reports(17), "SF");
}

TEST_F(AgentTest, LimitsAreKeptWithoutAController) {
  daemon_->link.dispatch(17, 1, {"sh", "-c", "trap '' TERM; setsid sleep 600 & sleep 600"}, data_,
                         true, false, [](Job* job) { job->spec.time_limit_s = 1; });
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  with_cluster([&] { cluster_.reachable = false; });
  EXPECT_TRUE(eventually([&] { return shepherds().empty(); }));
  with_cluster([&] { cluster_.reachable = true; });
  EXPECT_TRUE(reaches(17, JobState::kTimeout));
  EXPECT_EQ(reports(17), "SF");
}

TEST_F(AgentTest, WorkerAndControllersMayRestartInEitherOrder) {
  const auto ended = [this](Key key) {
    return eventually([&] { return JobStore(data_, "n1", {}).read_status(key).exit.has_value(); });
  };
  // The controllers go first and come last.
  daemon_->link.dispatch(17, 1, until("stop17"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  with_cluster([&] { cluster_.reachable = false; });
  restart();
  touch("stop17");
  ASSERT_TRUE(ended({17, 1}));
  restart();
  with_cluster([&] {
    cluster_.reachable = true;
    ++cluster_.generation;
  });
  EXPECT_TRUE(reaches(17, JobState::kCompleted));
  EXPECT_EQ(reports(17), "SF");
  // The worker goes first and comes last.
  daemon_->link.dispatch(18, 1, until("stop18"), data_);
  ASSERT_TRUE(reaches(18, JobState::kRunning));
  daemon_.reset();
  with_cluster([&] { ++cluster_.generation; });
  touch("stop18");
  ASSERT_TRUE(ended({18, 1}));
  start();
  EXPECT_TRUE(reaches(18, JobState::kCompleted));
  EXPECT_EQ(reports(18), "SF");
  EXPECT_EQ(read_small_file(data_ + "/ran"), "x\nx\n");
  EXPECT_TRUE(job_dirs_gone());
}

TEST_F(AgentTest, LostReportsAreSentAgain) {
  with_cluster([&] { cluster_.drop_notifies = true; });
  daemon_->link.dispatch(17, 1, {"true"}, data_);
  ASSERT_TRUE(eventually([&] { return daemon_->outbox->last_seq() == 2; }));
  ASSERT_TRUE(eventually([&] {
    absl::MutexLock lock(&cluster_.mutex);
    return cluster_.notifies >= 2;
  }));
  with_cluster([&] { cluster_.drop_notifies = false; });
  EXPECT_TRUE(reaches(17, JobState::kCompleted));
  EXPECT_EQ(reports(17), "SF");
}

TEST_F(AgentTest, HelloConfirmsToo) {
  with_cluster([&] { cluster_.confirm_by_push = false; });
  daemon_->link.dispatch(17, 1, {"true"}, data_);
  ASSERT_TRUE(reaches(17, JobState::kCompleted));
  EXPECT_TRUE(job_dirs_gone());
  EXPECT_TRUE(eventually([&] { return daemon_->outbox->confirmed() == 2; }));
}

TEST_F(AgentTest, JoinsAgainAfterAReconnectAndAfterOneThatNoHookTold) {
  ASSERT_TRUE(eventually([&] { return daemon_->connector.joined_generation() == 1; }));
  daemon_->link.reconnect(true);
  ASSERT_TRUE(eventually([&] { return daemon_->connector.joined_generation() == 2; }));
  daemon_->link.reconnect(false);
  ASSERT_TRUE(eventually([&] { return daemon_->connector.joined_generation() == 3; }));
}

TEST_F(AgentTest, AFailedJoinIsTriedUntilItSucceeds) {
  ASSERT_TRUE(eventually([&] { return daemon_->connector.joined_generation() == 1; }));
  with_cluster([&] { cluster_.joinable = false; });
  daemon_->link.reconnect(true);
  int before = 0;
  with_cluster([&] { before = cluster_.hellos; });
  ASSERT_TRUE(eventually([&] {
    absl::MutexLock lock(&cluster_.mutex);
    return cluster_.hellos >= before + 3;
  }));
  EXPECT_EQ(daemon_->connector.joined_generation(), 1u);
  with_cluster([&] { cluster_.joinable = true; });
  EXPECT_TRUE(eventually([&] { return daemon_->connector.joined_generation() == 2; }));
}

TEST_F(AgentTest, AnOrphanIsKilled) {
  daemon_->link.dispatch(17, 1, until("never"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  with_cluster([&] { cluster_.jobs.erase(17); });
  daemon_->link.reconnect(true);
  EXPECT_TRUE(eventually([&] { return daemon_->supervisor.alive().empty(); }));
  EXPECT_TRUE(job_dirs_gone());
}

TEST_F(AgentTest, AJobThatThisHostNeverHeardOfIsReportedLost) {
  ASSERT_TRUE(eventually([&] { return joins() > 0; }));
  daemon_->link.dispatch(17, 1, {"true"}, data_, false);
  with_cluster([&] { cluster_.jobs[17].state = JobState::kRunning; });
  daemon_->link.reconnect(true);
  ASSERT_TRUE(reaches(17, JobState::kLost));
  EXPECT_EQ(reports(17), "X");
}

TEST_F(AgentTest, ANewAttemptRunsAfterAnOldOne) {
  daemon_->link.dispatch(17, 1, until("never"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  daemon_->link.dispatch(17, 2, {"true"}, data_);
  EXPECT_TRUE(reaches(17, JobState::kCompleted));
  EXPECT_TRUE(eventually([&] { return daemon_->supervisor.alive().empty(); }));
}

TEST_F(AgentTest, OutputIsReadThroughTheController) {
  daemon_->link.dispatch(
      17, 1, {"sh", "-c", "echo one; echo two; while [ ! -e stop ]; do sleep 0.01; done"}, data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  ASSERT_TRUE(eventually([&] { return read_small_file(data_ + "/xce-17.out") == "one\ntwo\n"; }));
  auto ask = [&](uint64_t offset, uint32_t limit) {
    size_t before = 0;
    with_cluster([&] { before = cluster_.log_answers.size(); });
    daemon_->link.push(LogQuery{5, 17, Stream::kStdout, offset, limit});
    EXPECT_TRUE(eventually([&] {
      absl::MutexLock lock(&cluster_.mutex);
      return cluster_.log_answers.size() > before;
    }));
    absl::MutexLock lock(&cluster_.mutex);
    return cluster_.log_answers.empty() ? LogChunk() : cluster_.log_answers.back();
  };
  EXPECT_EQ(ask(0, 3).data, "one");
  LogChunk chunk = ask(4, 100);
  EXPECT_EQ(chunk.data, "two\n");
  EXPECT_FALSE(chunk.eof);
  EXPECT_EQ(chunk.query, 5u);
  touch("stop");
  ASSERT_TRUE(reaches(17, JobState::kCompleted));
  ASSERT_TRUE(job_dirs_gone());
  chunk = ask(4, 100);  // the controller's record tells where the output is
  EXPECT_EQ(chunk.data, "two\n");
  EXPECT_TRUE(chunk.eof);
}

TEST_F(AgentTest, OutputThatIsNotThereYetIsWaitedFor) {
  daemon_->link.dispatch(17, 1,
                         {"sh", "-c",
                          "echo one; while [ ! -e more ]; do sleep 0.01; done; echo two; "
                          "while [ ! -e stop ]; do sleep 0.01; done"},
                         data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  ASSERT_TRUE(eventually([&] { return read_small_file(data_ + "/xce-17.out") == "one\n"; }));
  const auto answers = [&] {
    absl::MutexLock lock(&cluster_.mutex);
    return cluster_.log_answers;
  };
  const auto ask = [&](uint64_t query, uint64_t offset, uint32_t wait_ms) {
    daemon_->link.push(LogQuery{query, 17, Stream::kStdout, offset, 100, wait_ms});
  };
  ask(1, 4, 60000);  // nothing there yet
  ask(2, 0, 60000);  // something is: answered at once, past the one that waits
  ask(3, 4, 60);     // its time is over first
  ASSERT_TRUE(eventually([&] { return answers().size() == 2; }));
  EXPECT_EQ(answers()[0].query, 2u);
  EXPECT_EQ(answers()[0].data, "one\n");
  EXPECT_EQ(answers()[1].query, 3u);
  EXPECT_EQ(answers()[1].data, "");
  EXPECT_FALSE(answers()[1].eof);
  touch("more");
  ASSERT_TRUE(eventually([&] { return answers().size() == 3; }));
  EXPECT_EQ(answers()[2].query, 1u);
  EXPECT_EQ(answers()[2].data, "two\n");
  ask(4, 8, 60000);
  touch("stop");  // the end of the job is an answer, too
  ASSERT_TRUE(eventually([&] { return answers().size() == 4; }));
  EXPECT_EQ(answers()[3].data, "");
  EXPECT_TRUE(answers()[3].eof);
}

TEST_F(AgentTest, ManyJobsAtOnce) {
  for (JobId id = 1; id <= 100; ++id) daemon_->link.dispatch(id, 1, {"true"}, data_);
  for (JobId id = 1; id <= 100; ++id) {
    ASSERT_TRUE(reaches(id, JobState::kCompleted)) << id;
    EXPECT_EQ(reports(id), "SF");
  }
}

TEST_F(AgentTest, ControllersThatLostEverythingAreServedAnew) {
  daemon_->link.dispatch(1, 1, {"true"}, data_);
  ASSERT_TRUE(reaches(1, JobState::kCompleted));
  ASSERT_TRUE(job_dirs_gone());
  with_cluster([&] {
    cluster_.jobs.clear();
    cluster_.applied.clear();
    cluster_.outbox_applied = cluster_.index = 0;
  });
  daemon_->link.reconnect(true);
  ASSERT_TRUE(eventually([&] { return daemon_->connector.joined_generation() == 2; }));
  daemon_->link.dispatch(1, 1, {"true"}, data_);
  EXPECT_TRUE(reaches(1, JobState::kCompleted));
  EXPECT_EQ(reports(1), "SF");
}

TEST_F(AgentTest, JoinsThatFailAreTriedUntilOneSucceeds) {
  ASSERT_TRUE(eventually([&] { return daemon_->connector.joined_generation() == 1; }));
  with_cluster([&] { cluster_.failing_joins = 5; });
  daemon_->link.dispatch(17, 1, {"true"}, data_, false);
  daemon_->link.reconnect(false);
  ASSERT_TRUE(eventually([&] { return daemon_->connector.joined_generation() == 2; }));
  with_cluster([&] { EXPECT_EQ(cluster_.failing_joins, 0); });
  EXPECT_TRUE(reaches(17, JobState::kCompleted));
}

TEST_F(AgentTest, ARefusedWorkerRunsNothingAndJoinsOnceItMay) {
  daemon_.reset();
  with_cluster([&] { cluster_.refuse_join = true; });
  start();
  daemon_->link.dispatch(17, 1, {"true"}, data_, false);
  int before = 0;
  with_cluster([&] { before = cluster_.hellos; });
  ASSERT_TRUE(eventually([&] {
    absl::MutexLock lock(&cluster_.mutex);
    return cluster_.hellos >= before + 3;
  }));
  EXPECT_EQ(daemon_->connector.joined_generation(), 0u);
  EXPECT_EQ(state(17), JobState::kStarting);
  with_cluster([&] { cluster_.refuse_join = false; });
  EXPECT_TRUE(reaches(17, JobState::kCompleted));
}

TEST_F(AgentTest, AnotherClustersJobsAreNotMixed) {
  ASSERT_TRUE(eventually([&] { return joins() > 0; }));
  daemon_.reset();
  with_cluster([&] { cluster_.cluster_id = 78; });
  start();
  EXPECT_TRUE(eventually([&] { return daemon_->fatal.load(); }));
  EXPECT_EQ(joins(), 1);
}

}  // namespace
}  // namespace xce::worker
