// Every daemon of a cluster is restarted, one after the other, as for an upgrade, while clients of
// every kind work and jobs run: no caller sees an error, no job is lost, done twice or stopped.

#include "e2e/scenarios/loaded.h"

namespace xce::e2e {
namespace {

constexpr milliseconds kGrace{15000};
constexpr double kLongestPauseMs = 5000;  // on a machine that does other things, too

class RollingRestart : public LoadedTest, public ::testing::WithParamInterface<bool> {
 protected:
  // SIGTERM, and start again. False when it did not end well.
  void restart(Process* process, const std::function<absl::Status()>& start,
               const std::string& name) {
    EXPECT_EQ(process->terminate(kGrace), 0) << name;
    ASSERT_TRUE(start().ok()) << name;
  }
  uint64_t commit_index() {
    xce_cluster_status_t* status = nullptr;
    if (xcecli_clusterstatus(client_->ctx(), &status) < 0) return 0;
    const uint64_t commit = status->commit;
    xce_free_cluster_status(status);
    return commit;
  }
  // Whether the primary says that this controller has everything up to `index`.
  bool has_all(int node, uint64_t index) {
    xce_cluster_status_t* status = nullptr;
    if (xcecli_clusterstatus(client_->ctx(), &status) < 0) return false;
    bool found = status->ready && status->leader_id == static_cast<uint64_t>(node) + 1;
    for (size_t i = 0; i < status->nnodes; ++i)
      found = found || (status->nodes[i].id == static_cast<uint64_t>(node) + 1 &&
                        status->nodes[i].connected && status->nodes[i].match_index >= index);
    xce_free_cluster_status(status);
    return found;
  }
  // Requests that had to be sent again so far.
  size_t sent_again() {
    size_t sum = 0;
    for (const ClientBalance& of : load_->balance({})) sum += of.books.repeats;
    return sum;
  }
  void restart_controller(int node) {
    restart(
        &cluster_->controller(node), [&] { return cluster_->start_controller(node); },
        absl::StrCat("controller ", node + 1));
    uint64_t index = 0;
    EXPECT_TRUE(wait_until([&] { return (index = commit_index()) > 0; }, kLimit));
    EXPECT_TRUE(wait_until([&] { return has_all(node, index); }, kLimit))
        << "controller " << node + 1 << " does not keep up";
  }
};

TEST_P(RollingRestart, OfEveryDaemonUnderLoad) {
  ClusterOptions options;
  options.schedulers = 2;
  options.tls = GetParam();
  ASSERT_NO_FATAL_FAILURE(start_whole(options));
  ASSERT_NO_FATAL_FAILURE(submit_long_jobs(4));
  begin_load();
  for (int node = 0; node < 3; ++node) {
    ASSERT_NO_FATAL_FAILURE(restart_controller(node));
    EXPECT_TRUE(progress(8));
  }
  for (int i = 0; i < 2; ++i) {
    const std::string name = absl::StrCat("scheduler", i + 1);
    const size_t from = cluster_->log(name).size();
    ASSERT_NO_FATAL_FAILURE(restart(
        &cluster_->scheduler(i), [&] { return cluster_->start_scheduler(i); }, name));
    EXPECT_TRUE(says(name, from, "state taken"));
    EXPECT_TRUE(progress(8));
  }
  for (int i = 0; i < 2; ++i) {
    const std::string name = absl::StrCat("worker", i + 1);
    const size_t from = cluster_->log(name).size();
    ASSERT_NO_FATAL_FAILURE(restart(
        &cluster_->worker(i), [&] { return cluster_->start_worker(i); }, name));
    EXPECT_TRUE(says(name, from, "xcecd ready"));
    EXPECT_TRUE(progress(8));
  }
  EXPECT_EQ(sent_again(), 0u) << "somebody saw an error";
  // There is one apiserver: whoever comes while it is gone is refused, or told 503 until it has
  // joined. Those under way have had their answers.
  ASSERT_NO_FATAL_FAILURE(restart(
      &cluster_->apiserver(), [&] { return cluster_->start_apiserver(); }, "apiserver"));
  EXPECT_TRUE(wait_until([&] { return serves(); }, kLimit));
  EXPECT_TRUE(progress(8));
  const size_t meanwhile = sent_again();
  // And whoever leads now, whichever that is.
  ASSERT_NO_FATAL_FAILURE(restart_controller(cluster_->wait_primary(-1, kLimit)));
  EXPECT_TRUE(progress(8));
  double longest_ms = 0;
  end_load(&longest_ms);
  EXPECT_EQ(sent_again(), meanwhile) << "somebody saw an error";
  for (const ClientBalance& of : balance_) EXPECT_EQ(of.books.cut, 0u) << of.name;
  printf("longest pause of a caller %.0f ms\n", longest_ms);
  EXPECT_LT(longest_ms, kLongestPauseMs);
}

INSTANTIATE_TEST_SUITE_P(Plain, RollingRestart, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Tls, RollingRestart, ::testing::Values(true));

}  // namespace
}  // namespace xce::e2e
