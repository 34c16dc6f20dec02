// The scheduler in a whole cluster: it dies in the middle of publishing, another one takes over,
// queues and dependencies do what people are told.

#include <signal.h>
#include <unistd.h>
#include <xce/cluster.h>

#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

class Scheduling : public ClusterTest {
 protected:
  void start_whole(int schedulers, int controllers = 3) {
    ClusterOptions options;
    options.controllers = controllers;
    options.workers = 1;
    options.schedulers = schedulers;
    start(options);
    client_ = std::make_unique<Client>(cluster_->masters(), 60000);
    work_ = cluster_->dir() + "/work";
  }
  void TearDown() override {
    client_.reset();
    ClusterTest::TearDown();
  }

  Finished xce(std::vector<std::string> args) {
    return run("cli/xce", args, {"XCE_MASTERS=" + cluster_->masters(), "NO_COLOR=1"});
  }
  void expect_ok(std::vector<std::string> args) {
    const Finished done = xce(std::move(args));
    EXPECT_EQ(done.code, 0) << done.out << done.err;
  }
  // Submits a command in `work_` with these options; the job's id.
  uint64_t submit(std::vector<std::string> options, const std::string& command) {
    std::vector<std::string> args = {"submit", "--json", "--workdir", work_};
    args.insert(args.end(), options.begin(), options.end());
    args.insert(args.end(), {"--", "/bin/sh", "-c", command});
    const Finished done = xce(args);
    EXPECT_EQ(done.code, 0) << done.err;
    const json answer = json::parse(done.out, nullptr, false);
    return answer.is_discarded() ? 0 : answer.value("job_id", uint64_t{0});
  }
  json job(uint64_t id) {
    return json::parse(xce({"job", "--json", absl::StrCat(id)}).out, nullptr, false);
  }
  bool reaches(uint64_t id, xce_job_state_t state, int limit_ms = 20000) {
    return wait_until(
        [&] {
          const auto jobs = client_->jobs();
          return jobs.count(id) > 0 && jobs.at(id).state == state;
        },
        milliseconds(limit_ms));
  }
  bool all_end(int limit_ms = 60000) {
    return wait_until(
        [&] {
          for (const auto& [id, job] : client_->jobs())
            if (job.state < XCE_JOB_COMPLETED) return false;
          return true;
        },
        milliseconds(limit_ms));
  }
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
  bool log_has(int scheduler, const std::string& words) const {
    return absl::StrContains(cluster_->log(absl::StrCat("scheduler", scheduler + 1)), words);
  }

  std::unique_ptr<Client> client_;
  std::string work_;
};

// Milliseconds from now until a job that is submitted now runs.
int64_t until_a_job_runs(Client* client, const std::string& work) {
  const auto began = steady_clock::now();
  const int64_t id = client->submit("true", "probe", work);
  EXPECT_GT(id, 0);
  EXPECT_TRUE(wait_until(
      [&] {
        const auto jobs = client->jobs();
        return jobs.count(id) > 0 && jobs.at(id).starts > 0;
      },
      milliseconds(30000)));
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - began).count();
}

TEST_F(Scheduling, AnotherOneTakesOverWhenTheActiveOneDiesOrStops) {
  start_whole(2);
  ASSERT_TRUE(wait_until([&] { return cluster_->active_scheduler() >= 0; }, milliseconds(10000)));
  // Both have joined, so that one stands by.
  ASSERT_TRUE(wait_until([&] { return log_has(0, "state taken") && log_has(1, "state taken"); },
                         milliseconds(10000)));
  const int64_t usual_ms = until_a_job_runs(client_.get(), work_);
  const int first = cluster_->active_scheduler();
  ASSERT_GE(first, 0);
  cluster_->scheduler(first).kill9();
  const int64_t killed_ms = until_a_job_runs(client_.get(), work_);
  EXPECT_EQ(cluster_->active_scheduler(), 1 - first);
  EXPECT_LT(killed_ms, 2000);

  ASSERT_TRUE(cluster_->start_scheduler(first).ok());  // becomes the active one
  ASSERT_TRUE(
      wait_until([&] { return cluster_->active_scheduler() == first; }, milliseconds(10000)));
  cluster_->scheduler(first).signal(SIGSTOP);
  const int64_t stopped_ms = until_a_job_runs(client_.get(), work_);
  EXPECT_EQ(cluster_->active_scheduler(), 1 - first);
  EXPECT_LT(stopped_ms, 8000);
  cluster_->scheduler(first).signal(SIGCONT);
  // What it had under way is refused: it finds out and stands by.
  until_a_job_runs(client_.get(), work_);
  EXPECT_EQ(cluster_->active_scheduler(), 1 - first);
  ASSERT_TRUE(all_end());
  for (const auto& [id, job] : client_->jobs()) EXPECT_EQ(job.starts, 1u) << id;
  printf(
      "submit to running: %lld ms; over a killed scheduler %lld ms, over a stopped one %lld ms\n",
      static_cast<long long>(usual_ms), static_cast<long long>(killed_ms),
      static_cast<long long>(stopped_ms));
}

