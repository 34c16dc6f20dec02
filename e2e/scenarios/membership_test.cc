// An operator changes the controllers while people submit and primaries die: no acknowledged job is
// lost or made twice, and what cannot be done is refused with words.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {
namespace {

constexpr milliseconds kLimit{20000};

class Membership : public ClusterTest {
 protected:
  Finished xce(std::vector<std::string> args) {
    return run("cli/xce", args, {"XCE_MASTERS=" + cluster_->masters(), "NO_COLOR=1"}, "",
               milliseconds(130000));
  }
  std::string with_address(int node) {
    return absl::StrCat(node + 1, "=", cluster_->address(node));
  }
  // The 0-based numbers of the members, by the primary's word; those that only join left out.
  std::set<int> voters() {
    Client client(cluster_->masters(), 10000);
    std::set<int> out;
    xce_cluster_status_t* status = nullptr;
    xcecli_hello(client.ctx(), nullptr);
    if (xcecli_clusterstatus(client.ctx(), &status) < 0) return out;
    for (size_t i = 0; i < status->nnodes; ++i)
      if (std::string(status->nodes[i].role) != "joining")
        out.insert(static_cast<int>(status->nodes[i].id) - 1);
    xce_free_cluster_status(status);
    return out;
  }
  bool wait_voters(const std::set<int>& expected) {
    return wait_until([&] { return voters() == expected; }, kLimit);
  }
  // Runs a command, and kills the primary `after` its beginning, which then starts again.
  Finished with_primary_killed(std::vector<std::string> args, milliseconds after) {
    Finished finished;
    std::thread command([&] { finished = xce(args); });
    std::this_thread::sleep_for(after);  // not to wait for a state: any moment will do
    const int dead = kill_primary();
    if (dead >= 0) {
      EXPECT_TRUE(cluster_->start_controller(dead).ok());
    }
    command.join();
    EXPECT_GE(cluster_->wait_primary(-1, kLimit), 0);
    return finished;
  }
};

// People who submit all the while.
class Load {
 public:
  explicit Load(Cluster* cluster) : cluster_(cluster) {
    for (int c = 0; c < 3; ++c)
      threads_.emplace_back([this, c] {
        Client client(cluster_->masters(), 60000);
        for (int i = 0; !stop_; ++i) {
          const int64_t id = client.submit("true", absl::StrCat("c", c, "-", i), cluster_->dir());
          const std::lock_guard<std::mutex> lock(mutex_);
          (id > 0 ? ids_ : errors_).push_back(id);
        }
      });
  }
  ~Load() { end(); }
  void end() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  // Everything acknowledged is there, once; nothing else is.
  void check(const std::string& masters) {
    end();
    EXPECT_TRUE(errors_.empty()) << errors_.size() << " errors, the first "
                                 << xce_errname(static_cast<int>(errors_.front()));
    Client client(masters);
    int status = -1;
    const auto jobs = client.jobs(&status);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(jobs.size(), ids_.size());
    const std::set<int64_t> unique(ids_.begin(), ids_.end());
    EXPECT_EQ(unique.size(), ids_.size());
    for (const int64_t id : unique) EXPECT_EQ(jobs.count(static_cast<uint64_t>(id)), 1u) << id;
    printf("%zu submissions were acknowledged\n", ids_.size());
  }

