// The worker daemon among the others: how it joins, whose name it has, what it does with a host
// that can start nothing, and as whom jobs run.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {
namespace {

constexpr milliseconds kLimit{20000};

class Worker : public ClusterTest {
 protected:
  void start_workers(int controllers, int workers, std::vector<std::string> args = {}) {
    ClusterOptions options;
    options.controllers = controllers;
    options.workers = workers;
    options.schedulers = 1;
    options.controller_args = {"--host-grace-ms", "1000"};
    options.worker_args = std::move(args);
    ASSERT_NO_FATAL_FAILURE(start(options));
  }
  Finished xce(std::vector<std::string> args) {
    return run("cli/xce", args, {"XCE_MASTERS=" + cluster_->masters(), "NO_COLOR=1"});
  }
  std::string work() const { return cluster_->dir() + "/work"; }
  std::string log_of_worker(int i) const { return cluster_->log(absl::StrCat("worker", i + 1)); }
  bool logs(int i, const std::string& words) {
    return wait_until([&] { return absl::StrContains(log_of_worker(i), words); }, kLimit);
  }
  bool shows(std::vector<std::string> command, const std::string& words) {
    return wait_until([&] { return absl::StrContains(xce(command).out, words); }, kLimit);
  }
};

TEST_F(Worker, JoinsWithAStandbyFirstInItsListAndTellsEachCandidate) {
  ASSERT_NO_FATAL_FAILURE(start_workers(3, 1));
  cluster_->worker(0).terminate();
  const int primary = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(primary, 0);
  const std::vector<std::string> all = absl::StrSplit(cluster_->masters(), ',');
  const std::string standby = all[(primary + 1) % 3];
  cluster_->set_candidates(Cluster::worker_node(0), absl::StrCat(standby, ",", all[primary]));
  const size_t before = log_of_worker(0).size();
  ASSERT_TRUE(cluster_->start_worker(0).ok());
  EXPECT_TRUE(wait_until(
      [&] { return absl::StrContains(log_of_worker(0).substr(before), "xcecd ready on host1"); },
      kLimit));
  const std::string said = log_of_worker(0).substr(before);
  EXPECT_TRUE(absl::StrContains(said, "candidate 1 of 2: " + standby)) << said;
  EXPECT_TRUE(absl::StrContains(said, "joined controller " + all[primary])) << said;
  // And after the primary's death, which it tells of.
  ASSERT_GE(kill_primary(), 0);
  Client client(cluster_->masters());
  const int64_t id = client.submit("true", "after", work());
  ASSERT_GT(id, 0);
  EXPECT_TRUE(wait_until([&] { return client.jobs()[id].state == XCE_JOB_COMPLETED; }, kLimit));
}

TEST_F(Worker, ANameBelongsToOneWorkerUntilItsHostIsRemoved) {
  ASSERT_NO_FATAL_FAILURE(start_workers(1, 1));
  Client client(cluster_->masters());
  const std::string command = "echo $$ > pid; sleep 600";
  const int64_t id = client.submit(command, "long", work());
  ASSERT_GT(id, 0);
  ASSERT_TRUE(wait_until([&] { return client.jobs()[id].state == XCE_JOB_RUNNING; }, kLimit));
  ASSERT_TRUE(
      wait_until([&] { return std::atoi(read_file(work() + "/pid").c_str()) > 0; }, kLimit));
  const std::string process = "/proc/" + read_file(work() + "/pid").substr(0, 20);
  const std::string proc = process.substr(0, process.find('\n'));
  // The worker dies, its data directory is removed, and a worker of that name starts anew.
  cluster_->worker(0).kill9();
  std::filesystem::remove_all(cluster_->dir() + "/w1");
  EXPECT_TRUE(std::filesystem::exists(proc)) << "its job runs on";
  ASSERT_TRUE(cluster_->start_worker(0).ok());
  EXPECT_TRUE(logs(0, "orphan: job")) << "what it finds running it ends";
  EXPECT_TRUE(wait_until([&] { return !std::filesystem::exists(proc); }, kLimit));
  EXPECT_TRUE(logs(0, "belongs to another worker")) << log_of_worker(0);
  EXPECT_TRUE(logs(0, "xce host remove host1"));
  EXPECT_TRUE(shows({"hosts"}, "UNREACHABLE")) << "its hellos do not keep up the host";
  EXPECT_EQ(client.jobs()[id].state, XCE_JOB_RUNNING);
  const Finished removed = xce({"host", "remove", "host1", "--lost"});
  EXPECT_EQ(removed.code, 0) << removed.err;
  EXPECT_EQ(client.jobs()[id].state, XCE_JOB_LOST);
  EXPECT_TRUE(cluster_->wait_hosts(1, kLimit)) << "the name is free: it joins by itself";
  const int64_t next = client.submit("true", "next", work());
  EXPECT_TRUE(wait_until([&] { return client.jobs()[next].state == XCE_JOB_COMPLETED; }, kLimit));
}

TEST_F(Worker, AHostWithoutRoomForJobsDrainsItself) {
  ASSERT_NO_FATAL_FAILURE(start_workers(1, 1));
  cluster_->worker(0).terminate();
  ASSERT_EQ(xce({"hosts"}).code, 0);
  // The machine has not so much; nothing else is wrong with it.
  Process poor;
  ASSERT_TRUE(poor.start({find_program("worker/xcecd"), "--peers", cluster_->masters(), "--name",
                          "poor", "--data-dir", cluster_->dir() + "/poor", "--min-free-mb",
                          "1000000000", "--log-format", "text"},
                         cluster_->dir() + "/logs/poor.log")
                  .ok());
  EXPECT_TRUE(shows({"hosts"}, "DRAINED"));
  EXPECT_TRUE(shows({"hosts"}, "MiB free")) << xce({"hosts"}).out;
  Client client(cluster_->masters());
  const int64_t id = client.submit("true", "waits", work());
  ASSERT_TRUE(cluster_->start_worker(0).ok());
  EXPECT_TRUE(wait_until([&] { return client.jobs()[id].state == XCE_JOB_COMPLETED; }, kLimit));
  EXPECT_EQ(client.jobs()[id].host, "host1");
}

}  // namespace
}  // namespace xce::e2e
