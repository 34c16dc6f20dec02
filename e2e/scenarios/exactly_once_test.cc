// Acknowledged work is neither lost nor done twice: across ten kills of the primary, and when all
// three die at once.

#include <atomic>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"

namespace xce::e2e {
namespace {

class ExactlyOnce : public ClusterTest {};

TEST_F(ExactlyOnce, TwoHundredSubmissionsAcrossTenKillsAreTwoHundredJobs) {
  start({});
  constexpr int kJobs = 200;
  constexpr int kKills = 10;
  std::atomic<int> submitted{0};
  std::map<int64_t, std::string> acknowledged;
  std::thread submitter([&] {
    Client client(cluster_->masters(), 60000);
    for (int i = 0; i < kJobs; ++i) {
      const std::string name = absl::StrCat("job-", i);
      const int64_t id = client.submit("true", name, cluster_->dir());
      EXPECT_GT(id, 0) << xce_errname(static_cast<int>(id));
      EXPECT_TRUE(acknowledged.emplace(id, name).second) << "id " << id << " was given twice";
      ++submitted;
    }
  });
  for (int k = 0; k < kKills; ++k) {
    EXPECT_TRUE(wait_until([&] { return submitted >= (k + 1) * kJobs / (kKills + 1); },
                           milliseconds(60000)));
    const int node = kill_primary();
    ASSERT_GE(node, 0);
    ASSERT_TRUE(cluster_->start_controller(node).ok());
  }
  submitter.join();
  Client client(cluster_->masters());
  const auto jobs = client.jobs();
  EXPECT_EQ(jobs.size(), size_t{kJobs});
  for (const auto& [id, name] : acknowledged) {
    ASSERT_TRUE(jobs.count(id)) << "acknowledged job " << id << " is lost";
    EXPECT_EQ(jobs.at(id).name, name);
  }
}

TEST_F(ExactlyOnce, AllThreeKilledAndRestartedKeepWhatWasAcknowledged) {
  start({});
  std::map<int64_t, std::string> acknowledged;
  for (int round = 0; round < 3; ++round) {
    {
      Client client(cluster_->masters());
      for (int i = 0; i < 20; ++i) {
        const std::string name = absl::StrCat("r", round, "-", i);
        const int64_t id = client.submit("true", name, cluster_->dir());
        ASSERT_GT(id, 0);
        acknowledged[id] = name;
      }
    }
    for (int node = 0; node < 3; ++node) cluster_->controller(node).kill9();
    for (int node = 0; node < 3; ++node)
      ASSERT_TRUE(cluster_->start_controller((node + round) % 3).ok());
    ASSERT_GE(cluster_->wait_primary(-1, milliseconds(20000)), 0);
    Client client(cluster_->masters());
    const auto jobs = client.jobs();
    EXPECT_EQ(jobs.size(), acknowledged.size());
    for (const auto& [id, name] : acknowledged) {
      ASSERT_TRUE(jobs.count(id)) << "acknowledged job " << id << " is lost";
      EXPECT_EQ(jobs.at(id).name, name);
    }
  }
}

TEST_F(ExactlyOnce, OneKeyIsOneJobAcrossClientsAndFailovers) {
  start({});
  int64_t first = 0;
  {
    Client client(cluster_->masters());
    first = client.submit("true", "keyed", cluster_->dir(), "my-key");
    ASSERT_GT(first, 0);
  }
  ASSERT_GE(kill_primary(), 0);
  Client other(cluster_->masters());
  EXPECT_EQ(other.submit("true", "keyed", cluster_->dir(), "my-key"), -E_XCE_DUP_JOB);
  xce_error_t error;
  xcecli_last_error(&error);
  EXPECT_EQ(error.job_id, static_cast<uint64_t>(first));
  EXPECT_EQ(other.jobs().size(), 1u);
}

TEST_F(ExactlyOnce, ASingleNodeKeepsItsJobsAcrossARestart) {
  ClusterOptions options;
  options.controllers = 1;
  start(options);
  int64_t id = 0;
  {
    Client client(cluster_->masters());
    id = client.submit("true", "alone", cluster_->dir());
    ASSERT_GT(id, 0);
  }
  cluster_->controller(0).kill9();
  ASSERT_TRUE(cluster_->start_controller(0).ok());
  Client client(cluster_->masters());
  EXPECT_EQ(client.jobs().count(id), 1u);
}

}  // namespace
}  // namespace xce::e2e
