// Jobs in the kernel's own control groups: version 1 as this machine has it, and a version 2
// hierarchy mounted for the test alone. Where the machine has bound memory, pids and cpu to version
// 1, the one of version 2 limits nothing, but membership, nesting and cgroup.kill are the kernel's;
// the files that set limits are tested in job_cgroup_test.cc.
#include "worker/shepherd/job_cgroup.h"
#include "worker/shepherd/shepherd_testutil.h"

namespace xce::worker {
namespace {

class InCgroups : public ShepherdTest {
 protected:
  void TearDown() override {
    if (pid_ > 0) {
      kill(pid_, SIGTERM);
      waitpid(pid_, nullptr, 0);
      pid_ = 0;
    }
    if (!parent_.empty()) rmdir(parent_.c_str());
    if (!mount_.empty()) umount2(mount_.c_str(), MNT_DETACH);  // before the scratch is removed
    ShepherdTest::TearDown();
  }
  // A version 2 group to make groups in; false: this machine does not let us.
  bool version_two() {
    mount_ = data_ + "/cgroup2";
    mkdir(mount_.c_str(), 0755);
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", mount_.c_str(), "cgroup2", 0, nullptr) != 0)
      return false;
    const std::string parent = mount_ + "/xce-test." + std::to_string(getpid());
    if (mkdir(parent.c_str(), 0755) != 0) return false;
    parent_ = parent;
    return true;
  }
  // A process in the group that sleeps, with a child of a session of its own.
  static pid_t sleeper(const JobCgroup& group) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    for (const std::string& file : group.procs_files()) std::ofstream(file) << "0" << std::flush;
    if (fork() == 0) setsid();
    for (;;) pause();
  }
  static bool killed(pid_t pid) {
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  bool there(const std::string& group) const {
    return access((parent_ + "/" + group).c_str(), F_OK) == 0;
  }

  std::string mount_, parent_;
};

TEST_F(InCgroups, AStepsGroupIsInItsJobsAndGoesFirst) {
  if (!version_two()) GTEST_SKIP() << "no version 2 hierarchy can be mounted here";
  {
    const CgroupLimits limits{64, 1, 100};
    JobCgroup job({parent_}, "job.17.1", "", limits);
    pid_t of_step = 0;
    {
      JobCgroup step({parent_}, "job.17.1", "step.18.1", limits);
      of_step = sleeper(step);
      EXPECT_TRUE(eventually([&] { return step.members().size() == 2; }));
    }
    EXPECT_TRUE(there("job.17.1/step.18.1")) << "processes are in it";
    JobCgroup step({parent_}, "job.17.1", "step.18.1", limits);
    const pid_t of_job = sleeper(job);
    EXPECT_TRUE(eventually([&] { return job.members().size() == 2; })) << "the step's are its own";
    step.kill_all();
    EXPECT_TRUE(killed(of_step));
    EXPECT_TRUE(eventually([&] { return step.members().empty(); }));
    EXPECT_EQ(job.members().size(), 2u) << "its job goes on";
    of_step = sleeper(step);
    EXPECT_TRUE(eventually([&] { return step.members().size() == 2; }));
    job.kill_all();
    EXPECT_TRUE(killed(of_step)) << "the whole job is killed";
    EXPECT_TRUE(killed(of_job));
    EXPECT_TRUE(eventually([&] { return job.members().empty() && step.members().empty(); }));
  }
  EXPECT_TRUE(eventually([&] { return !there("job.17.1"); }));
}

TEST_F(InCgroups, AJobOfVersionTwoIsKilledWithAllThatLeftItsTree) {
  if (!version_two()) GTEST_SKIP() << "no version 2 hierarchy can be mounted here";
  spec_.cgroups = {parent_};
  spec_.memory_mb = 64;
  script(
      "#!/bin/sh\ncat /proc/self/cgroup > groups\n"
      "setsid sh -c 'trap \"\" TERM; echo $$ > deep; while :; do sleep 0.05; done' &\n"
      "trap '' TERM\nwhile :; do sleep 0.05; done\n");
  spec_.time_limit_s = 1;
  launch();
  ASSERT_TRUE(eventually([&] { return pid_in("deep") > 0; }));
  const pid_t deep = pid_in("deep");
  EXPECT_NE(output("groups").find("/job.17.1\n"), std::string::npos) << output("groups");
  const StatusExit exit = ended();
  EXPECT_EQ(exit.outcome, "TIMEOUT");
  EXPECT_EQ(start_ticks(deep), 0u);
  EXPECT_TRUE(eventually([&] { return !there("job.17.1"); }));
}

TEST_F(InCgroups, AStepRunsInItsJobsGroup) {
  if (!version_two()) GTEST_SKIP() << "no version 2 hierarchy can be mounted here";
  spec_.cgroups = {parent_};
  spec_.memory_mb = 64;
  spec_.step_of = 9;
  spec_.step_attempt = 3;
  script("#!/bin/sh\ncat /proc/self/cgroup\n");
  EXPECT_EQ(run().outcome, "COMPLETED");
  EXPECT_NE(output("xce-17.out").find("/job.9.3/step.17.1\n"), std::string::npos)
      << output("xce-17.out");
  EXPECT_TRUE(eventually([&] { return !there("job.9.3"); }));
}

// Whatever version this machine has: the kernel keeps the limit, and the job's end says so.
TEST_F(InCgroups, TheKernelEndsAJobThatTakesTooMuchMemory) {
  const std::vector<std::string> parents = find_job_cgroups("");
  if (!JobCgroup(parents, "test." + std::to_string(getpid()), "", {32, 0, 0}).limits_memory())
    GTEST_SKIP() << "no memory group can be made here";
  spec_.cgroups = parents;
  spec_.memory_mb = 48;
  script("#!/bin/sh\nhead -c 200M /dev/zero | tail -c 200M > /dev/null\necho survived $?\n");
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "FAILED");
  EXPECT_NE(exit.message.find("more than its 48 MiB of memory"), std::string::npos) << exit.message;
  EXPECT_GT(exit.peak_memory_kb, 40u * 1024);
  EXPECT_LE(exit.peak_memory_kb, 64u * 1024) << "it was kept to its limit";
}

}  // namespace
}  // namespace xce::worker