// Decisions are under way when the controllers stop answering, and the scheduler dies before it has
// an answer: they may be applied or not. The next scheduler goes by what the controllers have.
TEST_F(Scheduling, KilledInTheMiddleOfPublishing) {
  start_whole(1);
  std::vector<int64_t> ids;
  for (int i = 0; i < 120; ++i) {
    ids.push_back(client_->submit(ledger_line() + "sleep 0.05", absl::StrCat("j", i), work_));
    ASSERT_GT(ids.back(), 0);
  }
  for (int round = 0; round < 4; ++round) {
    const size_t before = ledger().size();
    ASSERT_TRUE(wait_until([&] { return ledger().size() >= before + 6; }, milliseconds(20000)));
    const bool frozen = round % 2 == 0;  // else at any moment
    for (int node = 0; frozen && node < 3; ++node) cluster_->controller(node).signal(SIGSTOP);
    cluster_->scheduler(0).kill9();
    for (int node = 0; frozen && node < 3; ++node) cluster_->controller(node).signal(SIGCONT);
    ASSERT_TRUE(cluster_->start_scheduler(0).ok());
  }
  ASSERT_TRUE(all_end()) << cluster_->log_tails();
  const auto runs = ledger();
  const auto jobs = client_->jobs();
  for (const int64_t id : ids) {
    EXPECT_EQ(runs.count(id) > 0 ? runs.at(id) : 0, 1) << "job " << id;
    EXPECT_EQ(jobs.at(id).state, XCE_JOB_COMPLETED) << "job " << id;
    EXPECT_EQ(jobs.at(id).attempt, 1u) << "job " << id;
  }
}

TEST_F(Scheduling, WhatCanNeverStartIsEndedAndSaysWhy) {
  start_whole(1, 1);
  const uint64_t fails = submit({}, "exit 3");
  const uint64_t after = submit({"--afterok", absl::StrCat(fails)}, "true");
  const uint64_t last = submit({"--afterany", absl::StrCat(after)}, "true");
  const Finished waited = xce({"wait", "--timeout", "20", absl::StrCat(after)});
  EXPECT_NE(waited.code, 0);
  EXPECT_NE(waited.code, 127) << "waited in vain";
  EXPECT_TRUE(absl::StrContains(
      waited.out, absl::StrCat("dependency can never be met: job ", fails, " failed")))
      << waited.out;
  EXPECT_EQ(xce({"wait", "--timeout", "20", absl::StrCat(last)}).code, 0);

  const uint64_t held = submit({"--hold"}, "true");
  const Finished told = xce({"wait", "--timeout", "1", absl::StrCat(held)});
  EXPECT_EQ(told.code, 127);
  EXPECT_TRUE(absl::StrContains(told.err, absl::StrCat("'xce release ", held, "'"))) << told.err;
  expect_ok({"kill", absl::StrCat(held)});
}

