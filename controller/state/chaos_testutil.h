// Random commands from a seed, for the tests that compare replicas.
#ifndef XCE_CONTROLLER_STATE_CHAOS_TESTUTIL_H_
#define XCE_CONTROLLER_STATE_CHAOS_TESTUTIL_H_

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "controller/state/state_testutil.h"

namespace xce::state {

// Makes commands that are mostly sensible, since nonsense is refused early and tests little.
class Chaos {
 public:
  explicit Chaos(uint32_t seed) : random_(seed) {}

  uint64_t upto(uint64_t n) { return n ? random_() % n : 0; }
  bool one_in(uint64_t n) { return upto(n) == 0; }

  Command command(const State& state) {
    Command command;
    command.who = one_in(3) ? bob() : one_in(8) ? root() : alice();
    switch (upto(12)) {
      case 0:
      case 1:
      case 2: command.op = submission(state); break;
      case 3: command.op = control(state); break;
      case 4:
      case 5:
      case 6: schedule(state, command); break;
      case 7:
      case 8:
      case 9: report(state, command); break;
      case 10: host(state, command); break;
      default: queue_or_time(state, command);
    }
    return command;
  }

 private:
  JobId some_job(const State& state) {
    return 1 + upto(state.stats().pending + state.stats().running + state.stats().finished + 1);
  }
  std::string some_host() { return "n" + std::to_string(1 + upto(4)); }

