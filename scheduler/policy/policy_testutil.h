// Makes views for tests in a few words: `Story s; s.host("h1", 8); s.job(1).cpus(2); s.round();`
#ifndef XCE_SCHEDULER_POLICY_POLICY_TESTUTIL_H_
#define XCE_SCHEDULER_POLICY_POLICY_TESTUTIL_H_

#include <map>
#include <string>
#include <vector>

#include "scheduler/policy/reasons.h"
#include "scheduler/policy/round.h"
#include "scheduler/policy/view.h"

namespace xce::sched {

class Story {
 public:
  int64_t now_ms = 1'000'000;
  Index revision = 1;
  View view;
  std::map<JobId, Job> jobs;  // as the controller has them

  void host(const std::string& name, uint32_t cpus, uint64_t memory_mb = 100'000,
            std::vector<Gres> gres = {}) {
    Host host;
    host.attrs.name = name;
    host.attrs.cpus = cpus;
    host.attrs.memory_mb = memory_mb;
    host.attrs.gres = std::move(gres);
    host.modify_index = ++revision;
    view.put_host(host);
  }

  void host_state(const std::string& name, uint32_t cpus, HostState state) {
    Host host;
    host.attrs.name = name;
    host.attrs.cpus = cpus;
    host.state = state;
    host.drained = state == HostState::kDrained;
    host.modify_index = ++revision;
    view.put_host(host);
  }

  Queue& queue(const std::string& name) {
    Queue& queue = queues_[name];
    queue.name = name;
    return queue;
  }

  // A job to be filled in, then handed to tell().
  Job& job(JobId id, uint32_t cpus = 1) {
    Job& job = jobs[id];
    job.id = id;
    job.spec.cpus = cpus;
    job.spec.user = "ann";
    job.spec.queue = "default";
    job.submit_ms = now_ms;
    return job;
  }

  // The view hears of everything that the story changed.
  void tell_queues() {
    for (auto& [name, queue] : queues_) {
      queue.modify_index = ++revision;
      view.put_queue(queue);
    }
  }
  void tell() {
    tell_queues();
    for (auto& [id, job] : jobs) tell(id);
  }
  void tell(JobId id) {
    jobs[id].modify_index = ++revision;
    view.put_job(jobs[id]);
  }

  // The ids that start now, in order. The controller accepts them, and they run.
  std::vector<JobId> round(const RoundLimits& limits = {}) {
    std::vector<JobId> started;
    for (const Dispatch& dispatch : run_round(&view, now_ms, limits).dispatches) {
      started.push_back(dispatch.job);
      accept(dispatch);
    }
    return started;
  }
  void accept(const Dispatch& dispatch) {
    Job& job = jobs[dispatch.job];
    job.state = JobState::kRunning;
    job.attempt = dispatch.attempt;
    job.starts = 1;
    job.allocs = dispatch.allocs;
    job.start_ms = now_ms;
    tell(dispatch.job);
  }

  void end(JobId id, JobState state = JobState::kCompleted) {
    jobs[id].state = state;
    jobs[id].end_ms = now_ms;
    tell(id);
    jobs.erase(id);
  }

  std::string host_of(JobId id) { return jobs[id].allocs.empty() ? "" : jobs[id].allocs[0].host; }

  // What a pass over the reasons says now, merged with what was said before.
  std::string reason(JobId id) {
    now_ms += 60'000;
    for (const PendReason& item : collect_reasons(&view, now_ms, {}, nullptr))
      said_[item.job] = item.reason;
    return said_[id];
  }

 private:
  std::map<std::string, Queue> queues_;
  std::map<JobId, std::string> said_;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_POLICY_TESTUTIL_H_
