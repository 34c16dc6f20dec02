#include "controller/state/state.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/state/check.h"
#include "controller/state/control.h"
#include "controller/state/listing.h"
#include "controller/state/queues.h"
#include "controller/state/reports.h"
#include "controller/state/reservations.h"
#include "controller/state/scheduler.h"
#include "controller/state/submit.h"
#include "controller/state/tables.h"
#include "xce/errnox.h"

namespace xce::state {
namespace {

Result join(Turn& turn, const Command& command, const Join& join) {
  const Identity& who = command.who;
  if (who.role != join.role) {
    return refuse(E_XCE_PERM, absl::StrCat("this connection said hello as ", name_of(who.role),
                                           " and cannot join as ", name_of(join.role)));
  }
  if (join.role == Role::kWorker) {
    if (who.name != join.host.name) {
      return refuse(E_XCE_PERM, absl::StrCat("this connection said hello as worker of '", who.name,
                                             "' and cannot join for '", join.host.name, "'"));
    }
    return join_host(turn, join);
  }
  if (join.role == Role::kScheduler) return join_scheduler(turn, command);
  Result result;
  result.revision = turn.index;
  return result;
}

Result tick(Turn& turn, const Command& command) {
  if (command.who.role != Role::kController)
    return refuse(E_XCE_PERM, "only the primary tells the time");
  turn.tables.sessions.expire(turn.now_ms);
  turn.tables.keys.expire(turn.now_ms);
  end_reservations(turn);
  return {};
}

struct Operate {
  Turn& turn;
  const Command& command;

  Result operator()(std::monostate) { return {}; }
  Result operator()(const Join& op) { return join(turn, command, op); }
  Result operator()(const JobSpec& op) { return submit(turn, command, op); }
  Result operator()(const JobControl& op) { return control_jobs(turn, command, op); }
  Result operator()(const QueueControl& op) { return control_queue(turn, command, op); }
  Result operator()(const HostControl& op) { return control_host(turn, command, op); }
  Result operator()(const Dispatches& op) { return dispatch(turn, command, op); }
  Result operator()(const PendReasons& op) { return set_pend_reasons(turn, command, op); }
  Result operator()(const Notify& op) { return notify(turn, command, op); }
  Result operator()(const UpdateResvals& op) { return update_resvals(turn, command, op); }
  Result operator()(const Tick&) { return tick(turn, command); }
  Result operator()(const HostLost& op) { return lose_host(turn, command, op); }
  Result operator()(const ReservationControl& op) { return control_reservation(turn, command, op); }
};

// The jobs that ended first leave for the history.
std::vector<Job> depart(Turn& turn) {
  JobTable& jobs = turn.tables.jobs;
  std::vector<Job> departed;
  if (jobs.ended().size() <= kMaxEndedJobs) return departed;
  const size_t too_many = jobs.ended().size() - kMaxEndedJobs;
  const size_t n = std::min(too_many, std::max(kMaxDepartures, too_many / 8));
  departed.reserve(n);
  while (departed.size() < n) {
    const JobId id = jobs.ended().begin()->second;
    departed.push_back(jobs.remove(id));
    turn.tables.keys.job_removed(departed.back().spec, turn.now_ms);
    turn.jobs.erase(id);
    turn.jobs_removed.insert(id);
  }
  return departed;
}

std::vector<Event> events_of(const Turn& turn) {
  const Tables& tables = turn.tables;
  std::vector<Event> events;
  for (const JobId id : turn.jobs_removed) events.push_back(JobRemoved{id});
  for (const std::string& name : turn.hosts_removed) {
    if (!tables.hosts.find(name)) events.push_back(HostRemoved{name});
  }
  for (const std::string& name : turn.queues_removed) {
    if (!tables.queues.count(name)) events.push_back(QueueRemoved{name});
  }
  for (const std::string& name : turn.reservations_removed) {
    if (!tables.reservations.count(name)) events.push_back(ReservationRemoved{name});
  }
  for (const std::string& name : turn.reservations) {
    const auto it = tables.reservations.find(name);
    if (it != tables.reservations.end()) events.push_back(it->second);
  }
  for (const std::string& name : turn.queues) {
    const auto it = tables.queues.find(name);
    if (it != tables.queues.end()) events.push_back(it->second);
  }
  for (const std::string& name : turn.hosts) {
    if (const Host* host = tables.hosts.find(name)) events.push_back(*host);
  }
  for (const JobId id : turn.jobs) {
    if (const Job* job = tables.jobs.find(id)) events.push_back(*job);
  }
  if (turn.scheduler_changed) {
    events.push_back(
        SchedulerChanged{tables.scheduler.epoch, tables.scheduler.client, tables.scheduler.name});
  }
  for (const auto& [host, seq] : turn.outboxes) events.push_back(OutboxApplied{host, seq});
  return events;
}

}  // namespace

State::State() : impl_(std::make_unique<Impl>()) {
  Queue queue = first_queue();
  impl_->tables.queues.emplace(queue.name, queue);
}

State::~State() = default;

Applied State::apply(Index index, const Entry& entry) {
  Tables& tables = impl_->tables;
  if (index <= tables.applied) std::abort();  // applying twice would do acknowledged work twice
  tables.applied = index;
  tables.now_ms = std::max(tables.now_ms, entry.time_ms);
  Turn turn{tables, index, tables.now_ms};
  Applied applied;
  applied.results.reserve(entry.commands.size());
  for (const Command& command : entry.commands) {
    if (std::optional<Result> known = tables.sessions.admit(command, index, turn.now_ms)) {
      applied.results.push_back(std::move(*known));
      continue;
    }
    applied.results.push_back(std::visit(Operate{turn, command}, command.op));
    tables.sessions.record(command, applied.results.back());
  }
  applied.departed = depart(turn);
  applied.events = events_of(turn);
  return applied;
}

const Job* State::job(JobId id) const { return std::as_const(impl_->tables).jobs.find(id); }

JobId State::next_job() const { return impl_->tables.jobs.next_id(); }

State::JobPage State::jobs(const JobFilter& filter, size_t max_rows) const {
  return list_jobs(impl_->tables.jobs, filter, max_rows);
}

const std::map<std::string, Host>& State::hosts() const { return impl_->tables.hosts.all(); }

const std::map<std::string, Queue>& State::queues() const { return impl_->tables.queues; }

const std::map<std::string, Reservation>& State::reservations() const {
  return impl_->tables.reservations;
}

std::vector<User> State::users() const {
  std::vector<User> users;
  for (const auto& [name, record] : impl_->tables.jobs.users()) users.push_back(record.user);
  return users;
}

State::Stats State::stats() const {
  const Tables& tables = impl_->tables;
  return {tables.jobs.waiting(), tables.jobs.holding(), tables.jobs.finished(),
          tables.sessions.size()};
}

const State::Scheduler& State::scheduler() const { return impl_->tables.scheduler; }
int64_t State::now_ms() const { return impl_->tables.now_ms; }
Index State::applied() const { return impl_->tables.applied; }
uint64_t State::outbox_applied(const std::string& host) const {
  return impl_->tables.hosts.outbox_applied(host);
}
std::vector<std::string> State::check_invariants() const { return find_faults(impl_->tables); }
std::string State::fingerprint() const { return fingerprint_of(impl_->tables); }

}  // namespace xce::state