  JobSpec submission(const State& state) {
    JobSpec spec = a_job();
    spec.cpus = 1 + upto(3);
    spec.memory_mb = upto(100);
    if (one_in(6)) spec.gres = {{"gpu", 1}};
    if (one_in(8)) spec.nodes = 2;
    if (one_in(10)) spec.exclusive = true;
    if (one_in(6)) spec.hold = true;
    if (one_in(5)) spec.array = {0, 3, 7};
    if (one_in(5)) spec.submit_key = "k" + std::to_string(upto(20));
    if (one_in(6)) spec.queue = "night";
    if (one_in(8)) spec.time_limit_s = upto(200);
    if (one_in(8)) spec.dependencies = {{DependencyKind::kAfterAny, some_job(state)}};
    spec.body_hash = upto(2);
    if (one_in(5)) {  // inside a job that runs, if there is one
      JobFilter filter;
      filter.states = 1u << static_cast<int>(JobState::kRunning);
      filter.after_id = one_in(2) ? some_job(state) : 0;
      const State::JobPage page = state.jobs(filter, 1);
      const JobId job = page.jobs.empty() ? some_job(state) : page.jobs[0]->id;
      std::vector<std::string> hosts;
      if (one_in(2)) hosts.push_back(one_in(2) ? "*" : some_host());
      spec.step = std::make_shared<const Step>(Step{job, std::move(hosts), 0, 0, 0});
    }
    return spec;
  }
  JobControl control(const State& state) {
    JobControl control;
    for (uint64_t n = 1 + upto(3); n > 0; --n) control.ids.push_back(some_job(state));
    control.action = static_cast<JobAction>(upto(7));
    control.signal = one_in(3) ? 9 : 0;
    control.whole_array = one_in(4);
    control.modify_mask = upto(16);
    control.modify.priority = static_cast<int32_t>(upto(10));
    control.modify.time_limit_s = upto(150);
    control.modify.queue = one_in(2) ? "night" : "default";
    return control;
  }
  Alloc share(const Job& job, std::string host) {
    return Alloc{std::move(host), job.spec.cpus, job.spec.memory_mb, job.spec.gres};
  }
  void schedule(const State& state, Command& command) {
    command.who = a_daemon(Role::kScheduler, "s1");
    command.client = {9, one_in(40) ? 2u : 1u};
    if (state.scheduler().epoch == 0 || one_in(30)) {
      Join join;
      join.role = Role::kScheduler;
      command.op = join;
      return;
    }
    JobFilter filter;
    filter.states = 1;
    filter.after_id = one_in(2) ? some_job(state) : 0;
    const State::JobPage page = state.jobs(filter, 5);
    if (one_in(4)) {
      PendReasons reasons;
      reasons.epoch = state.scheduler().epoch;
      for (const Job* job : page.jobs)
        reasons.items.push_back({job->id, "reason " + std::to_string(upto(3))});
      command.op = reasons;
      return;
    }
    Dispatches dispatches;
    dispatches.epoch = state.scheduler().epoch - one_in(20);
    for (const Job* job : page.jobs) {
      Dispatch item;
      item.job = job->id;
      item.attempt = job->attempt + 1 - one_in(20);
      for (uint32_t n = 0; n < job->spec.nodes; ++n)
        item.allocs.push_back(share(*job, some_host()));
      dispatches.items.push_back(item);
    }
    command.op = dispatches;
  }
  void report(const State& state, Command& command) {
    Notify notify;
    notify.host = some_host();
    command.who = a_daemon(Role::kWorker, notify.host);
    JobFilter filter;
    filter.host = notify.host;
    filter.states = 1u << 2 | 1u << 3 | 1u << 4;
    uint64_t seq = state.outbox_applied(notify.host) + 1 + one_in(20) - one_in(20);
    for (const Job* job : state.jobs(filter, 3).jobs) {
      Report report;
      report.outbox_seq = seq++;
      report.job = job->id;
      report.attempt = job->attempt - one_in(15);
      report.kind = job->state == JobState::kStarting && !one_in(4)
                        ? NotifyKind::kStart
                        : static_cast<NotifyKind>(upto(6));
      report.outcome = static_cast<JobState>(upto(10));
      report.usage.cpu_ms = upto(1000);
      report.time_ms = state.now_ms() - 500 + static_cast<int64_t>(upto(1000));
      notify.items.push_back(report);
    }
    command.op = notify;
  }
  void host(const State& state, Command& command) {
    const std::string name = some_host();
    if (state.hosts().count(name) == 0 || one_in(3)) {
      Join join;
      join.role = Role::kWorker;
      join.host.name = name;
      join.host.cpus = 2 + upto(6);
      join.host.memory_mb = 200 + upto(200);
      if (one_in(2)) join.host.gres = {{"gpu", 2}};
      if (one_in(4)) join.host.fault = "disk full";
      join.host.worker_id = one_in(9) ? 8 : 7;
      join.lease_ms = one_in(4) ? 0 : 1000 + upto(1000);
      command.who = a_daemon(Role::kWorker, name);
      command.op = join;
    } else if (one_in(3)) {
      command.who = controller();
      if (one_in(3))
        command.op = HostControl{HostAction::kGiveUp, name, ""};
      else
        command.op = HostLost{name};
    } else if (one_in(4)) {
      command.who = a_daemon(Role::kWorker, name);
      command.op = UpdateResvals{{{"gpu", static_cast<uint32_t>(upto(3))}}};
    } else {
      command.who = root();
      command.op =
          HostControl{static_cast<HostAction>(one_in(3) ? 2 + upto(2) : upto(2)), name, "work"};
    }
  }
  void reservation(const State& state, Command& command) {
    ReservationControl control;
    if (one_in(4)) control.action = ReservationAction::kRemove;
    control.reservation.name = one_in(2) ? "r" : "s";
    control.reservation.hosts = {some_host()};
    control.reservation.cpus = static_cast<uint32_t>(upto(3));
    control.reservation.start_ms = state.now_ms() + static_cast<int64_t>(upto(5000));
    control.reservation.end_ms = control.reservation.start_ms + static_cast<int64_t>(upto(20'000));
    control.reservation.users = {"alice"};
    command.op = control;
  }
  void queue_or_time(const State& state, Command& command) {
    if (one_in(3)) {
      command.who = controller();
      command.op = Tick{};
      return;
    }
    command.who = root();
    if (one_in(3)) return reservation(state, command);
    QueueControl control;
    control.action = static_cast<QueueAction>(upto(7));
    control.queue.name = one_in(3) ? "default" : "night";
    control.queue.max_time_s = one_in(2) ? 100 : 0;
    control.queue.is_default = one_in(6);
    command.op = control;
  }

  std::mt19937 random_;
};

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_CHAOS_TESTUTIL_H_
