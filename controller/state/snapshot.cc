#include "controller/state/snapshot.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/state/tables.h"

namespace xce::state {

void State::save(StateSink& sink) const {
  const Tables& tables = impl_->tables;
  SavedTotals totals;
  totals.applied = tables.applied;
  totals.now_ms = tables.now_ms;
  totals.next_job = tables.jobs.next_id();
  totals.finished = tables.jobs.finished();
  totals.session_floor = tables.sessions.floor();
  totals.scheduler = tables.scheduler;
  sink.totals(totals);
  for (const auto& [name, queue] : tables.queues) sink.queue(queue);
  for (const auto& [name, reservation] : tables.reservations) sink.reservation(reservation);
  for (const auto& [name, record] : tables.jobs.users()) sink.user(record.user);
  for (const auto& [name, host] : tables.hosts.all())
    sink.host(host, tables.hosts.has_shrunk(name), tables.hosts.exclusive_holder(name));
  for (const auto& [name, seq] : tables.hosts.removed_outboxes()) sink.outbox(name, seq);
  for (const auto& [id, job] : tables.jobs.all())
    sink.job(job, tables.requeue_wanted.count(id) != 0);
  for (const auto& [client, session] : tables.sessions.all())
    sink.session({client, session.birth, session.used_ms, session.lowest, &session.results});
  for (const auto& [user, keys] : tables.keys.all())
    for (const auto& [key, made] : keys)
      sink.key({user, key, made.job, made.count, made.kept, made.body_hash});
  for (const auto& orphan : tables.keys.orphans()) sink.orphan(orphan);
}

void State::swap(State& other) { impl_.swap(other.impl_); }

StateBuilder::StateBuilder() : state_(std::make_unique<State>()) {
  state_->impl_->tables.queues.clear();
}
StateBuilder::~StateBuilder() = default;

void StateBuilder::fault(std::string what) {
  if (fault_.empty()) fault_ = std::move(what);
}

void StateBuilder::totals(const SavedTotals& totals) {
  Tables& tables = state_->impl_->tables;
  has_totals_ = true;
  tables.applied = totals.applied;
  tables.now_ms = totals.now_ms;
  tables.scheduler = totals.scheduler;
  tables.jobs.restore_counts(totals.next_job, totals.finished);
  tables.sessions.restore_floor(totals.session_floor);
}

void StateBuilder::queue(const Queue& queue) {
  Queue& kept = state_->impl_->tables.queues[queue.name];
  kept = queue;
  kept.pending = kept.running = 0;  // counted anew from the jobs
}

void StateBuilder::reservation(const Reservation& reservation) {
  state_->impl_->tables.reservations[reservation.name] = reservation;
}

void StateBuilder::user(const User& user) { state_->impl_->tables.jobs.restore_user(user); }

void StateBuilder::host(const Host& host, bool shrunk, JobId holder) {
  state_->impl_->tables.hosts.restore(host, shrunk, holder);
}

void StateBuilder::outbox(const std::string& host, uint64_t seq) {
  state_->impl_->tables.hosts.restore_outbox(host, seq);
}

void StateBuilder::job(const Job& job, bool requeue_wanted) { take_job(job, requeue_wanted); }

void StateBuilder::take_job(Job job, bool requeue_wanted) {
  Tables& tables = state_->impl_->tables;
  const JobId id = job.id;
  if (job.spec.body == nullptr) return fault(absl::StrCat("job ", id, " has no body"));
  if (requeue_wanted) tables.requeue_wanted.insert(id);
  if (has_hosts(job.state) && !job.spec.step)  // what a step has is its job's
    for (const Alloc& alloc : job.allocs) tables.hosts.restore_indices(alloc);
  if (!tables.jobs.restore(std::move(job))) fault(absl::StrCat("job ", id, " comes out of order"));
}

void StateBuilder::session(const SavedSession& session) {
  Sessions::Session kept;
  kept.birth = session.birth;
  kept.used_ms = session.used_ms;
  kept.lowest = session.lowest;
  if (session.results != nullptr) kept.results = *session.results;
  state_->impl_->tables.sessions.restore(session.client, std::move(kept));
}

void StateBuilder::key(const SavedKey& key) {
  state_->impl_->tables.keys.restore(key.user, key.key,
                                     {key.job, key.count, key.kept, key.body_hash});
}

void StateBuilder::orphan(const SubmitKeys::Orphan& orphan) {
  state_->impl_->tables.keys.restore_orphan(orphan);
}

absl::StatusOr<std::unique_ptr<State>> StateBuilder::finish() {
  if (!has_totals_) fault("the totals are missing");
  if (!fault_.empty()) return absl::DataLossError(fault_);
  return std::move(state_);
}

}  // namespace xce::state