 private:
  Cluster* const cluster_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<int64_t> ids_, errors_;
  std::vector<std::thread> threads_;
};

TEST_F(Membership, GrowsToFiveAndShrinksToThreeWhilePrimariesDie) {
  start({});
  Load load(cluster_.get());
  for (const int after_ms : {15, 60}) {
    const int node = cluster_->add_controller();
    ASSERT_TRUE(cluster_->start_controller(node).ok());
    const Finished added =
        with_primary_killed({"cluster", "add", with_address(node)}, milliseconds(after_ms));
    // The primary may have died before it had begun, with the new one not heard of by the next.
    if (added.code != 0) {
      const Finished again = xce({"cluster", "add", with_address(node)});
      EXPECT_EQ(again.code, 0) << added.err << again.err;
    }
  }
  EXPECT_TRUE(wait_voters({0, 1, 2, 3, 4}));
  // Two go, the primary first.
  std::set<int> left = {0, 1, 2, 3, 4};
  for (const int after_ms : {0, 30}) {
    const int primary = cluster_->wait_primary(-1, kLimit);
    ASSERT_GE(primary, 0);
    const int gone = after_ms == 0 ? primary : *std::find_if(left.begin(), left.end(), [&](int n) {
      return n != primary && n < 3;
    });
    const std::vector<std::string> args = {"cluster", "remove", absl::StrCat(gone + 1)};
    const Finished removed =
        after_ms == 0 ? xce(args) : with_primary_killed(args, milliseconds(after_ms));
    EXPECT_EQ(removed.code, 0) << removed.err;
    left.erase(gone);
    EXPECT_TRUE(wait_voters(left));
    // It says that it was removed, and ends as asked.
    EXPECT_TRUE(wait_until(
        [&] {
          return absl::StrContains(
              read_file(absl::StrCat(cluster_->dir(), "/logs/controller", gone + 1, ".log")),
              "was removed from the cluster");
        },
        kLimit));
    EXPECT_EQ(cluster_->controller(gone).terminate(), 0);
    cluster_->use_masters({left.begin(), left.end()});
    if (left.size() > 4) cluster_->use_masters({*left.begin(), *left.rbegin()});
  }
  load.check(cluster_->masters());
  // All stop, and come back in another order than they came.
  for (const int node : left) cluster_->controller(node).kill9();
  for (auto node = left.rbegin(); node != left.rend(); ++node)
    ASSERT_TRUE(cluster_->start_controller(*node).ok());
  EXPECT_GE(cluster_->wait_primary(-1, kLimit), 0);
  EXPECT_TRUE(wait_voters(left));
}

TEST_F(Membership, ADiskDiesAndTheControllerIsReplacedUnderLoad) {
  start({});
  Load load(cluster_.get());
  const int primary = cluster_->wait_primary(-1, kLimit);
  ASSERT_GE(primary, 0);
  const int lost = (primary + 1) % 3;
  const std::string id = absl::StrCat(lost + 1);
  const Finished alive = xce({"cluster", "replace", id});
  EXPECT_EQ(alive.code, 1);
  EXPECT_TRUE(absl::StrContains(alive.err, "nothing to replace")) << alive.err;
  cluster_->controller(lost).kill9();
  cluster_->lose_disk(lost);
  const Finished early = xce({"cluster", "replace", id});
  EXPECT_EQ(early.code, 1);
  EXPECT_TRUE(absl::StrContains(early.err, "start it there first")) << early.err;
  ASSERT_TRUE(cluster_->start_controller(lost).ok());
  // Without being asked nobody takes it back.
  EXPECT_TRUE(wait_until(
      [&] {
        return absl::StrContains(
            read_file(absl::StrCat(cluster_->dir(), "/logs/controller", primary + 1, ".log")),
            "has come back with another data directory");
      },
      kLimit));
  const Finished replaced = with_primary_killed({"cluster", "replace", id}, milliseconds(25));
  if (replaced.code != 0) {
    const Finished again = xce({"cluster", "replace", id + "=" + cluster_->address(lost)});
    EXPECT_TRUE(again.code == 0 || absl::StrContains(again.err, "nothing to replace"))
        << replaced.err << again.err;
  }
  EXPECT_TRUE(wait_voters({0, 1, 2}));
  // It counts: the cluster lives on with it and one other.
  const int other = 3 - primary - lost;
  cluster_->controller(other).kill9();
  EXPECT_GE(cluster_->wait_primary(-1, kLimit), 0);
  load.check(cluster_->masters());
}

TEST_F(Membership, WhatCannotBeIsRefusedWithWords) {
  start({});
  const auto refused = [&](std::vector<std::string> args, int code, const std::string& words) {
    const Finished finished = xce(args);
    EXPECT_EQ(finished.code, code) << finished.err;
    EXPECT_TRUE(absl::StrContains(finished.err, words)) << finished.err;
  };
  const std::string other = absl::StrCat("127.0.0.1:", free_port());
  refused({"cluster", "add", "4"}, 2, "ID=HOST:PORT");
  refused({"cluster", "add", "x=" + other}, 2, "ID=HOST:PORT");
  refused({"cluster", "add", "2=" + other}, 1, "give the new one another id");
  refused({"cluster", "add", "4=" + cluster_->address(1)}, 1, "is the address of controller 2");
  refused({"cluster", "add", "4=" + other}, 1, "start it there first");
  refused({"cluster", "remove", "7"}, 3, "no controller 7");
  refused({"cluster", "replace", "7=" + other}, 3, "no controller 7");
  // One of another cluster. (It ends with the test: it would take ours with it.)
  auto foreign = Cluster::start([] {
    ClusterOptions options;
    options.controllers = 1;
    return options;
  }());
  ASSERT_TRUE(foreign.ok()) << foreign.status();
  // It is controller 1 there; asked for as such nothing fits.
  refused({"cluster", "add", "4=" + (*foreign)->address(0)}, 1, "node 1 answers");
  refused({"cluster", "remove", "1", "--masters", (*foreign)->masters()}, 1, "is the last one");
  // Two of three must stay within reach.
  const int primary = cluster_->wait_primary(-1, kLimit);
  ASSERT_GE(primary, 0);
  const int dead = (primary + 1) % 3;
  cluster_->controller(dead).kill9();
  refused({"cluster", "remove", absl::StrCat(3 - primary - dead + 1)}, 1, "majority");
  EXPECT_EQ(voters(), (std::set<int>{0, 1, 2}));
  const Finished gone = xce({"cluster", "remove", absl::StrCat(dead + 1)});
  EXPECT_EQ(gone.code, 0) << gone.err;
}

// The new one is frozen on the way: the cluster does not care, and it becomes a voter when it
// wakes.
TEST_F(Membership, ANewControllerThatFreezesJoinsWhenItWakes) {
  start({});
  Load load(cluster_.get());
  const int node = cluster_->add_controller();
  ASSERT_TRUE(cluster_->start_controller(node).ok());
  Finished added;
  std::thread command([&] {
    added = xce({"cluster", "add", with_address(node), "--deadline", "3"});
  });
  std::this_thread::sleep_for(milliseconds(40));  // any moment will do
  cluster_->controller(node).signal(SIGSTOP);
  command.join();
  EXPECT_EQ(cluster_->wait_primary(-1, kLimit) >= 0, true);
  cluster_->controller(node).signal(SIGCONT);
  if (added.code != 0) {
    const Finished again = xce({"cluster", "add", with_address(node)});
    EXPECT_EQ(again.code, 0) << added.err << again.err;
  }
  EXPECT_TRUE(wait_voters({0, 1, 2, 3}));
  load.check(cluster_->masters());
}

// The primary of a cluster that somebody founded alone moves to three machines, and then leaves.
TEST_F(Membership, TheFirstOneLeavesAndTheOthersGoOn) {
  start({});
  for (int i = 0; i < 3; ++i) {
    const int node = cluster_->add_controller();
    ASSERT_TRUE(cluster_->start_controller(node).ok());
    const Finished added = xce({"cluster", "add", with_address(node)});
    ASSERT_EQ(added.code, 0) << added.err;
    cluster_->use_masters({i, i + 1, i + 2, node});
    const Finished removed = xce({"cluster", "remove", absl::StrCat(i + 1)});
    ASSERT_EQ(removed.code, 0) << removed.err;
    cluster_->controller(i).kill9();
    cluster_->use_masters({i + 1, i + 2, node});
  }
  EXPECT_TRUE(wait_voters({3, 4, 5}));
  // Restarted with the old --peers, none of whom is there any more.
  for (int node = 3; node < 6; ++node) cluster_->controller(node).kill9();
  for (int node = 5; node >= 3; --node) ASSERT_TRUE(cluster_->start_controller(node).ok());
  EXPECT_GE(cluster_->wait_primary(-1, kLimit), 3);
  Client client(cluster_->masters());
  EXPECT_GT(client.submit("true", "on", cluster_->dir()), 0);
}

}  // namespace
}  // namespace xce::e2e
