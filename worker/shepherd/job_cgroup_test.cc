// Control groups, against a directory that stands for version 2; in_cgroups_test.cc has the
// kernel's own.
#include "worker/shepherd/job_cgroup.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace xce::worker {
namespace {

std::string scratch() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string pattern = std::string(base == nullptr ? "/tmp" : base) + "/cgroup.XXXXXX";
  return mkdtemp(pattern.data()) == nullptr ? "" : pattern;
}

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(JobCgroup, LimitsMemoryProcessorsAndProcessesOfVersionTwo) {
  const std::string parent = scratch(), dir = parent + "/job.17.1";
  mkdir(dir.c_str(), 0755);
  for (const char* file :
       {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max", "cgroup.procs"})
    std::ofstream(dir + "/" + file) << "";
  JobCgroup group({parent}, "job.17.1", "", {64, 2, 100});
  EXPECT_TRUE(group.limits_memory());
  EXPECT_TRUE(group.limits_processes());
  EXPECT_EQ(content(dir + "/memory.max"), "67108864");
  EXPECT_EQ(content(dir + "/memory.swap.max"), "0");
  EXPECT_EQ(content(dir + "/memory.oom.group"), "1");
  EXPECT_EQ(content(dir + "/pids.max"), "100");
  EXPECT_EQ(content(dir + "/cpu.max"), "200000 100000");
  EXPECT_EQ(group.procs_files(), std::vector<std::string>{dir + "/cgroup.procs"});
  EXPECT_FALSE(group.killed_for_memory());
  std::ofstream(dir + "/memory.events") << "low 0\noom 1\noom_kill 1\n";
  std::ofstream(dir + "/pids.events") << "max 3\n";
  std::ofstream(dir + "/memory.peak") << "2048000\n";
  EXPECT_TRUE(group.killed_for_memory());
  EXPECT_TRUE(group.refused_a_process());
  EXPECT_EQ(group.peak_memory_kb(), 2000u);
  std::ofstream(dir + "/cgroup.kill") << "";
  group.kill_all();
  EXPECT_EQ(content(dir + "/cgroup.kill"), "1");
}

TEST(JobCgroup, AStepSharesTheLimitsOfItsJob) {
  const std::string parent = scratch(), dir = parent + "/job.17.1";
  mkdir(dir.c_str(), 0755);
  std::ofstream(dir + "/memory.max") << "";
  JobCgroup group({parent}, "job.17.1", "step.18.1", {64, 0, 0});
  EXPECT_TRUE(group.limits_memory());
  EXPECT_EQ(content(dir + "/memory.max"), "67108864");
  EXPECT_EQ(group.procs_files(), std::vector<std::string>{dir + "/step.18.1/cgroup.procs"});
  EXPECT_FALSE(group.killed_for_memory());
  std::ofstream(dir + "/memory.events") << "oom_kill 1\n";
  EXPECT_TRUE(group.killed_for_memory()) << "the kernel counts it where the limit is";
}

TEST(JobCgroup, WithoutALimitThereIsNoGroup) {
  const std::string parent = scratch();
  JobCgroup group({parent}, "job.17.1", "", {});
  EXPECT_TRUE(group.procs_files().empty());
  EXPECT_NE(access((parent + "/job.17.1").c_str(), F_OK), 0);
}

TEST(JobCgroup, AGroupThatCanLimitNothingIsLeftOut) {
  const std::string parent = scratch();
  JobCgroup group({parent}, "job.17.1", "", {64, 1, 10});
  EXPECT_FALSE(group.limits_memory());
  EXPECT_TRUE(group.procs_files().empty());
  EXPECT_NE(access((parent + "/job.17.1").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace xce::worker
