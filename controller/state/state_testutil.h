// For the tests of the state machine: a small cluster that is told things and answers in one line,
// so that a test reads as a story.
#ifndef XCE_CONTROLLER_STATE_STATE_TESTUTIL_H_
#define XCE_CONTROLLER_STATE_STATE_TESTUTIL_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/state/state.h"
#include "gtest/gtest.h"
#include "xce/errnox.h"

namespace xce::state {

inline Identity a_user(const std::string& name, uint32_t uid) {
  Identity who;
  who.role = Role::kUser;
  who.user = name;
  who.uid = uid;
  who.gid = uid;
  return who;
}
inline Identity alice() { return a_user("alice", 1001); }
inline Identity bob() { return a_user("bob", 1002); }
inline Identity root() { return a_user("root", 0); }
inline Identity a_daemon(Role role, const std::string& name) {
  Identity who;
  who.role = role;
  who.name = name;
  return who;
}
inline Identity controller() { return a_daemon(Role::kController, "c1"); }

inline JobSpec a_job(std::vector<std::string> args = {"/bin/true"}) {
  JobSpec spec;
  auto body = std::make_shared<JobBody>();
  body->args = std::move(args);
  spec.body = body;
  return spec;
}

inline std::string words(int status) {
  switch (status) {
    case 0: return "ok";
    case E_XCE_OUTCOME_UNKNOWN: return "UNKNOWN";
    case E_XCE_DUP_JOB: return "DUP";
    case E_XCE_PERM: return "PERM";
    case E_XCE_INVALID: return "INVALID";
    case E_XCE_NOENT: return "NOENT";
    case E_XCE_STALE: return "STALE";
    case E_XCE_BUSY: return "BUSY";
    default: return std::to_string(status);
  }
}

struct Tell {
  std::string operator()(const Job& job) const {
    std::string line = "job " + std::to_string(job.id) + " " + name_of(job.state);
    if (job.desired == Desired::kKill && !is_ended(job.state)) line += " to-kill";
    if (job.desired == Desired::kSuspend && !is_ended(job.state)) line += " to-suspend";
    for (const Alloc& alloc : job.allocs) {
      if (has_hosts(job.state)) line += " @" + alloc.host;
    }
    return line;
  }
  std::string operator()(const JobRemoved& gone) const {
    return "job " + std::to_string(gone.id) + " gone";
  }
  std::string operator()(const Host& host) const {
    return "host " + host.attrs.name + " " + name_of(host.state) + " " +
           std::to_string(host.used_cpus) + "/" + std::to_string(host.attrs.cpus);
  }
  std::string operator()(const HostRemoved& gone) const { return "host " + gone.name + " gone"; }
  std::string operator()(const Queue& queue) const {
    return "queue " + queue.name + (queue.open ? "" : " closed") +
           (queue.active ? "" : " stopped") + (queue.is_default ? " default" : "");
  }
  std::string operator()(const QueueRemoved& gone) const { return "queue " + gone.name + " gone"; }
  std::string operator()(const SchedulerChanged& now) const {
    return "scheduler " + now.name + " " + std::to_string(now.epoch);
  }
  std::string operator()(const Reservation& reservation) const {
    return "reservation " + reservation.name;
  }
  std::string operator()(const ReservationRemoved& gone) const {
    return "reservation " + gone.name + " gone";
  }
  std::string operator()(const OutboxApplied& outbox) const {
    return "outbox " + outbox.host + " " + std::to_string(outbox.seq);
  }
};

inline std::string tell(const std::vector<Event>& events) {
  std::string line;
  for (const Event& event : events) line += (line.empty() ? "" : ", ") + std::visit(Tell{}, event);
  return line;
}

class Cluster {
 public:
  ~Cluster() { EXPECT_EQ(state.check_invariants(), std::vector<std::string>{}); }