TEST_F(Scheduling, QueuesByCommandLine) {
  start_whole(1, 1);
  expect_ok({"queue", "add", "high", "--priority", "5", "--max-time", "1h"});
  expect_ok(
      {"queue", "modify", "default", "--preemptible", "yes", "--max-pending-per-user", "100"});
  EXPECT_EQ(xce({"queue", "add", "high"}).code, 1) << "exists already";
  EXPECT_EQ(xce({"queue", "modify", "high"}).code, 2) << "nothing to change";
  EXPECT_EQ(xce({"queue", "show", "none"}).code, 3);
  const json shown = json::parse(xce({"queue", "show", "high", "--json"}).out, nullptr, false);
  EXPECT_EQ(shown.value("priority", 0), 5);
  EXPECT_EQ(shown.value("max_time_s", 0), 3600);

  // A job of a queue of higher priority has room made for it; who made room runs again later.
  std::vector<uint64_t> low;
  for (int i = 0; i < 4; ++i)
    low.push_back(submit({"--time", "10m"}, "while [ ! -e gate ]; do sleep 0.05; done"));
  for (const uint64_t id : low) ASSERT_TRUE(reaches(id, XCE_JOB_RUNNING));
  // Whoever waits is told when it may start.
  const uint64_t waits = submit({"--time", "1m"}, "true");
  ASSERT_TRUE(wait_until([&] { return job(waits)["estimated_start_time"].is_string(); },
                         milliseconds(15000)));
  EXPECT_TRUE(absl::StrContains(xce({"job", absl::StrCat(waits)}).out, "Starts"));
  EXPECT_TRUE(absl::StrContains(xce({"jobs"}).out, "starts in"));

  const uint64_t high = submit({"-q", "high", "--cpus", "2"}, "true");
  ASSERT_TRUE(reaches(high, XCE_JOB_COMPLETED)) << cluster_->log_tails();
  std::ofstream(work_ + "/gate").put('x');
  ASSERT_TRUE(all_end()) << cluster_->log_tails();
  uint32_t attempts = 0;
  const auto jobs = client_->jobs();
  for (const uint64_t id : low) {
    EXPECT_EQ(jobs.at(id).state, XCE_JOB_COMPLETED);
    attempts += jobs.at(id).attempt;
  }
  EXPECT_EQ(attempts, 6u) << "two of four made room, once";

  expect_ok({"queue", "close", "high"});
  EXPECT_NE(xce({"submit", "-q", "high", "--", "/bin/true"}).code, 0);
  expect_ok({"queue", "open", "high"});
  expect_ok({"queue", "remove", "high"});
  EXPECT_EQ(xce({"queue", "remove", "high"}).code, 3);
}

// What an operator keeps for others stays kept when the primary dies, and the jobs say why they
// wait.
TEST_F(Scheduling, ReservationsKeepHostsOverAFailover) {
  start_whole(1);
  const json hosts = json::parse(xce({"hosts", "--json"}).out, nullptr, false);
  const std::string host = hosts["hosts"][0].value("name", "");
  expect_ok({"reservation", "create", "exam", "--hosts", host, "--duration", "1h", "--users",
             "somebody-else", "--comment", "the exam"});
  EXPECT_EQ(xce({"reservation", "create", "exam2", "--hosts", host, "--start", "+30m", "--duration",
                 "1h", "--users", "ann"})
                .code,
            1)
      << "the host is kept already";
  const uint64_t waits = submit({"--time", "1m"}, "true");
  const auto reason_is = [&](const std::string& words) {
    return wait_until([&] { return absl::StrContains(job(waits).value("reason", ""), words); },
                      milliseconds(15000));
  };
  EXPECT_TRUE(reason_is("kept for others until")) << job(waits);
  const int primary = cluster_->primary();
  ASSERT_GE(primary, 0);
  cluster_->controller(primary).kill9();
  ASSERT_GE(cluster_->wait_primary(primary, milliseconds(10000)), 0);
  const uint64_t waits_too = submit({"--time", "1m"}, "true");
  ASSERT_TRUE(
      wait_until([&] { return !job(waits_too).value("reason", "").empty(); }, milliseconds(15000)));
  EXPECT_EQ(client_->jobs().at(waits).attempt, 0u);
  EXPECT_EQ(client_->jobs().at(waits_too).attempt, 0u);
  const json listed = json::parse(xce({"reservation", "list", "--json"}).out, nullptr, false);
  ASSERT_EQ(listed["reservations"].size(), 1u);
  EXPECT_EQ(listed["reservations"][0].value("comment", ""), "the exam");
  EXPECT_TRUE(absl::StrContains(xce({"reservation", "list"}).out, "somebody-else"));
  expect_ok({"reservation", "delete", "exam"});
  EXPECT_TRUE(reaches(waits, XCE_JOB_COMPLETED)) << cluster_->log_tails();
  EXPECT_TRUE(reaches(waits_too, XCE_JOB_COMPLETED));
  EXPECT_EQ(xce({"reservation", "delete", "exam"}).code, 3);
}

