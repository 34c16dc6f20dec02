// What scenarios under load share: a whole cluster with clients of every kind at work (libxce,
// operator, command line, REST), a reader of the stream of changes, long jobs that must not be
// disturbed, and the books at the end.
#ifndef XCE_E2E_SCENARIOS_LOADED_H_
#define XCE_E2E_SCENARIOS_LOADED_H_

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/http.h"
#include "e2e/demo/ledger.h"
#include "e2e/soak/load.h"
#include "e2e/soak/stream.h"

namespace xce::e2e {

class LoadedTest : public ClusterTest {
 protected:
  static constexpr milliseconds kLimit{30000};

  void SetUp() override {
    ClusterTest::SetUp();
    xce_set_log_callback(nullptr, nullptr);  // the clients lose their primary all the time
  }
  void TearDown() override {
    stream_.reset();
    load_.reset();
    client_.reset();
    ClusterTest::TearDown();
  }

  void start_whole(ClusterOptions options) {
    options.workers = std::max(options.workers, 2);
    options.schedulers = std::max(options.schedulers, 1);
    options.apiserver = true;
    options.worker_cpus = 8;
    ASSERT_NO_FATAL_FAILURE(start(options));
    http_ = std::make_unique<Http>(cluster_->api_address(), cluster_->api_token());
    ASSERT_TRUE(wait_until([&] { return serves(); }, kLimit));
    client_ = std::make_unique<Client>(cluster_->masters(), 60000, cluster_->user_certificate());
    ledger_ = std::make_unique<Ledger>(cluster_->dir() + "/ledger");
    stream_ = std::make_unique<StreamReader>(*http_, cluster_->dir() + "/streams",
                                             [this] { return client_->jobs_and_history(); });
    LoadOptions load;
    load.masters = cluster_->masters();
    load.work_dir = cluster_->dir() + "/work";
    load.api_address = cluster_->api_address();
    load.token = cluster_->api_token();
    load.tls = cluster_->user_certificate();
    load.requeue = requeue_;
    load_ = std::make_unique<Load>(load, ledger_.get());
  }
  bool serves() { return http_->call("GET", "/readyz").status == 200; }

  void begin_load() {
    stream_->start();
    load_->start();
    EXPECT_TRUE(progress(10));
  }
  // Waits until so many more submissions have been acknowledged, and jobs have run and been told of
  // in the stream.
  bool progress(size_t jobs) {
    const size_t acknowledged = ledger_->count(), told = stream_->counts().events;
    const size_t ran = read_file(cluster_->dir() + "/ledger").size();
    return wait_until(
        [&] {
          return ledger_->count() >= acknowledged + jobs &&
                 stream_->counts().events > told + jobs &&
                 read_file(cluster_->dir() + "/ledger").size() > ran + jobs;
        },
        milliseconds(60000));
  }
  // Jobs that run until open_gate().
  void submit_long_jobs(int count) {
    const std::string work = cluster_->dir() + "/work";
    for (int i = 0; i < count; ++i) {
      const int64_t id = client_->submit(
          absl::StrCat(ledger_->signature(), "; while [ ! -e gate ]; do sleep 0.05; done; ",
                       ledger_->end_signature()),
          "long", work);
      ASSERT_GT(id, 0);
      ledger_->acknowledged(static_cast<uint64_t>(id), 1, "COMPLETED");
      long_.push_back(static_cast<uint64_t>(id));
    }
    ASSERT_TRUE(wait_until(
        [&] {
          const auto jobs = client_->jobs();
          return std::all_of(long_.begin(), long_.end(), [&](uint64_t id) {
            return jobs.count(id) != 0 && jobs.at(id).state == XCE_JOB_RUNNING;
          });
        },
        kLimit));
  }
  void open_gate() { std::ofstream(cluster_->dir() + "/work/gate").put('x'); }

  // Whether a daemon has said that since its log was `from` bytes long.
  bool says(const std::string& daemon, size_t from, const std::string& words,
            milliseconds limit = kLimit) {
    return wait_until([&] { return absl::StrContains(cluster_->log(daemon).substr(from), words); },
                      limit);
  }

  // Waits until the controllers say so of the first worker's host.
  bool host_is(xce_host_state_t state) {
    return wait_until(
        [&] {
          xce_host_t* hosts = nullptr;
          size_t n = 0;
          if (xcecli_workerlist(client_->ctx(), &hosts, &n) < 0) return false;
          bool is = false;
          for (size_t i = 0; i < n; ++i)
            is = is || (std::string(hosts[i].attrs.name) == "host1" && hosts[i].state == state);
          xce_free_hosts(hosts, n);
          return is;
        },
        milliseconds(40000));
  }

  // Ends the load, waits for every job's end, and looks at the books. `longest` gets the longest
  // time from the first try of a request to its acknowledgement, of all clients.
  void end_load(double* longest_ms = nullptr) {
    load_->stop();
    open_gate();
    int status = -1;
    std::map<uint64_t, JobRow> jobs;
    EXPECT_TRUE(wait_until(
        [&] {
          jobs = client_->jobs_and_history(&status);
          return status >= 0 && std::all_of(jobs.begin(), jobs.end(), [](const auto& each) {
                   return each.second.state >= XCE_JOB_COMPLETED;
                 });
        },
        milliseconds(60000)));
    for (const std::string& failure : load_->failures()) ADD_FAILURE() << failure;
    verdict_ = ledger_->compare(jobs);
    EXPECT_TRUE(verdict_.good()) << absl::StrJoin(verdict_.findings, "\n");
    for (const ClientBalance& of : load_->balance(jobs)) {
      EXPECT_TRUE(of.even()) << of.name << ": " << of.books.acknowledged << " acknowledged, "
                             << of.finished << " finished";
      EXPECT_GT(of.books.acknowledged, 0u) << of.name << " did not work";
      printf("%-9s %4zu jobs, longest request %5.0f ms, %zu sent again (%zu: nobody listened)\n",
             of.name.c_str(), of.books.acknowledged, of.books.longest_ms, of.books.repeats,
             of.books.refused);
      if (longest_ms != nullptr) *longest_ms = std::max(*longest_ms, of.books.longest_ms);
      balance_.push_back(of);
    }
    const std::vector<std::string> missing = stream_->wait_for(jobs, kLimit);
    EXPECT_TRUE(missing.empty()) << missing.size() << ": " << missing.front();
    for (const uint64_t id : long_) {
      EXPECT_EQ(jobs[id].attempt, 1u) << "job " << id << " was stopped";
      EXPECT_EQ(jobs[id].starts, 1u) << "job " << id;
    }
  }

  bool requeue_ = false;  // some jobs of the load may be started again
  std::unique_ptr<Http> http_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Load> load_;
  std::unique_ptr<StreamReader> stream_;
  std::vector<uint64_t> long_;
  std::vector<ClientBalance> balance_;
  Verdict verdict_;
};

}  // namespace xce::e2e

#endif  // XCE_E2E_SCENARIOS_LOADED_H_