  // Applies one entry; remembers results and events.
  const Applied& apply(std::vector<Command> commands) {
    Entry entry;
    entry.time_ms = time_ms;
    entry.commands = std::move(commands);
    applied = state.apply(++index, entry);
    EXPECT_EQ(applied.results.size(), entry.commands.size());
    return applied;
  }
  Result run(const Identity& who, Op op) {
    Command command;
    command.who = who;
    command.op = std::move(op);
    return apply({command}).results[0];
  }
  // The same, told in one line: "ok" or the refusal; then what changed.
  std::string says(const Identity& who, Op op) {
    const Result result = run(who, std::move(op));
    return words(result.status) + ": " + tell(applied.events);
  }

  std::string join_host(const std::string& name, uint32_t cpus, uint64_t memory_mb = 1000,
                        uint64_t instance = 1, std::vector<Gres> gres = {}, uint64_t worker_id = 0,
                        const std::string& fault = "") {
    Join join;
    join.role = Role::kWorker;
    join.lease_ms = lease_ms;
    join.host.worker_id = worker_id;
    join.host.fault = fault;
    join.host.name = name;
    join.host.cpus = cpus;
    join.host.memory_mb = memory_mb;
    join.host.gres = std::move(gres);
    join.instance = instance;
    return says(a_daemon(Role::kWorker, name), join);
  }
  std::string join_scheduler(const std::string& name, uint64_t client) {
    Command command;
    command.client = {0, client};
    command.who = a_daemon(Role::kScheduler, name);
    Join join;
    join.role = Role::kScheduler;
    command.op = join;
    const Result result = apply({command}).results[0];
    return words(result.status) + " epoch " + std::to_string(result.epoch) + ": " +
           tell(applied.events);
  }
  // Dispatches the job's next attempt to hosts, one CPU each unless said.
  Dispatch plan(JobId id, std::vector<std::string> hosts, uint32_t cpus = 1) const {
    Dispatch item;
    item.job = id;
    item.attempt = state.job(id) ? state.job(id)->attempt + 1 : 1;
    for (std::string& host : hosts) {
      Alloc alloc;
      alloc.host = std::move(host);
      alloc.cpus = cpus;
      item.allocs.push_back(std::move(alloc));
    }
    return item;
  }
  std::string dispatch(Dispatch item) {
    return dispatch_at(state.scheduler().epoch, std::move(item));
  }
  std::string dispatch_at(uint64_t epoch, Dispatch item) {
    const Result result =
        run(a_daemon(Role::kScheduler, "s"), Dispatches{epoch, {std::move(item)}});
    const int status = result.status ? result.status : result.item_status.at(0);
    return words(status) + ": " + tell(applied.events);
  }
  // The worker's next report about the job's newest attempt.
  Report report(const std::string& host, NotifyKind kind, JobId id) const {
    Report report;
    report.outbox_seq = state.outbox_applied(host) + 1;
    report.kind = kind;
    report.job = id;
    report.attempt = state.job(id) ? state.job(id)->attempt : 1;
    report.time_ms = time_ms;
    return report;
  }
  std::string notify(const std::string& host, std::vector<Report> reports, uint64_t instance = 1) {
    return says(a_daemon(Role::kWorker, host), Notify{host, instance, std::move(reports)});
  }
  std::string control(const Identity& who, JobAction action, std::vector<JobId> ids,
                      uint32_t signal = 0, bool whole_array = false) {
    JobControl control;
    control.ids = std::move(ids);
    control.action = action;
    control.signal = signal;
    control.whole_array = whole_array;
    return says(who, control);
  }
  // A cluster with a scheduler and a host n1 of 4 CPUs, and this job running on it.
  JobId running(JobSpec spec = a_job(), const Identity& who = alice()) {
    if (!state.scheduler().epoch) join_scheduler("s", 1);
    if (!state.hosts().count("n1")) join_host("n1", 4);
    const JobId id = run(who, std::move(spec)).job;
    dispatch(plan(id, {"n1"}));
    notify("n1", {report("n1", NotifyKind::kStart, id)});
    return id;
  }
  const Job& job(JobId id) const { return *state.job(id); }
  std::string message() const { return applied.results.at(0).message; }

  State state;
  Index index = 0;
  int64_t time_ms = 1000000;
  uint32_t lease_ms = 0;  // of the hosts that join
  Applied applied;
};

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_STATE_TESTUTIL_H_