TEST_F(Scheduling, EachGpuIsOneJobs) {
  ClusterOptions options;
  options.controllers = options.workers = options.schedulers = 1;
  options.worker_args = {"--gres", "gpu:3"};
  start(options);
  client_ = std::make_unique<Client>(cluster_->masters(), 60000);
  work_ = cluster_->dir() + "/work";
  // Two at a time: the fourth job waits until one gives its gpu back.
  const std::string command =
      "echo $XCE_GRES_GPU $CUDA_VISIBLE_DEVICES > $XCE_JOB_ID.gpu; "
      "while [ ! -e gate.$XCE_JOB_ID ]; do sleep 0.05; done";
  const uint64_t two = submit({"--gres", "gpu:2"}, command);
  const uint64_t one = submit({"--gres", "gpu:1"}, command);
  const uint64_t next = submit({"--gres", "gpu:1"}, command);
  const auto has = [&](uint64_t id, const std::string& words) {
    const std::string path = absl::StrCat(work_, "/", id, ".gpu");
    const bool told = wait_until([&] { return !read_file(path).empty(); }, milliseconds(15000));
    EXPECT_EQ(told ? read_file(path) : "", words) << "job " << id;
  };
  has(two, "0,1 0,1\n");
  has(one, "2 2\n");
  EXPECT_EQ(job(two)["allocations"][0]["gres_indices"]["gpu"], json::array({0, 1}));
  std::ofstream(absl::StrCat(work_, "/gate.", two)).put('x');
  has(next, "0 0\n");
  const uint64_t none = submit({}, "echo \"[$XCE_GRES_GPU]\" > $XCE_JOB_ID.gpu");
  has(none, "[]\n");
  for (const uint64_t id : {one, next}) std::ofstream(absl::StrCat(work_, "/gate.", id)).put('x');
  EXPECT_TRUE(all_end());
}

// Access by user: this program's user is no other one.
TEST_F(Scheduling, QueuesForSomeOnly) {
  start_whole(1, 1);
  expect_ok({"queue", "add", "lab", "--allow-users", "ann,bob", "--allow-groups", "no-such-group"});
  xce_client_config_t config;
  xce_client_config_init(&config);
  char error[256];
  xce_cluster_config_t list;
  ASSERT_EQ(xce_parse_peers(cluster_->masters().c_str(), &list, error, sizeof error), 0);
  ASSERT_EQ(xce_cluster_config_to_client_config(&list, &config), 0);
  const auto submit_as = [&](const char* user) {
    snprintf(config.user, sizeof config.user, "%s", user);
    xcecli_ctx_t ctx = nullptr;
    EXPECT_EQ(xcecli_ctx_init(&ctx, &config), 0);
    EXPECT_EQ(xcecli_start(ctx), 0);
    const char* args[] = {"/bin/true"};
    xce_job_spec_t spec;
    xce_job_spec_init(&spec);
    spec.args = args;
    spec.nargs = 1;
    spec.queue = "lab";
    spec.hold = true;
    const int rc = xcecli_jobsub(ctx, &spec, nullptr);
    xcecli_ctx_free(ctx);
    return rc;
  };
  EXPECT_EQ(submit_as("ann"), 0);
  EXPECT_EQ(submit_as("eve"), -E_XCE_PERM);
  expect_ok({"queue", "modify", "lab", "--allow-groups", "nogroup"});
  // Debian's user nobody is of that group; the primary looks that up.
  EXPECT_TRUE(wait_until([&] { return submit_as("nobody") == 0; }, milliseconds(5000)));
  EXPECT_EQ(submit_as("eve"), -E_XCE_PERM);
  expect_ok({"queue", "modify", "lab", "--allow-users", "all", "--allow-groups", "all"});
  EXPECT_EQ(submit_as("eve"), 0);
}

}  // namespace
}  // namespace xce::e2e
