// An operator hands the primary role over while people submit: no caller sees an error, nothing is
// lost or done twice, and the pause is short.

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

class Transfer : public ClusterTest {
 protected:
  Finished xce(std::vector<std::string> args) {
    return run("cli/xce", args, {"XCE_MASTERS=" + cluster_->masters(), "NO_COLOR=1"});
  }
};

struct Call {
  Clock::time_point begin, end;
};

double ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

// The longest call that was under way at some time of `window`.
double longest_ms(const std::vector<Call>& calls, const Call& window) {
  double longest = 0;
  for (const Call& call : calls)
    if (call.begin <= window.end && call.end >= window.begin)
      longest = std::max(longest, ms(call.end - call.begin));
  return longest;
}

TEST_F(Transfer, TwentyUnderLoadWithoutAnError) {
  constexpr int kTransfers = 20;
  constexpr int kClients = 3;
  start({});
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::vector<Call> calls;
  std::vector<int64_t> ids, errors;
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([&, c] {
      Client client(cluster_->masters());
      for (int i = 0; !stop; ++i) {
        Call call;
        call.begin = Clock::now();
        const int64_t id = client.submit("true", absl::StrCat("c", c, "-", i), cluster_->dir());
        call.end = Clock::now();
        const std::lock_guard<std::mutex> lock(mutex);
        calls.push_back(call);
        (id > 0 ? ids : errors).push_back(id);
      }
    });
  }
  Client admin(cluster_->masters());
  std::vector<Call> windows;
  int refused = 0;
  for (int i = 0; i < kTransfers; ++i) {
    const int before = cluster_->wait_primary(-1, milliseconds(10000));
    size_t acknowledged = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      acknowledged = ids.size();
    }
    Call window;
    window.begin = Clock::now();
    // BUSY: the standby did not take over within the election timeout, and the primary serves on;
    // an operator asks again. (Under load a standby may be writing just when it is told.)
    int rc = -E_XCE_BUSY;
    for (int tries = 0; rc == -E_XCE_BUSY && tries < 10; ++tries) {
      rc = xcecli_memberctrl(admin.ctx(), XCE_MEMBER_TRANSFER, 0, nullptr, 0);
      refused += rc == -E_XCE_BUSY;
    }
    EXPECT_GE(rc, 0) << xce_errname(rc);
    EXPECT_TRUE(wait_until(
        [&] {
          const std::lock_guard<std::mutex> lock(mutex);
          return ids.size() >= acknowledged + 2 * kClients;
        },
        milliseconds(10000)));
    window.end = Clock::now();
    windows.push_back(window);
    const int after = cluster_->wait_primary(before, milliseconds(10000));
    EXPECT_GE(after, 0) << "controller " << before + 1 << " still leads";
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(errors.empty()) << errors.size() << " errors, the first "
                              << xce_errname(static_cast<int>(errors.front()));
  std::vector<double> gaps;
  for (const Call& window : windows) gaps.push_back(longest_ms(calls, window));
  std::sort(gaps.begin(), gaps.end());
  printf(
      "hand-over, longest submission: p50 %.1f ms, p99 %.1f ms (%zu hand-overs, %d tried again, "
      "%zu calls)\n",
      gaps[gaps.size() / 2], gaps.back(), gaps.size(), refused, calls.size());
  EXPECT_LT(gaps.back(), 2000);
  int status = -1;
  const auto jobs = admin.jobs(&status);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(jobs.size(), ids.size());
  EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), ids.size());
}

TEST_F(Transfer, TheCommandNamesTheNewPrimaryAndItsFailures) {
  start({});
  const int before = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(before, 0);
  const int to = (before + 1) % 3;
  const Finished done = xce({"cluster", "transfer", "--to", absl::StrCat(to + 1)});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(absl::StrContains(done.out, absl::StrCat("controller ", to + 1, " is the primary")))
      << done.out;
  EXPECT_EQ(cluster_->wait_primary(before, milliseconds(10000)), to);
  EXPECT_EQ(xce({"cluster", "transfer", "--to", absl::StrCat(to + 1)}).code, 0) << "it is already";
  EXPECT_EQ(xce({"cluster", "transfer", "--to", "9"}).code, 3) << "no such controller";
  EXPECT_EQ(xce({"cluster", "transfer", "--to", "x"}).code, 2);
  cluster_->controller(before).kill9();
  const Finished dead = xce({"cluster", "transfer", "--to", absl::StrCat(before + 1)});
  EXPECT_EQ(dead.code, 1);
  EXPECT_TRUE(absl::StrContains(dead.err, absl::StrCat("node ", before + 1))) << dead.err;
  // What the status tells of the hand-over, and of the timers.
  Client client(cluster_->masters());
  xce_cluster_status_t* status = nullptr;
  ASSERT_GE(xcecli_clusterstatus(client.ctx(), &status), 0);
  EXPECT_EQ(status->heartbeat_ms, 30u);
  EXPECT_EQ(status->election_timeout_ms, 300u);
  EXPECT_GT(status->last_election_ms, 0);
  EXPECT_EQ(status->applied, status->commit) << "idle";
  xce_free_cluster_status(status);
}

}  // namespace
}  // namespace xce::e2e
