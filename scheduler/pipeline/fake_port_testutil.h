// A recording fake of the controllers: answers as told, remembers what was asked, and applies
// starts to its own jobs.
#ifndef XCE_SCHEDULER_PIPELINE_FAKE_PORT_TESTUTIL_H_
#define XCE_SCHEDULER_PIPELINE_FAKE_PORT_TESTUTIL_H_

#include <xce/errnox.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "scheduler/pipeline/controller_port.h"

namespace xce::sched {

class FakePort : public ControllerPort {
 public:
  // ---- the test's side
  void add_host(const std::string& name, uint32_t cpus) {
    Lock lock(mutex_);
    Host& host = hosts_[name];
    host.attrs.name = name;
    host.attrs.cpus = cpus;
    host.attrs.memory_mb = 1000;
    host.modify_index = ++revision_;
  }
  // A waiting job, pushed to the sink when there is one.
  void submit(JobId id, uint32_t cpus = 1, std::vector<Dependency> dependencies = {}) {
    Job job;
    job.id = id;
    job.spec.cpus = cpus;
    job.spec.user = "ann";
    job.spec.queue = "default";
    job.spec.dependencies = std::move(dependencies);
    change(job);
  }
  void end(JobId id, JobState state = JobState::kCompleted) {
    Job job = get(id);
    job.state = state;
    change(job);
  }
  void change(Job job) {
    {
      Lock lock(mutex_);
      job.modify_index = ++revision_;
      jobs_[job.id] = job;
    }
    if (sink != nullptr) sink->on_event(job);
  }
  void put_silently(Job job) {
    Lock lock(mutex_);
    job.modify_index = ++revision_;
    jobs_[job.id] = job;
  }
  void put_history(const Job& job) {
    Lock lock(mutex_);
    old_.push_back(job);
  }
  Job get(JobId id) {
    Lock lock(mutex_);
    return jobs_[id];
  }
  // The results of the next publishes (dispatch and pend_reasons), then success.
  void fail_next(std::vector<int> results) {
    Lock lock(mutex_);
    results_.insert(results_.end(), results.begin(), results.end());
  }
  // The next dispatches are done and then answered so, as when a controller dies before it answers.
  void fail_after(std::vector<int> results) {
    Lock lock(mutex_);
    after_.insert(after_.end(), results.begin(), results.end());
  }
  std::map<JobId, Job> all_jobs() {
    Lock lock(mutex_);
    return jobs_;
  }
  void always_fail(int result) {
    Lock lock(mutex_);
    always_ = result;
    changed_.notify_all();
  }
  // Item status for the next dispatch of this job.
  void refuse_next(JobId id, int status) {
    Lock lock(mutex_);
    refuse_[id] = status;
  }
  // So many publishes get through a closed gate.
  void let_pass(int n) {
    Lock lock(mutex_);
    passes_ += n;
    changed_.notify_all();
  }
  // Publishes wait until opened.
  void set_gate(bool open) {
    Lock lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void fail_joins(int n) {
    Lock lock(mutex_);
    join_failures_ = n;
  }
  void set_generation(uint64_t generation) { generation_ = generation; }

  struct Call {
    uint64_t epoch = 0;
    std::vector<JobId> jobs;
    int result = 0;
  };
  std::vector<Call> calls() {
    Lock lock(mutex_);
    return calls_;
  }
  std::vector<JobId> dispatched() {  // that were accepted, in order
    Lock lock(mutex_);
    return dispatched_;
  }
  std::map<JobId, std::string> reasons() {
    Lock lock(mutex_);
    return reasons_;
  }
  std::map<JobId, int64_t> estimated() {
    Lock lock(mutex_);
    return estimates_;
  }
  int estimate_messages() {
    Lock lock(mutex_);
    return estimate_messages_;
  }
  void add_queue(Queue queue) {
    Lock lock(mutex_);
    queue.modify_index = ++revision_;
    queues_.push_back(queue);
  }
  void add_reservation(Reservation reservation) {
    Lock lock(mutex_);
    reservation.modify_index = ++revision_;
    reservations_.push_back(reservation);
  }
  int joins() {
    Lock lock(mutex_);
    return joins_;
  }
  int states_taken() {
    Lock lock(mutex_);
    return states_taken_;
  }
  int waiting_at_gate() {
    Lock lock(mutex_);
    return at_gate_;
  }

  PushSink* sink = nullptr;
  JoinAnswer answer{1, 7, true};
  std::string active = "me";

  // ---- the scheduler's side
  int join(JoinAnswer* out) override {
    Lock lock(mutex_);
    ++joins_;
    if (join_failures_ > 0) {
      --join_failures_;
      return -E_XCE_NOT_READY;
    }
    *out = answer;
    return 0;
  }
  int dispatch(uint64_t epoch, const std::vector<Dispatch>& items,
               std::vector<int>* item_status) override {
    Call call;
    call.epoch = epoch;
    for (const Dispatch& item : items) call.jobs.push_back(item.job);
    int result = next(call);
    if (result < 0) return result;
    item_status->assign(items.size(), 0);
    for (size_t i = 0; i < items.size(); ++i) {
      Job job;
      {
        Lock lock(mutex_);
        auto it = refuse_.find(items[i].job);
        if (it != refuse_.end()) {
          (*item_status)[i] = it->second;
          refuse_.erase(it);
          continue;
        }
        job = jobs_[items[i].job];
        if (items[i].attempt <= job.attempt || job.state != JobState::kPending) {
          const bool again = items[i].attempt == job.attempt && items[i].allocs == job.allocs;
          (*item_status)[i] = again ? 0 : E_XCE_STALE;
          continue;
        }
        dispatched_.push_back(items[i].job);
      }
      job.state = JobState::kStarting;
      job.attempt = items[i].attempt;
      job.allocs = items[i].allocs;
      change(job);
    }
    Lock lock(mutex_);
    if (after_.empty()) return 0;
    result = after_.front();
    after_.pop_front();
    return result;
  }
  int evict(uint64_t epoch, const std::vector<Eviction>& items) override {
    Call call;
    call.epoch = epoch;
    for (const Eviction& item : items) call.jobs.push_back(item.job);
    const int result = next(call);
    if (result < 0) return result;
    for (const Eviction& item : items) {  // stopped at once
      Job job = get(item.job);
      job.state = JobState::kPending;
      job.allocs.clear();
      change(job);
    }
    return 0;
  }
  void estimates(uint64_t, const std::vector<StartEstimate>& items) override {
    Lock lock(mutex_);
    ++estimate_messages_;
    for (const StartEstimate& item : items) estimates_[item.job] = item.start_ms;
  }
  int pend_reasons(uint64_t epoch, const std::vector<PendReason>& items) override {
    Call call;
    call.epoch = epoch;
    const int result = next(call);
    if (result < 0) return result;
    Lock lock(mutex_);
    std::vector<Job> ended;
    for (const PendReason& item : items) {
      reasons_[item.job] = item.reason;
      if (!item.hopeless) continue;
      ended.push_back(jobs_[item.job]);
      ended.back().state = JobState::kKilled;
    }
    lock.unlock();
    for (const Job& job : ended) change(job);
    return 0;
  }
  int jobs(const JobFilter& filter, std::vector<Job>* rows, JobId* next_after) override {
    Lock lock(mutex_);
    *next_after = 0;
    if (filter.ids.empty() && filter.after_id == 0 && filter.array_id == 0) ++states_taken_;
    for (const auto& [id, job] : jobs_) {
      if (filter.array_id != 0 && job.array_id != filter.array_id) continue;
      if (id <= filter.after_id ||
          (filter.states != 0 && (filter.states >> static_cast<int>(job.state) & 1) == 0))
        continue;
      if (!filter.ids.empty() &&
          std::find(filter.ids.begin(), filter.ids.end(), id) == filter.ids.end())
        continue;
      if (filter.limit != 0 && rows->size() == filter.limit) {
        *next_after = rows->back().id;
        break;
      }
      rows->push_back(job);
    }
    return 0;
  }
  int history(const JobFilter& filter, std::vector<Job>* rows, JobId* next_after) override {
    Lock lock(mutex_);
    *next_after = 0;
    for (const Job& job : old_) {
      const bool asked = std::count(filter.ids.begin(), filter.ids.end(), job.id) > 0;
      const bool all = filter.ids.empty() && filter.array_id == 0;
      if (asked || all || (filter.array_id != 0 && filter.array_id == job.array_id))
        rows->push_back(job);
    }
    return 0;
  }
  int hosts(std::vector<Host>* out) override {
    Lock lock(mutex_);
    for (const auto& [name, host] : hosts_) out->push_back(host);
    return 0;
  }
  int reservations(std::vector<Reservation>* out) override {
    Lock lock(mutex_);
    *out = reservations_;
    return 0;
  }
  int queues(std::vector<Queue>* out) override {
    Lock lock(mutex_);
    *out = queues_;
    return 0;
  }
  int active_scheduler(std::string* name) override {
    Lock lock(mutex_);
    *name = active;
    return 0;
  }
  void heartbeat() override {}
  uint64_t generation() override { return generation_; }
  std::string last_error() override { return "as the test wishes"; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  int next(Call call) {
    Lock lock(mutex_);
    ++at_gate_;
    changed_.wait(lock, [this] { return open_ || always_ != 0 || passes_ > 0; });
    --at_gate_;
    if (!open_ && passes_ > 0)
      --passes_;
    else
      call.result = always_;
    if (call.result == 0 && !results_.empty()) {
      call.result = results_.front();
      results_.pop_front();
    }
    calls_.push_back(call);
    return call.result;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Host> hosts_;
  std::map<JobId, Job> jobs_;
  std::vector<Job> old_;
  std::map<JobId, int> refuse_;
  std::map<JobId, std::string> reasons_;
  std::map<JobId, int64_t> estimates_;
  std::vector<Queue> queues_;
  std::vector<Reservation> reservations_;
  std::deque<int> results_, after_;
  std::vector<Call> calls_;
  std::vector<JobId> dispatched_;
  Index revision_ = 1;
  std::atomic<uint64_t> generation_{1};
  int always_ = 0, joins_ = 0, join_failures_ = 0, states_taken_ = 0, at_gate_ = 0, passes_ = 0;
  int estimate_messages_ = 0;
  bool open_ = true;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_PIPELINE_FAKE_PORT_TESTUTIL_H_
