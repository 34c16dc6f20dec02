// A backup is taken while people submit; the cluster is lost; a new one begins from the file, has
// every job that had been acknowledged before, and runs nothing twice.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {
namespace {

constexpr milliseconds kLimit{20000};

class Backup : public ClusterTest {
 protected:
  Finished xce(std::vector<std::string> args) {
    return run("cli/xce", args, {"XCE_MASTERS=" + cluster_->masters(), "NO_COLOR=1"});
  }
  std::string file() const { return cluster_->dir() + "/backup"; }
  Finished restore(int node) {
    return run("controller/xce_controller",
               {"--restore", file(), "--id", absl::StrCat(node + 1), "--peers",
                absl::StrCat(node + 1, "=", cluster_->address(node)), "--data-dir",
                cluster_->data_dir(node)});
  }
};

TEST_F(Backup, UnderLoadAndRestored) {
  ClusterOptions options;
  options.workers = 1;
  options.schedulers = 1;
  start(options);
  Client client(cluster_->masters());
  // One that runs on through all of it, and one that never started.
  const std::string done = cluster_->dir() + "/done";
  const int64_t running =
      client.submit(absl::StrCat("echo begun >> ", done, "; while [ ! -e ", cluster_->dir(),
                                 "/go ]; do sleep 0.05; done; echo ended >> ", done),
                    "running", cluster_->dir());
  ASSERT_GT(running, 0);
  ASSERT_TRUE(wait_until([&] { return absl::StrContains(read_file(done), "begun"); }, kLimit));
  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  const char* const args[] = {"true"};
  spec.name = "waiting";
  spec.args = args;
  spec.nargs = 1;
  spec.work_dir = cluster_->dir().c_str();
  spec.cpus = 1000;
  spec.submit_key = "waiting-1";
  const int64_t waiting = client.submit(spec);
  ASSERT_GT(waiting, 0);

  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::vector<uint64_t> ids;
  std::thread load([&] {
    Client mine(cluster_->masters());
    for (int i = 0; !stop; ++i) {
      const int64_t id = mine.submit("true", absl::StrCat("j", i), cluster_->dir());
      const std::lock_guard<std::mutex> lock(mutex);
      if (id > 0) ids.push_back(static_cast<uint64_t>(id));
    }
  });
  ASSERT_TRUE(wait_until(
      [&] {
        const std::lock_guard<std::mutex> lock(mutex);
        return ids.size() > 50;
      },
      kLimit));
  std::vector<uint64_t> before;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    before = ids;
  }
  const Finished taken = xce({"cluster", "backup", file()});
  ASSERT_EQ(taken.code, 0) << taken.err;
  EXPECT_EQ(xce({"cluster", "backup", file()}).code, 1) << "it is there already";
  stop = true;
  load.join();

  // Everything is lost but the file and the worker.
  for (int node = 0; node < 3; ++node) {
    cluster_->controller(node).kill9();
    cluster_->lose_disk(node);
  }
  const Finished restored = restore(0);
  ASSERT_EQ(restored.code, 0) << restored.err;
  EXPECT_TRUE(absl::StrContains(restored.out, "Restored the backup")) << restored.out;
  EXPECT_EQ(restore(0).code, 1) << "not twice";
  cluster_->use_masters({0});
  ASSERT_TRUE(cluster_->start_controller(0).ok());
  ASSERT_EQ(cluster_->wait_primary(-1, kLimit), 0);

  // The ledger: what was acknowledged before the backup is there.
  int status = -1;
  Client again(cluster_->masters());
  auto jobs = again.jobs(&status);
  ASSERT_EQ(status, 0);
  for (const uint64_t id : before) EXPECT_EQ(jobs.count(id), 1u) << id;
  EXPECT_EQ(jobs[static_cast<uint64_t>(waiting)].state, XCE_JOB_HELD);
  EXPECT_TRUE(absl::StrContains(jobs[static_cast<uint64_t>(waiting)].reason, "restored"))
      << jobs[static_cast<uint64_t>(waiting)].reason;
  // The same key is the same job, and a new one gets an id that nobody has had.
  EXPECT_EQ(again.submit(spec), -E_XCE_DUP_JOB);
  EXPECT_GT(again.submit("true", "new", cluster_->dir()), 10000000);

  // The worker comes back with the job that ran on.
  ASSERT_TRUE(cluster_->wait_hosts(1, kLimit));
  std::ofstream(cluster_->dir() + "/go") << "go";
  EXPECT_TRUE(wait_until(
      [&] {
        jobs = again.jobs(&status);
        return status == 0 && jobs[static_cast<uint64_t>(running)].state == XCE_JOB_COMPLETED;
      },
      kLimit))
      << jobs[static_cast<uint64_t>(running)].reason;
  const std::vector<std::string> lines = absl::StrSplit(read_file(done), '\n', absl::SkipEmpty());
  EXPECT_EQ(lines, (std::vector<std::string>{"begun", "ended"}));

  // And it is a whole cluster again.
  for (int i = 0; i < 2; ++i) {
    const int node = cluster_->add_controller();
    ASSERT_TRUE(cluster_->start_controller(node).ok());
    const Finished added =
        xce({"cluster", "add", absl::StrCat(node + 1, "=", cluster_->address(node))});
    EXPECT_EQ(added.code, 0) << added.err;
  }
}

TEST_F(Backup, ADamagedOneIsRefused) {
  ClusterOptions options;
  options.controllers = 1;
  start(options);
  ASSERT_GT(Client(cluster_->masters()).submit("true", "one", cluster_->dir()), 0);
  ASSERT_EQ(xce({"cluster", "backup", file()}).code, 0);
  const std::string good = read_file(file());
  cluster_->lose_disk(0);
  const auto refused = [&](const std::string& bytes, const std::string& words) {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes;
    const Finished finished = restore(0);
    EXPECT_EQ(finished.code, 1);
    EXPECT_TRUE(absl::StrContains(finished.err, words)) << finished.err;
  };
  refused(good.substr(0, good.size() / 2), "cut short");
  std::string bad = good;
  bad[good.size() / 2] = static_cast<char>(bad[good.size() / 2] ^ 4);
  refused(bad, "damaged");
  refused("hello", "no backup");
}

}  // namespace
}  // namespace xce::e2e
