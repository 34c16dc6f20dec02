// What every scenario shares: a cluster that is torn down whole, logs shown when the test failed, a
// wall-clock deadline.
#ifndef XCE_E2E_CLUSTER_FIXTURE_H_
#define XCE_E2E_CLUSTER_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "e2e/cluster/cluster.h"

namespace xce::e2e {

class ClusterTest : public ::testing::Test {
 protected:
  static constexpr unsigned kDeadlineS = 240;

  void SetUp() override {
    xce_set_log_callback(
        [](xce_log_level_t level, const char* line, void*) {
          if (level >= XCE_LOG_WARN) fprintf(stderr, "libxce: %s\n", line);
        },
        nullptr);
    alarm(kDeadlineS);  // a hang must fail loudly
  }

  void start(const ClusterOptions& options) {
    auto started = Cluster::start(options);
    ASSERT_TRUE(started.ok()) << started.status().ToString();
    cluster_ = std::move(*started);
  }

  void TearDown() override {
    if (cluster_ != nullptr && HasFailure())
      fprintf(stderr, "%s\n", cluster_->log_tails(60).c_str());
    cluster_.reset();
    // A controller's keeper may outlive it for a moment.
    if (!wait_until([] { return living_descendants().empty(); }, milliseconds(2000)))
      ADD_FAILURE() << living_descendants().front();
    alarm(0);
  }

  // Kills the primary with SIGKILL; its number, or -1 when there was none within the limit.
  int kill_primary() {
    const int node = cluster_->wait_primary(-1, milliseconds(10000));
    if (node >= 0) cluster_->controller(node).kill9();
    return node;
  }

  std::unique_ptr<Cluster> cluster_;
};

}  // namespace xce::e2e

#endif  // XCE_E2E_CLUSTER_FIXTURE_H_
