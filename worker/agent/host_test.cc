// The whole worker but for libxce: leases, a host that can start nothing, orphans.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "worker/agent/agent_testutil.h"

namespace xce::worker {
namespace {

// ---- leases

TEST_F(AgentTest, AJobWithRequeueRunsUnderALeaseThatHellosRenew) {
  with_cluster([&] { cluster_.lease_ms = 1500; });
  daemon_->link.dispatch(17, 1, {"sleep", "3"}, data_, true, true);
  EXPECT_TRUE(reaches(17, JobState::kCompleted)) << message(17);
}

TEST_F(AgentTest, WithoutControllersALeasedJobEndsAndAnotherGoesOn) {
  with_cluster([&] { cluster_.lease_ms = 1000; });
  daemon_->link.dispatch(17, 1, until("stop"), data_, true, true);
  daemon_->link.dispatch(18, 1, until("stop"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  ASSERT_TRUE(reaches(18, JobState::kRunning));
  with_cluster([&] { cluster_.reachable = false; });
  ASSERT_TRUE(eventually([&] { return daemon_->supervisor.alive().size() == 1; }));
  EXPECT_EQ(daemon_->supervisor.alive().front().job, 18u);
  with_cluster([&] { cluster_.reachable = true; });
  ASSERT_TRUE(reaches(17, JobState::kLost));
  EXPECT_NE(message(17).find("lease"), std::string::npos);
  touch("stop");
  EXPECT_TRUE(reaches(18, JobState::kCompleted));
}

TEST_F(AgentTest, ADeadWorkersLeasedJobEndsToo) {
  with_cluster([&] { cluster_.lease_ms = 1000; });
  daemon_->link.dispatch(17, 1, until("never"), data_, true, true);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  daemon_.reset();
  ASSERT_TRUE(eventually([&] { return shepherds().empty(); }));
  start();
  EXPECT_TRUE(reaches(17, JobState::kLost));
}

TEST_F(AgentTest, ADispatchThatLayAboutWhileTheLeaseRanOutIsNotStarted) {
  with_cluster([&] { cluster_.lease_ms = 1000; });
  ASSERT_TRUE(eventually([&] { return joins() > 0; }));
  with_cluster([&] { cluster_.reachable = false; });
  ASSERT_TRUE(eventually([&] {
    const auto lease = read_lease(data_);
    return !lease || lease->until_ms < boot_ms();
  }));
  // It arrives only now; meanwhile the controllers have given the job to another host.
  daemon_->link.dispatch(17, 1, {"sh", "-c", "echo x >> ran"}, data_, true, true);
  with_cluster([&] {
    cluster_.jobs[17].attempt = 2;
    cluster_.jobs[17].allocs = {{"n2", 1, 0, {}}};
    cluster_.reachable = true;
  });
  daemon_->link.reconnect(true);
  ASSERT_TRUE(eventually([&] { return daemon_->connector.joined_generation() == 2; }));
  daemon_->link.dispatch(18, 1, {"true"}, data_, true, true);
  ASSERT_TRUE(reaches(18, JobState::kCompleted));
  EXPECT_EQ(read_small_file(data_ + "/ran"), "");
  EXPECT_EQ(reports(17), "");
}

// ---- a host that can start nothing

TEST_F(AgentTest, AFullDataDiskDrainsTheHostAndGivesJobsBack) {
  ASSERT_TRUE(eventually([&] { return joins() > 0; }));
  daemon_->link.dispatch(16, 1, until("stop"), data_);
  ASSERT_TRUE(reaches(16, JobState::kRunning));
  free_mb_ = 3;
  ASSERT_TRUE(eventually([&] { return told_fault().find("MiB free") != std::string::npos; }));
  daemon_->link.dispatch(17, 1, {"sh", "-c", "echo x >> ran2"}, data_);
  ASSERT_TRUE(reaches(17, JobState::kPending));  // as the report says: it waits again
  EXPECT_EQ(reports(17), "X");
  EXPECT_EQ(state(16), JobState::kRunning) << "what runs goes on";
  EXPECT_NE(message(17).find("data directory"), std::string::npos);
  EXPECT_EQ(read_small_file(data_ + "/ran2"), "");
  free_mb_ = 33;
  usleep(300 * 1000);
  EXPECT_NE(told_fault(), "") << "hardly more is not enough: it would go to and fro";
  free_mb_ = 100;
  ASSERT_TRUE(eventually([&] { return told_fault().empty(); }));
  daemon_->link.dispatch(18, 1, {"true"}, data_);
  EXPECT_TRUE(reaches(18, JobState::kCompleted));
  touch("stop");
  EXPECT_TRUE(reaches(16, JobState::kCompleted));
}

TEST_F(AgentTest, AJobDirectoryThatCannotBeMadeIsTheHostsFault) {
  ASSERT_TRUE(eventually([&] { return joins() > 0; }));
  std::system(("mv " + data_ + "/jobs " + data_ + "/away && touch " + data_ + "/jobs").c_str());
  daemon_->link.dispatch(17, 1, {"true"}, data_);
  ASSERT_TRUE(reaches(17, JobState::kPending)) << message(17);
  EXPECT_NE(message(17).find(data_ + "/jobs/17.1"), std::string::npos) << message(17);
  std::system(("rm " + data_ + "/jobs && mv " + data_ + "/away " + data_ + "/jobs").c_str());
  ASSERT_TRUE(eventually([&] { return told_fault().empty(); }));
  daemon_->link.dispatch(18, 1, {"true"}, data_);
  EXPECT_TRUE(reaches(18, JobState::kCompleted));
}

// ---- a host that was restarted

// Of its jobs it tells that they are lost; and whoever has their processes' numbers now is left
// alone, even with the same start time.
TEST_F(AgentTest, AfterARebootItsJobsAreLostAndNoProcessIsMistaken) {
  daemon_->link.dispatch(17, 1, until("never"), data_);
  daemon_->link.dispatch(18, 1, until("never"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  ASSERT_TRUE(reaches(18, JobState::kRunning));
  ASSERT_TRUE(eventually([&] { return read_small_file(data_ + "/ran") == "x\nx\n"; }));
  daemon_.reset();
  for (pid_t pid : shepherds()) kill(pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return shepherds().empty(); }));
  const pid_t stranger = fork();
  if (stranger == 0) {
    setsid();
    for (;;) pause();
  }
  StatusStarted started =
      JobStore(data_, "n1", {}).read_status({17, 1}).started.value_or(StatusStarted());
  started.pid = started.shepherd_pid = stranger;
  started.start_ticks = started.shepherd_start_ticks = start_ticks(stranger);
  std::ofstream(data_ + "/jobs/17.1/status", std::ios::binary | std::ios::trunc)
      << encode_started({17, 1}, started);
  unlink((data_ + "/jobs/18.1/status").c_str());  // it was about to start, as far as one can tell
  boot_id_ = "the next boot";
  start();
  for (const JobId id : {JobId{17}, JobId{18}}) {
    EXPECT_TRUE(reaches(id, JobState::kLost));
    EXPECT_NE(message(id).find("was restarted while it ran"), std::string::npos) << message(id);
  }
  EXPECT_NE(start_ticks(stranger), 0u);
  EXPECT_EQ(read_small_file(data_ + "/ran"), "x\nx\n") << "neither was started again";
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
}

// ---- orphans

TEST_F(AgentTest, JobsOfARemovedDataDirectoryAreFoundAndEnded) {
  daemon_->link.dispatch(17, 1, {"sh", "-c", "setsid sleep 1000 & echo $! > deep; wait"}, data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  ASSERT_TRUE(eventually([&] { return std::atoi(read_small_file(data_ + "/deep").c_str()) > 0; }));
  const pid_t deep = std::atoi(read_small_file(data_ + "/deep").c_str());
  daemon_.reset();
  std::system(("rm -rf " + data_ + "/*").c_str());
  ASSERT_NE(start_ticks(deep), 0u);
  start();
  EXPECT_EQ(start_ticks(deep), 0u) << "before anybody is told that the job is lost";
  EXPECT_TRUE(reaches(17, JobState::kLost));
}

TEST_F(AgentTest, AKilledShepherdsJobGoesWithAllThatLeftItsSession) {
  daemon_->link.dispatch(17, 1, {"sh", "-c", "setsid sleep 1000 & echo $! > deep; wait"}, data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  ASSERT_TRUE(eventually([&] { return std::atoi(read_small_file(data_ + "/deep").c_str()) > 0; }));
  const pid_t deep = std::atoi(read_small_file(data_ + "/deep").c_str());
  for (pid_t pid : shepherds()) kill(pid, SIGKILL);
  ASSERT_TRUE(reaches(17, JobState::kLost));
  EXPECT_TRUE(eventually([&] { return start_ticks(deep) == 0; }));  // killed, and reaped by init
}

TEST_F(AgentTest, AKillReachesAJobWhoseDirectoryIsGone) {
  daemon_->link.dispatch(17, 1, until("never"), data_);
  ASSERT_TRUE(reaches(17, JobState::kRunning));
  std::system(("rm -rf " + data_ + "/jobs/17.1").c_str());
  daemon_->link.wish(17, Desired::kKill);
  ASSERT_TRUE(reaches(17, JobState::kLost));
  EXPECT_NE(message(17).find("removed while it ran"), std::string::npos) << message(17);
}

}  // namespace
}  // namespace xce::worker
