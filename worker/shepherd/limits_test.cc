// Real shepherds: leases, limits where no control group can be made, full disks, marks.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "worker/shepherd/shepherd_testutil.h"

namespace xce::worker {
namespace {

// ---- the lease of jobs that are requeued when their host is lost

TEST_F(ShepherdTest, ALeasedJobEndsWhenNobodyRenewsTheLease) {
  spec_.leased = true;
  spec_.lease_epoch = 5;
  spec_.args = {"/bin/sleep", "60"};
  ASSERT_TRUE(write_lease(data_, {boot_ms() + 400, 5}));
  launch();
  started();
  const StatusExit exit = ended();  // nobody told it to: the worker may be dead or stopped
  EXPECT_EQ(exit.outcome, "LOST");
  EXPECT_NE(exit.message.find("lease"), std::string::npos) << exit.message;
}

TEST_F(ShepherdTest, ALeasedJobThatIgnoresTermIsKilledWithItsWholeTree) {
  spec_.leased = true;
  script(
      "#!/bin/sh\ntrap '' TERM\nsetsid sh -c 'trap \"\" TERM; echo $$ > deep; while :; do sleep "
      "0.05; done' &\nwhile true; do sleep 0.05; done\n");
  ASSERT_TRUE(write_lease(data_, {boot_ms() + 500, 0}));
  const int64_t begin = boot_ms();
  EXPECT_EQ(run().outcome, "LOST");
  EXPECT_LT(boot_ms() - begin, 500 + 5000 + 5000);  // what the controllers count on: kFenceMs
  ASSERT_GT(pid_in("deep"), 0);
  EXPECT_EQ(start_ticks(pid_in("deep")), 0u);
}

TEST_F(ShepherdTest, ARenewedLeaseKeepsItsJobs) {
  spec_.leased = true;
  spec_.args = {"/bin/sleep", "1"};
  const int64_t begin = boot_ms();
  ASSERT_TRUE(write_lease(data_, {begin + 400, 0}));
  launch();
  while (!status().exit.has_value() && boot_ms() - begin < 10000) {
    ASSERT_TRUE(write_lease(data_, {boot_ms() + 400, 0}));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(ended().outcome, "COMPLETED");
}

TEST_F(ShepherdTest, AJobDoesNotGoOnUnderALaterLease) {
  spec_.leased = true;
  spec_.lease_epoch = 1;
  spec_.args = {"/bin/sleep", "60"};
  ASSERT_TRUE(write_lease(data_, {boot_ms() + 60000, 1}));
  launch();
  started();
  // As if the machine had slept, and the worker had woken first.
  ASSERT_TRUE(write_lease(data_, {boot_ms() + 60000, 2}));
  EXPECT_EQ(ended().outcome, "LOST");
}

TEST_F(ShepherdTest, WithoutALeaseALeasedJobDoesNotStart) {
  spec_.leased = true;
  script("#!/bin/sh\ntouch ran\n");
  EXPECT_EQ(run().outcome, "LOST");
  EXPECT_FALSE(status().started);
  EXPECT_FALSE(exists("ran"));
}

TEST_F(ShepherdTest, AJobThatDidNotAskNeedsNoLease) {
  spec_.args = {"/bin/true"};
  ASSERT_TRUE(write_lease(data_, {boot_ms() - 1000, 0}));
  EXPECT_EQ(run().outcome, "COMPLETED");
}

// ---- limits where no control group can be made

TEST_F(ShepherdTest, MemoryOfTheWholeJobIsLimitedByLooking) {
  // Two processes of 60 MiB each, of which none alone is over.
  script(
      "#!/bin/sh\nhog() { head -c 60M /dev/zero | tail -c 60M | (sleep 60; cat) >/dev/null; }\n"
      "hog & hog & wait\n");
  spec_.memory_mb = 90;
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "FAILED");
  EXPECT_NE(exit.message.find("90 MiB of memory"), std::string::npos) << exit.message;
  EXPECT_GT(exit.peak_memory_kb, 90u * 1024);
}

TEST_F(ShepherdTest, TheNumberOfProcessesIsLimitedByLooking) {
  script("#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8; do sleep 60 & done\nwait\n");
  spec_.max_processes = 5;
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "FAILED");
  EXPECT_NE(exit.message.find("more than the 5 processes"), std::string::npos) << exit.message;
}

TEST_F(ShepherdTest, WithinItsLimitsAJobIsLeftAlone) {
  script("#!/bin/sh\nsleep 1.2 & sleep 1.2; wait\n");
  spec_.memory_mb = 100;
  spec_.max_processes = 10;
  EXPECT_EQ(run().outcome, "COMPLETED");
}

// ---- output

TEST_F(ShepherdTest, OutputPatterns) {
  spec_.array = 12;
  spec_.array_index = 5;
  spec_.name = "a/b";
  spec_.args = {"echo", "hi"};
  spec_.stdout_path = "%A-%a-%j-%x-%u-%%-%z";
  run();
  EXPECT_EQ(output("12-5-17-a_b-ann-%-%z"), "hi\n");
}

TEST_F(ShepherdTest, OutputOnAFullDeviceFailsTheJob) {
  spec_.args = {"/bin/echo", "hi"};
  spec_.stdout_path = "/dev/full";
  spec_.stderr_path = "err";
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "FAILED");
  EXPECT_NE(output("err").find("No space left"), std::string::npos);
}

TEST_F(ShepherdTest, AFullDiskUnderItsOutputFailsAJobAndNoOther) {
  const std::string small = work_ + "/small";
  mkdir(small.c_str(), 0755);
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", small.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "no file system can be mounted here";
  script("#!/bin/sh\nfor i in 1 2 3 4; do head -c 50000 /dev/zero; done\ntrue\n");
  spec_.stdout_path = small + "/out";
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "FAILED") << "though its last command says that all is well";
  EXPECT_NE(exit.message.find("cannot write " + small + "/out: No space left"), std::string::npos)
      << exit.message;
  // Another job of this host, meanwhile.
  unlink((job_dir_ + "/status").c_str());
  spec_.stdout_path = "elsewhere";
  script("#!/bin/sh\nhead -c 200000 /dev/zero\n");
  EXPECT_EQ(run().outcome, "COMPLETED");
  umount2(small.c_str(), MNT_DETACH);
}

// ---- whose processes these are

TEST_F(ShepherdTest, ProcessesOfAJobAreFoundByTheirMark) {
  script("#!/bin/sh\nsetsid sh -c 'echo $$ > deep; exec sleep 60' &\nsleep 60\n");
  launch();
  const pid_t job = started().pid;
  ASSERT_TRUE(eventually([&] { return pid_in("deep") > 0; }));
  std::set<pid_t> found;
  ASSERT_TRUE(eventually([&] {
    for (const MarkedProcess& each : marked_processes(data_))
      if (each.job_dir_name == "17.1") found.insert(each.pid);
    return found.count(job) != 0 && found.count(pid_in("deep")) != 0;
  }));
  EXPECT_TRUE(marked_processes(data_ + "x").empty());
  order("kill 9");
  ended();
  EXPECT_TRUE(marked_processes(data_).empty());
}

}  // namespace
}  // namespace xce::worker
