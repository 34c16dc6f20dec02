// Real jobs on real workers: they run once and their outcomes arrive, whoever dies meanwhile.

#include <signal.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"

namespace xce::e2e {
namespace {

class RunJobs : public ClusterTest {
 protected:
  void start_whole(int workers) {
    ClusterOptions options;
    options.workers = workers;
    options.schedulers = 1;
    start(options);
  }

  // How often each job wrote its id into the ledger: independent of what the controllers say.
  std::map<uint64_t, int> ledger() const {
    std::map<uint64_t, int> counts;
    std::ifstream in(cluster_->dir() + "/ledger");
    uint64_t id = 0;
    while (in >> id) ++counts[id];
    return counts;
  }
  std::string ledger_line() const {
    return absl::StrCat("echo $XCE_JOB_ID >> ", cluster_->dir(), "/ledger; ");
  }

  bool wait_state(Client& client, uint64_t id, xce_job_state_t state, int limit_ms = 20000) {
    return wait_until(
        [&] {
          const auto jobs = client.jobs();
          return jobs.count(id) > 0 && jobs.at(id).state == state;
        },
        milliseconds(limit_ms));
  }
  bool wait_all_ended(Client& client, int limit_ms = 60000) {
    return wait_until(
        [&] {
          for (const auto& [id, job] : client.jobs())
            if (job.state < XCE_JOB_COMPLETED) return false;
          return true;
        },
        milliseconds(limit_ms));
  }
};

TEST_F(RunJobs, OutcomesAreTold) {
  start_whole(1);
  Client client(cluster_->masters());
  const std::string work = cluster_->dir() + "/work";
  const int64_t good = client.submit("echo hello", "good", work);
  const int64_t bad = client.submit("exit 3", "bad", work);
  const int64_t victim = client.submit("sleep 600", "victim", work);
  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  const char* args[] = {"/bin/sleep", "600"};
  spec.args = args;
  spec.nargs = 2;
  spec.name = "over";
  spec.work_dir = work.c_str();
  spec.time_limit_s = 1;
  const int64_t over = client.submit(spec);
  ASSERT_GT(over, 0);
  ASSERT_TRUE(wait_state(client, victim, XCE_JOB_RUNNING)) << cluster_->log_tails();
  const uint64_t ids[] = {static_cast<uint64_t>(victim)};
  EXPECT_GE(xcecli_jobctrl(client.ctx(), ids, 1, XCE_JOBCTRL_KILL, 0, false), 0);
  ASSERT_TRUE(wait_all_ended(client));
  const auto jobs = client.jobs();
  EXPECT_EQ(jobs.at(good).state, XCE_JOB_COMPLETED);
  EXPECT_EQ(jobs.at(bad).state, XCE_JOB_FAILED);
  EXPECT_EQ(jobs.at(bad).exit_code, 3);
  EXPECT_EQ(jobs.at(victim).state, XCE_JOB_KILLED);
  EXPECT_EQ(jobs.at(over).state, XCE_JOB_TIMEOUT);
  EXPECT_EQ(read_file(absl::StrCat(work, "/xce-", good, ".out")), "hello\n");
}

TEST_F(RunJobs, JobsSurviveTheirWorkersDeath) {
  start_whole(1);
  Client client(cluster_->masters());
  const std::string work = cluster_->dir() + "/work";
  const std::string gate = work + "/gate";
  std::vector<int64_t> ids;
  for (int i = 0; i < 3; ++i)
    ids.push_back(client.submit(
        ledger_line() + "while [ ! -e " + gate + " ]; do sleep 0.05; done; exit " + absl::StrCat(i),
        absl::StrCat("survivor", i), work));
  for (int64_t id : ids)
    ASSERT_TRUE(wait_state(client, id, XCE_JOB_RUNNING)) << cluster_->log_tails();
  cluster_->worker(0).kill9();
  // One ends while no worker is there to see it.
  const int64_t brief = ids[0];
  std::ofstream(gate).put('x');
  ASSERT_TRUE(wait_until([&] { return ledger().size() == ids.size(); }, milliseconds(5000)));
  ASSERT_TRUE(cluster_->start_worker(0).ok());
  ASSERT_TRUE(wait_all_ended(client));
  const auto jobs = client.jobs();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(jobs.at(ids[i]).exit_code, i);
    EXPECT_EQ(jobs.at(ids[i]).state, i == 0 ? XCE_JOB_COMPLETED : XCE_JOB_FAILED);
    EXPECT_EQ(ledger()[ids[i]], 1) << "job " << ids[i] << " ran more than once";
  }
  EXPECT_GT(brief, 0);
}

TEST_F(RunJobs, EveryJobRunsOnceWhileDaemonsDie) {
  start_whole(2);
  Client client(cluster_->masters(), 60000);
  const std::string work = cluster_->dir() + "/work";
  constexpr int kJobs = 60;
  std::set<int64_t> acknowledged;
  for (int i = 0; i < kJobs; ++i) {
    const int64_t id = client.submit(ledger_line() + "sleep 0.1", absl::StrCat("j", i), work);
    ASSERT_GT(id, 0) << xce_errname(static_cast<int>(id));
    EXPECT_TRUE(acknowledged.insert(id).second);
    if (i == 15 || i == 40) {
      const int node = kill_primary();
      ASSERT_GE(node, 0);
      ASSERT_TRUE(cluster_->start_controller(node).ok());
    }
    if (i == 25) {
      cluster_->worker(0).kill9();
      ASSERT_TRUE(cluster_->start_worker(0).ok());
    }
    if (i == 30) {
      cluster_->scheduler(0).kill9();
      ASSERT_TRUE(cluster_->start_scheduler(0).ok());
    }
  }
  ASSERT_TRUE(wait_all_ended(client)) << cluster_->log_tails();
  const auto jobs = client.jobs();
  const auto runs = ledger();
  EXPECT_EQ(jobs.size(), acknowledged.size());
  for (int64_t id : acknowledged) {
    ASSERT_TRUE(jobs.count(id));
    EXPECT_EQ(jobs.at(id).state, XCE_JOB_COMPLETED) << jobs.at(id).reason;
    EXPECT_EQ(runs.count(id) ? runs.at(id) : 0, 1) << "job " << id;
  }
}

TEST_F(RunJobs, APausedPrimaryIsReplacedAndItsReturnIsHarmless) {
  start_whole(1);
  Client client(cluster_->masters());
  ASSERT_GT(client.submit("true", "before", cluster_->dir() + "/work"), 0);
  const int paused = cluster_->wait_primary(-1, milliseconds(10000));
  cluster_->controller(paused).signal(SIGSTOP);
  EXPECT_GT(client.submit("true", "during", cluster_->dir() + "/work"), 0);
  cluster_->controller(paused).signal(SIGCONT);
  EXPECT_GT(client.submit("true", "after", cluster_->dir() + "/work"), 0);
  ASSERT_TRUE(wait_all_ended(client)) << cluster_->log_tails();
  EXPECT_EQ(client.jobs().size(), 3u);
}

}  // namespace
}  // namespace xce::e2e
