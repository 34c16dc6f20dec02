// For the tests of the whole worker but for libxce: real shepherds and files, a controller that
// lives in the test (fake_link.h).
#ifndef XCE_WORKER_AGENT_AGENT_TESTUTIL_H_
#define XCE_WORKER_AGENT_AGENT_TESTUTIL_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>

#include "worker/agent/connector.h"
#include "worker/agent/fake_link.h"
#include "worker/agent/log_reader.h"
#include "worker/agent/outbox.h"
#include "worker/agent/reporter.h"
#include "worker/agent/supervisor.h"
#include "worker/shepherd/lease.h"
#include "worker/shepherd/process_tree.h"

namespace xce::worker {

inline std::string shepherd_path() {
  const char* given = std::getenv("XCE_SHEPHERD");
  if (given != nullptr) return given;
  const char* srcdir = std::getenv("TEST_SRCDIR");
  const char* workspace = std::getenv("TEST_WORKSPACE");
  return std::string(srcdir ? srcdir : ".") + "/" + (workspace ? workspace : "") +
         "/worker/shepherd/xce_shepherd";
}

// One life of the worker daemon. Destroying it ends the daemon; the jobs go on.
class Daemon {
 public:
  Daemon(FakeCluster* cluster, const std::string& data_dir, const HostHealth::Options& health,
         const std::string& boot_id)
      : outbox(*Outbox::open(data_dir + "/outbox")),
        link(cluster, "n1"),
        supervisor({data_dir, "n1", shepherd_path(), {}, health, 100, boot_id}, outbox.get()),
        logs(&link, &supervisor),
        connector({host(), 1, 20, 20, false, data_dir + "/cluster_id"}, &link, &supervisor, &logs),
        reporter({1, 200}, &link, outbox.get(), &connector) {
    supervisor.set_reports_handler([this] { reporter.wake(); });
    supervisor.set_fault_handler([this] { connector.kick(); });
    connector.set_handlers([this] { reporter.rejoined(); }, [this] { fatal = true; });
    started = supervisor.start();
    loop = std::thread([this] { supervisor.run(); });
    logs.start();
    reporter.start();
    connector.start();
  }
  ~Daemon() {
    supervisor.stop();
    loop.join();
    connector.stop();
    reporter.stop();
    logs.stop();
  }
  static HostAttrs host() {
    HostAttrs attrs;
    attrs.name = "n1";
    return attrs;
  }

  std::unique_ptr<Outbox> outbox;
  FakeLink link;
  Supervisor supervisor;
  LogReader logs;
  Connector connector;
  Reporter reporter;
  absl::Status started;
  std::atomic<bool> fatal{false};
  std::thread loop;
};

class AgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    const char* base = std::getenv("TEST_TMPDIR");
    std::string pattern = std::string(base == nullptr ? "/tmp" : base) + "/agent.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    data_ = pattern;
    start();
  }
  void TearDown() override {
    daemon_.reset();
    // What a failed test left: every shepherd of this data directory.
    for (pid_t pid : shepherds()) kill(pid, SIGTERM);
    eventually([&] { return shepherds().empty(); });
    std::system(("rm -rf '" + data_ + "'").c_str());
  }

  void start() {
    HostHealth::Options health;
    health.retry_ms = 300;
    health.free_mb = [this](const std::string&) { return free_mb_.load(); };
    daemon_ = std::make_unique<Daemon>(&cluster_, data_, health, boot_id_);
    ASSERT_TRUE(daemon_->started.ok()) << daemon_->started;
  }
  void restart() {
    daemon_.reset();
    start();
  }

  static bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      usleep(2000);
    }
    return condition();
  }
  std::set<pid_t> shepherds() const {
    std::set<pid_t> pids;
    for (Key key : JobStore(data_, "n1", {}).scan()) {
      const Status status = JobStore(data_, "n1", {}).read_status(key);
      if (status.started &&
          start_ticks(status.started->shepherd_pid) == status.started->shepherd_start_ticks) {
        pids.insert(status.started->shepherd_pid);
      }
    }
    return pids;
  }
  JobState state(JobId id) {
    absl::MutexLock lock(&cluster_.mutex);
    return cluster_.jobs[id].state;
  }
  bool reaches(JobId id, JobState wanted) {
    return eventually([&] { return state(id) == wanted; });
  }
  // The kinds of reports applied of a job, in order: S start, F finish, X fail, T stop, R resumed.
  std::string reports(JobId id) {
    absl::MutexLock lock(&cluster_.mutex);
    std::string text;
    for (const Report& r : cluster_.applied) {
      if (r.job == id) text.push_back("SFXTCR"[static_cast<int>(r.kind)]);
    }
    return text;
  }
  std::string message(JobId id) {
    absl::MutexLock lock(&cluster_.mutex);
    std::string text;
    for (const Report& r : cluster_.applied) {
      if (r.job == id) text = r.message;
    }
    return text;
  }
  template <typename F>
  void with_cluster(F change) {
    absl::MutexLock lock(&cluster_.mutex);
    change();
  }
  int joins() {
    absl::MutexLock lock(&cluster_.mutex);
    return cluster_.joins;
  }
  std::vector<std::string> until(const std::string& file) const {
    return {"sh", "-c", "echo x >> ran; while [ ! -e " + file + " ]; do sleep 0.01; done"};
  }
  void touch(const std::string& file) const { std::ofstream(data_ + "/" + file) << "x"; }
  bool job_dirs_gone() const {
    return eventually([&] { return JobStore(data_, "n1", {}).scan().empty(); });
  }

  std::string told_fault() {
    absl::MutexLock lock(&cluster_.mutex);
    return cluster_.fault;
  }

  std::atomic<uint64_t> free_mb_{1000};
  std::string boot_id_;  // of the daemon's next start; "": this one
  FakeCluster cluster_;
  std::string data_;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_AGENT_TESTUTIL_H_
