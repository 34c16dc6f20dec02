// Commands inside a running job (xce run --job): on each of its hosts, once, through the deaths of
// daemons, and no longer than the job.

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {
namespace {

constexpr milliseconds kLimit{20000};

class Step : public ClusterTest {
 protected:
  // A cluster of two hosts on which job 1 runs until `stop` is there.
  void start_with_job(int controllers, std::vector<std::string> options = {}) {
    ClusterOptions cluster;
    cluster.controllers = controllers;
    cluster.workers = 2;
    cluster.schedulers = 1;
    ASSERT_NO_FATAL_FAILURE(start(cluster));
    ASSERT_TRUE(cluster_->wait_hosts(2, kLimit));
    options.insert(options.begin(), {"submit", "-N", "2", "--workdir", work(), "--env", "OWN=1"});
    options.insert(options.end(), {"--", "sh", "-c", "while [ ! -e stop ]; do sleep 0.02; done"});
    const Finished submitted = xce(options);
    ASSERT_EQ(submitted.code, 0) << submitted.err;
    ASSERT_TRUE(reaches(1, XCE_JOB_RUNNING)) << xce({"job", "1"}).out;
  }
  std::vector<std::string> environment() const {
    return {"XCE_MASTERS=" + cluster_->masters(), "NO_COLOR=1"};
  }
  Finished xce(std::vector<std::string> args) { return run("cli/xce", args, environment()); }
  // `xce run --job 1 ...` in the background; what it says is in said().
  void start_run(std::vector<std::string> args) {
    args.insert(args.begin(), {find_program("cli/xce"), "run", "--job", "1"});
    ASSERT_TRUE(run_.start(args, said_file(), environment()).ok());
  }
  std::string said_file() const { return cluster_->dir() + "/logs/run.log"; }
  std::string said() const { return read_file(said_file()); }
  std::string work() const { return cluster_->dir() + "/work"; }
  std::string content(const std::string& name) const { return read_file(work() + "/" + name); }
  void touch(const std::string& name) const { std::ofstream(work() + "/" + name) << "x"; }
  bool says_in(const std::string& name, const std::string& text) {
    return wait_until([&] { return content(name) == text; }, kLimit);
  }
  bool reaches(uint64_t id, xce_job_state_t state) {
    if (client_ == nullptr) client_ = std::make_unique<Client>(cluster_->masters());
    return wait_until([&] { return client_->jobs()[id].state == state; }, kLimit);
  }
  // The process whose number lies in that file.
  std::string process(const std::string& name) {
    wait_until([&] { return absl::EndsWith(content(name), "\n"); }, kLimit);
    return absl::StrCat("/proc/", std::atoi(content(name).c_str()));
  }
  static bool gone(const std::string& process) {
    return wait_until([&] { return !std::filesystem::exists(process); }, kLimit);
  }

  std::unique_ptr<Client> client_;
  Process run_;
};

// Leaves its session and its parent, and writes its number.
constexpr char kDaemon[] =
    "setsid sh -c 'sh -c \"echo \\$\\$ > daemon; exec sleep 600\" &' & echo up > up; sleep 600";

TEST_F(Step, RunsOnEachHostOfItsJob) {
  ASSERT_NO_FATAL_FAILURE(start_with_job(1));
  const Finished all = xce({"run", "--quiet", "--job", "1", "--all-hosts", "--", "sh", "-c",
                            "echo $XCE_JOB_ID $XCE_HOST $XCE_HOST_INDEX $XCE_NODELIST $OWN $PWD; "
                            "exit $((XCE_HOST_INDEX + 3))"});
  EXPECT_EQ(all.code, 4) << all.err;
  for (const char* line : {"1 host1 0 host1,host2 1 ", "1 host2 1 host1,host2 1 "})
    EXPECT_TRUE(absl::StrContains(all.out, line + work() + "\n")) << all.out;
  const Finished one = xce({"run", "--quiet", "-J", "1", "--env", "OWN=2", "--host", "host2", "--",
                            "sh", "-c", "echo $XCE_HOST $XCE_STEP_ID $OWN"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, "host2 4 2\n");
  EXPECT_TRUE(absl::StrContains(xce({"job", "4"}).out, "job 1, with which it ends"));
  EXPECT_TRUE(absl::StrContains(xce({"jobs", "4"}).out, "host2 in job 1"));
  const Finished elsewhere = xce({"run", "--job", "1", "--host", "host3", "--", "true"});
  EXPECT_TRUE(absl::StrContains(elsewhere.err, "job 1 does not run on host 'host3'"))
      << elsewhere.err;
  EXPECT_TRUE(
      absl::StrContains(xce({"run", "--job", "1", "-c", "2", "--", "true"}).err, "--cpus is for"));
  touch("stop");
  ASSERT_TRUE(reaches(1, XCE_JOB_COMPLETED));
  const Finished late = xce({"run", "--job", "1", "--", "true"});
  EXPECT_EQ(late.code, 121) << late.err;
  EXPECT_TRUE(absl::StrContains(late.err, "job 1 is COMPLETED")) << late.err;
}

TEST_F(Step, IsDoneOnceThroughTheDeathsOfPrimaryAndWorker) {
  ASSERT_NO_FATAL_FAILURE(start_with_job(3));
  ASSERT_NO_FATAL_FAILURE(
      start_run({"--host", "host2", "--", "sh", "-c",
                 "echo x >> runs; while [ ! -e go ]; do sleep 0.02; done; echo bye; exit 5"}));
  ASSERT_TRUE(says_in("runs", "x\n")) << said();
  ASSERT_GE(kill_primary(), 0);
  cluster_->worker(1).kill9();
  touch("go");
  ASSERT_TRUE(cluster_->start_worker(1).ok());
  EXPECT_EQ(run_.wait(kLimit), 5) << said();
  EXPECT_TRUE(absl::StrContains(said(), "bye\n")) << said();
  EXPECT_EQ(content("runs"), "x\n");
  EXPECT_TRUE(reaches(1, XCE_JOB_RUNNING));
}

TEST_F(Step, EndsWithItsJobOnTheOtherHostToo) {
  ASSERT_NO_FATAL_FAILURE(start_with_job(1));
  ASSERT_NO_FATAL_FAILURE(start_run({"--host", "host2", "--", "sh", "-c", kDaemon}));
  const std::string daemon = process("daemon");
  ASSERT_TRUE(std::filesystem::exists(daemon)) << said();
  touch("stop");
  EXPECT_EQ(run_.wait(kLimit), 137) << said();
  EXPECT_TRUE(gone(daemon));
  EXPECT_TRUE(reaches(2, XCE_JOB_KILLED));
}

TEST_F(Step, CtrlCEndsTheStepAndNotTheJob) {
  ASSERT_NO_FATAL_FAILURE(start_with_job(1));
  ASSERT_NO_FATAL_FAILURE(start_run({"--all-hosts", "--", "sh", "-c",
                                     "echo $$ > $XCE_HOST; "
                                     "exec sleep 600"}));
  const std::string first = process("host1"), second = process("host2");
  run_.signal(SIGINT);
  EXPECT_EQ(run_.wait(kLimit), 130) << said();
  EXPECT_TRUE(gone(first));
  EXPECT_TRUE(gone(second));
  EXPECT_TRUE(reaches(3, XCE_JOB_KILLED));
  EXPECT_TRUE(reaches(1, XCE_JOB_RUNNING));
}

// Nobody is there to say that the job has ended.
TEST_F(Step, EndsAtItsJobsTimeLimitWithoutControllers) {
  ASSERT_NO_FATAL_FAILURE(start_with_job(1, {"-t", "6"}));
  ASSERT_NO_FATAL_FAILURE(
      start_run({"--all-hosts", "--", "sh", "-c", "echo $$ > $XCE_HOST; exec sleep 600"}));
  const std::string first = process("host1"), second = process("host2");
  cluster_->controller(0).kill9();
  EXPECT_TRUE(gone(first));
  EXPECT_TRUE(gone(second));
  ASSERT_TRUE(cluster_->start_controller(0).ok());
  EXPECT_TRUE(reaches(1, XCE_JOB_TIMEOUT));
  EXPECT_NE(run_.wait(kLimit), 0) << said();
}

TEST_F(Step, IsSuspendedWithItsJob) {
  ASSERT_NO_FATAL_FAILURE(start_with_job(1));
  ASSERT_NO_FATAL_FAILURE(start_run({"--host", "host2", "--", "sleep", "600"}));
  ASSERT_TRUE(reaches(2, XCE_JOB_RUNNING)) << said();
  EXPECT_EQ(xce({"suspend", "1"}).code, 0);
  EXPECT_TRUE(reaches(2, XCE_JOB_SUSPENDED));
  EXPECT_EQ(xce({"resume", "1"}).code, 0);
  EXPECT_TRUE(reaches(2, XCE_JOB_RUNNING));
  EXPECT_EQ(xce({"kill", "1"}).code, 0);
  EXPECT_TRUE(reaches(2, XCE_JOB_KILLED));
  EXPECT_TRUE(reaches(1, XCE_JOB_KILLED));
}

}  // namespace
}  // namespace xce::e2e
