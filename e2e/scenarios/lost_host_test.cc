// A host that is lost: jobs that ask for it are started elsewhere, never while they may still run;
// the others wait for their host or for an operator.

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {
namespace {

constexpr int kLeaseMs = 3000;
constexpr int kGraceMs = 1000;
// Until a silent host's jobs are surely requeued: lease and margins
// (controller/service/liveness.h).
constexpr milliseconds kRequeueLimit{40000};
constexpr milliseconds kLimit{20000};

class LostHost : public ClusterTest {
 protected:
  void start_lost(int controllers) {
    ClusterOptions options;
    options.controllers = controllers;
    options.workers = 2;
    options.schedulers = 1;
    options.worker_links = controllers == 1;
    options.controller_args = {"--lease-ms", absl::StrCat(kLeaseMs), "--host-grace-ms",
                               absl::StrCat(kGraceMs)};
    options.worker_args = {"--hello-interval-ms", "200"};
    ASSERT_NO_FATAL_FAILURE(start(options));
  }
  Finished xce(std::vector<std::string> args) {
    return run("cli/xce", args, {"XCE_MASTERS=" + cluster_->masters(), "NO_COLOR=1"});
  }
  std::string work() const { return cluster_->dir() + "/work"; }
  JobRow job(uint64_t id) {
    if (client_ == nullptr) client_ = std::make_unique<Client>(cluster_->masters());
    return client_->jobs()[id];
  }
  bool reaches(uint64_t id, xce_job_state_t state, milliseconds limit = kLimit) {
    return wait_until([&] { return job(id).state == state; }, limit);
  }
  bool runs_attempt(uint64_t id, uint32_t attempt, milliseconds limit) {
    return wait_until(
        [&] {
          const JobRow now = job(id);
          return now.state == XCE_JOB_RUNNING && now.attempt == attempt;
        },
        limit);
  }
  bool host_is(const std::string& host, const std::string& state, milliseconds limit = kLimit) {
    return wait_until(
        [&] {
          std::istringstream rows(xce({"hosts"}).out);
          for (std::string row; std::getline(rows, row);)
            if (absl::StartsWith(row, host + " ") && absl::StrContains(row, " " + state + " "))
              return true;
          return false;
        },
        limit);
  }
  // Submits a job that runs on host1, the first worker, and writes its attempt's number every now
  // and then.
  void submit_beating_job(bool requeue) {
    const std::string script = work() + "/job.sh";
    std::ofstream(script) << "#!/bin/sh\nwhile true; do echo $XCE_ATTEMPT >> " << work()
                          << "/beats; sleep 0.02; done\n";
    ASSERT_EQ(xce({"drain", "host2"}).code, 0);
    std::vector<std::string> args = {"submit", "--workdir", work(), script};
    if (requeue) args.insert(args.begin() + 1, "--requeue");
    const Finished submitted = xce(args);
    ASSERT_EQ(submitted.code, 0) << submitted.err;
    ASSERT_TRUE(reaches(1, XCE_JOB_RUNNING)) << xce({"job", "1"}).out;
    ASSERT_EQ(job(1).host, "host1");
    ASSERT_EQ(xce({"undrain", "host2"}).code, 0);
  }
  // Which attempts wrote, in order, runs of the same as one: "1 2" is one after the other; two at
  // once would alternate.
  std::string beats() const {
    std::string order, last;
    std::ifstream in(work() + "/beats");
    for (std::string line; std::getline(in, line);) {
      if (line != last) absl::StrAppend(&order, order.empty() ? "" : " ", line);
      last = line;
    }
    return order;
  }
  bool beats_are(const std::string& order) {
    return wait_until([&] { return beats() == order; }, milliseconds(10000));
  }
  void link_of_first_worker(LinkMode mode) {
    cluster_->links().set_node(Cluster::worker_node(0), mode);
  }

  std::unique_ptr<Client> client_;
};

TEST_F(LostHost, APartitionedHostsJobIsFencedThereAndStartedElsewhereOnce) {
  ASSERT_NO_FATAL_FAILURE(start_lost(1));
  ASSERT_NO_FATAL_FAILURE(submit_beating_job(true));
  link_of_first_worker(LinkMode::kFrozen);
  EXPECT_TRUE(host_is("host1", "UNREACHABLE"));
  EXPECT_EQ(job(1).attempt, 1u) << "not before its lease has run out";
  EXPECT_TRUE(runs_attempt(1, 2, kRequeueLimit)) << xce({"job", "1"}).out;
  EXPECT_EQ(job(1).host, "host2");
  EXPECT_TRUE(host_is("host1", "GONE"));
  EXPECT_TRUE(beats_are("1 2")) << beats();
  link_of_first_worker(LinkMode::kOpen);  // it tells of an attempt that nobody waits for any more
  EXPECT_TRUE(host_is("host1", "UP"));
  EXPECT_EQ(job(1).attempt, 2u);
  EXPECT_EQ(job(1).state, XCE_JOB_RUNNING);
  EXPECT_EQ(beats(), "1 2") << "one after the other, never both";
  EXPECT_EQ(xce({"kill", "1"}).code, 0);
  EXPECT_TRUE(reaches(1, XCE_JOB_KILLED));
}

TEST_F(LostHost, AShortPartitionChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(start_lost(1));
  ASSERT_NO_FATAL_FAILURE(submit_beating_job(true));
  link_of_first_worker(LinkMode::kCut);
  EXPECT_TRUE(host_is("host1", "UNREACHABLE"));  // after kGraceMs, well before kLeaseMs
  link_of_first_worker(LinkMode::kOpen);
  EXPECT_TRUE(host_is("host1", "UP"));
  const std::string before = read_file(work() + "/beats");
  EXPECT_TRUE(wait_until([&] { return read_file(work() + "/beats").size() > before.size() + 20; },
                         milliseconds(kLeaseMs + 2000)));
  EXPECT_EQ(job(1).state, XCE_JOB_RUNNING);
  EXPECT_EQ(job(1).attempt, 1u);
  EXPECT_EQ(beats(), "1");
  EXPECT_EQ(xce({"kill", "1"}).code, 0);
  EXPECT_TRUE(reaches(1, XCE_JOB_KILLED));
}

TEST_F(LostHost, ADeadWorkersJobIsFencedByItsShepherdAndANewPrimaryCountsAnew) {
  ASSERT_NO_FATAL_FAILURE(start_lost(3));
  ASSERT_NO_FATAL_FAILURE(submit_beating_job(true));
  cluster_->worker(0).kill9();
  EXPECT_TRUE(host_is("host1", "UNREACHABLE"));
  ASSERT_GE(kill_primary(), 0);
  EXPECT_TRUE(runs_attempt(1, 2, kRequeueLimit)) << xce({"job", "1"}).out;
  EXPECT_TRUE(beats_are("1 2")) << beats();
  ASSERT_TRUE(cluster_->start_worker(0).ok());
  EXPECT_TRUE(host_is("host1", "UP"));
  EXPECT_EQ(job(1).attempt, 2u);
  EXPECT_EQ(beats(), "1 2");
  EXPECT_EQ(xce({"kill", "1"}).code, 0);
  EXPECT_TRUE(reaches(1, XCE_JOB_KILLED));
}

TEST_F(LostHost, AStoppedWorkerThatWakesLateDisturbsNothing) {
  ASSERT_NO_FATAL_FAILURE(start_lost(1));
  ASSERT_NO_FATAL_FAILURE(submit_beating_job(true));
  cluster_->worker(0).signal(SIGSTOP);  // the daemon only: its shepherd must fence by itself
  EXPECT_TRUE(runs_attempt(1, 2, kRequeueLimit)) << xce({"job", "1"}).out;
  cluster_->worker(0).signal(SIGCONT);
  EXPECT_TRUE(host_is("host1", "UP"));
  EXPECT_TRUE(beats_are("1 2")) << beats();
  EXPECT_EQ(job(1).attempt, 2u);
  EXPECT_EQ(xce({"kill", "1"}).code, 0);
  EXPECT_TRUE(reaches(1, XCE_JOB_KILLED));
}

// With no controller at all: jobs with a lease stop by their own choice, the others go on, limits
// are kept, results are told later.
TEST_F(LostHost, AnOutageOfTheWholeClusterLongerThanTheLease) {
  ASSERT_NO_FATAL_FAILURE(start_lost(1));
  ASSERT_NO_FATAL_FAILURE(submit_beating_job(true));
  const std::string gate = work() + "/gate";
  const Finished plain =
      xce({"submit", "--workdir", work(), "--", "/bin/sh", "-c",
           "echo ran >> plain; while [ ! -e gate ]; do sleep 0.05; done; exit 7"});
  const Finished limited =
      xce({"submit", "--workdir", work(), "--time", "4", "--", "/bin/sleep", "600"});
  ASSERT_EQ(plain.code, 0) << plain.err;
  ASSERT_EQ(limited.code, 0) << limited.err;
  ASSERT_TRUE(reaches(2, XCE_JOB_RUNNING));
  ASSERT_TRUE(reaches(3, XCE_JOB_RUNNING));
  cluster_->controller(0).kill9();
  const auto alive = [](const std::string& command) {
    for (const std::string& line : living_descendants())
      if (absl::StrContains(line, command)) return true;
    return false;
  };
  EXPECT_TRUE(
      wait_until([&] { return !alive("/jobs/1.1/script") && !alive("/bin/sleep 600"); }, kLimit))
      << "the lease, and the time limit, hold without a controller";
  std::ofstream(gate).put('x');
  EXPECT_TRUE(wait_until([&] { return !alive("plain;"); }, kLimit));
  ASSERT_TRUE(cluster_->start_controller(0).ok());
  EXPECT_TRUE(reaches(2, XCE_JOB_FAILED));
  EXPECT_EQ(job(2).exit_code, 7);
  EXPECT_EQ(read_file(work() + "/plain"), "ran\n");
  EXPECT_TRUE(reaches(3, XCE_JOB_TIMEOUT));
  EXPECT_TRUE(runs_attempt(1, 2, kLimit)) << xce({"job", "1"}).out;
  EXPECT_TRUE(beats_are("1 2")) << beats();
  EXPECT_EQ(xce({"kill", "1"}).code, 0);
  EXPECT_TRUE(reaches(1, XCE_JOB_KILLED));
}

TEST_F(LostHost, OtherJobsWaitUntilAnOperatorRemovesTheHost) {
  ASSERT_NO_FATAL_FAILURE(start_lost(1));
  ASSERT_NO_FATAL_FAILURE(submit_beating_job(false));
  EXPECT_EQ(xce({"host", "remove", "host1"}).code, 1) << "it runs a job";
  EXPECT_EQ(xce({"host", "remove", "host1", "--lost"}).code, 1) << "it is up";
  cluster_->worker(0).kill9();
  EXPECT_TRUE(host_is("host1", "GONE", kRequeueLimit));
  EXPECT_EQ(job(1).state, XCE_JOB_RUNNING);
  EXPECT_EQ(job(1).attempt, 1u);
  const Finished removed = xce({"host", "remove", "host1", "--lost"});
  EXPECT_EQ(removed.code, 0) << removed.err;
  EXPECT_EQ(job(1).state, XCE_JOB_LOST);
  EXPECT_FALSE(absl::StrContains(xce({"job", "1"}).out, "Exit code")) << "nobody knows it";
  EXPECT_FALSE(absl::StrContains(xce({"hosts"}).out, "host1"));
  // It comes back with the job, which is told to end.
  ASSERT_TRUE(cluster_->start_worker(0).ok());
  EXPECT_TRUE(host_is("host1", "UP"));
  EXPECT_TRUE(wait_until(
      [] {
        for (const std::string& line : living_descendants())
          if (absl::StrContains(line, "/jobs/1.1/script")) return false;
        return true;
      },
      kLimit));
  EXPECT_EQ(beats(), "1");
}

}  // namespace
}  // namespace xce::e2e
