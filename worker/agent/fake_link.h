// A controller that lives in the test: it keeps the jobs of one host, applies reports as the real
// one does (once, in order, gaps ignored) and remembers what it was asked. Thread safe.
#ifndef XCE_WORKER_AGENT_FAKE_LINK_H_
#define XCE_WORKER_AGENT_FAKE_LINK_H_

#include <xce/errnox.h>

#include <map>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "worker/agent/controller_link.h"

namespace xce::worker {

// The controllers' state, which outlives links, as controllers outlive a worker.
struct FakeCluster {
  absl::Mutex mutex;
  std::map<JobId, Job> jobs;
  std::vector<Report> applied;
  std::vector<LogChunk> log_answers;
  uint64_t outbox_applied = 0, index = 0, cluster_id = 77;
  uint64_t generation = 1;
  int joins = 0, hellos = 0, notifies = 0;
  bool reachable = true, joinable = true, refuse_join = false;
  int failing_joins = 0;  // the next so many fail
  uint32_t lease_ms = 0;
  std::string fault;  // of the host, as its last join told
  bool confirm_by_push = true;
  bool drop_notifies = false;
  size_t page = 2;  // rows of a listing
};

class FakeLink : public ControllerLink {
 public:
  FakeLink(FakeCluster* cluster, std::string host) : c_(cluster), host_(std::move(host)) {}

  void set_handlers(std::function<void(Pushed)> on_push,
                    std::function<void()> on_reconnect) override {
    on_push_ = std::move(on_push);
    on_reconnect_ = std::move(on_reconnect);
  }
  int start() override {
    absl::MutexLock lock(&c_->mutex);
    return c_->reachable ? 0 : -E_XCE_NOT_READY;
  }
  void stop() override {
    absl::MutexLock lock(&c_->mutex);
    stopped_ = true;
  }

  int hello(HelloAnswer* out) override {
    absl::MutexLock lock(&c_->mutex);
    ++c_->hellos;
    *out = {c_->outbox_applied, c_->cluster_id, joined_generation_ == c_->generation, c_->lease_ms};
    return status();
  }
  int join(const HostAttrs& host, uint64_t, JoinAnswer* out) override {
    absl::MutexLock lock(&c_->mutex);
    if (status() < 0) return status();
    if (c_->failing_joins > 0) {
      --c_->failing_joins;
      return -E_XCE_NOT_READY;
    }
    if (c_->refuse_join) return -E_XCE_PERM;
    if (!c_->joinable) return -E_XCE_NOT_READY;
    ++c_->joins;
    joined_generation_ = c_->generation;
    c_->fault = host.fault;
    *out = {c_->index, c_->outbox_applied};
    return 0;
  }
  int list_jobs(const std::string& host, JobId after, JobPage* out) override {
    absl::MutexLock lock(&c_->mutex);
    if (status() < 0) return status();
    for (auto it = c_->jobs.upper_bound(after); it != c_->jobs.end(); ++it) {
      const Job& job = it->second;
      if (!has_hosts(job.state) || job.allocs.empty() || job.allocs.front().host != host) continue;
      if (out->jobs.size() == c_->page) {
        out->next_after_id = out->jobs.back().id;
        break;
      }
      out->jobs.push_back(job);
    }
    return 0;
  }
  int job_info(JobId id, std::optional<Job>* out) override {
    absl::MutexLock lock(&c_->mutex);
    auto it = c_->jobs.find(id);
    if (it != c_->jobs.end()) *out = it->second;
    return status();
  }
  int notify(uint64_t, const std::vector<Report>& reports) override {
    uint64_t confirmed = 0;
    std::vector<Job> changed;
    {
      absl::MutexLock lock(&c_->mutex);
      if (status() < 0) return status();
      ++c_->notifies;
      if (c_->drop_notifies) return 0;
      for (const Report& report : reports) {
        if (report.outbox_seq != c_->outbox_applied + 1) continue;
        c_->outbox_applied = report.outbox_seq;
        c_->applied.push_back(report);
        if (apply(report)) changed.push_back(c_->jobs[report.job]);
      }
      if (c_->confirm_by_push) confirmed = c_->outbox_applied;
    }
    for (Job& job : changed) on_push_(std::move(job));
    if (confirmed != 0) on_push_(PushedConfirmation{confirmed});
    return 0;
  }
  int answer_log(const LogChunk& chunk) override {
    absl::MutexLock lock(&c_->mutex);
    c_->log_answers.push_back(chunk);
    return 0;
  }
  uint64_t generation() override {
    absl::MutexLock lock(&c_->mutex);
    return c_->generation;
  }
  std::string last_error() override { return "fake"; }
  std::string last_trail() override { return ""; }
  std::string current_master() override { return "fake:1"; }

  // The scheduler dispatches: the job is STARTING here, and its worker is told.
  void dispatch(JobId id, uint32_t attempt, std::vector<std::string> args,
                const std::string& work_dir, bool push = true, bool requeue = false,
                const std::function<void(Job*)>& change = nullptr) {
    Job job;
    {
      absl::MutexLock lock(&c_->mutex);
      job.id = id;
      job.attempt = attempt;
      job.state = JobState::kStarting;
      job.spec.work_dir = work_dir;
      job.spec.requeue = requeue;
      auto body = std::make_shared<JobBody>();
      body->args = std::move(args);
      job.spec.body = body;
      job.allocs = {{host_, 1, 0, {}}};
      if (change) change(&job);
      job.modify_index = ++c_->index;
      c_->jobs[id] = job;
    }
    if (push) on_push_(job);
  }
  void wish(JobId id, Desired desired, bool push = true) {
    Job job;
    {
      absl::MutexLock lock(&c_->mutex);
      c_->jobs[id].desired = desired;
      c_->jobs[id].modify_index = ++c_->index;
      job = c_->jobs[id];
    }
    if (push) on_push_(job);
  }
  void push(Pushed pushed) { on_push_(std::move(pushed)); }
  // A new primary: the connection is repaired in the course of some call.
  void reconnect(bool hook) {
    {
      absl::MutexLock lock(&c_->mutex);
      ++c_->generation;
    }
    if (hook) on_reconnect_();
  }

 private:
  int status() const { return stopped_ ? -ECANCELED : c_->reachable ? 0 : -E_XCE_NOT_READY; }
  bool apply(const Report& report) {
    auto it = c_->jobs.find(report.job);
    if (it == c_->jobs.end() || it->second.attempt != report.attempt) return false;
    Job& job = it->second;
    job.modify_index = ++c_->index;
    switch (report.kind) {
      case NotifyKind::kStart:
        job.stdout_file = report.stdout_file;
        job.stderr_file = report.stderr_file;
        job.state = JobState::kRunning;
        break;
      case NotifyKind::kResumed: job.state = JobState::kRunning; break;
      case NotifyKind::kStop: job.state = JobState::kSuspended; break;
      case NotifyKind::kFinish:
      case NotifyKind::kFail: job.state = report.outcome; break;
      case NotifyKind::kChkpt: break;
    }
    return true;
  }

  FakeCluster* const c_;
  const std::string host_;
  std::function<void(Pushed)> on_push_;
  std::function<void()> on_reconnect_;
  bool stopped_ = false;
  uint64_t joined_generation_ = 0;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_FAKE_LINK_H_
