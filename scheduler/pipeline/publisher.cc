#include "scheduler/pipeline/publisher.h"

#include <xce/errnox.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace xce::sched {
namespace {

constexpr uint32_t kAliveStates = (1u << static_cast<int>(JobState::kCompleted)) - 1;
constexpr size_t kIdsPerQuery = 256;

// Whether trying the same again cannot help. Everything else is tried again: no decision is lost to
// an outage.
bool is_refusal(int rc) {
  switch (-rc) {
    case E_XCE_STALE:
    case E_XCE_INVALID:
    case E_XCE_PERM:
    case E_XCE_AUTH:
    case E_XCE_NOENT:
    case E_XCE_FORKED:
    case EINVAL:
    case EMSGSIZE: return true;
    default: return false;
  }
}

int doubled(int first_ms, int times, int most_ms) {
  return std::min<int64_t>(static_cast<int64_t>(first_ms) << std::min(times, 16), most_ms);
}

}  // namespace

Publisher::Publisher(ControllerPort* port, Membership* membership, SharedView* shared,
                     Fifo<Decision>* decisions, const PublisherOptions& options, Clock now_ms,
                     std::function<void()> replan, LogFn log)
    : port_(port),
      membership_(membership),
      shared_(shared),
      decisions_(decisions),
      options_(options),
      now_ms_(std::move(now_ms)),
      replan_(std::move(replan)),
      log_(std::move(log)) {}

void Publisher::stop() {
  std::lock_guard<std::mutex> lock(mutex_);
  stop_ = true;
  stopping_.notify_all();
}

void Publisher::pause(int ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  stopping_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopped(); });
}

void Publisher::run() {
  while (!stopped()) {
    if (!settle()) {
      pause(doubled(options_.first_delay_ms, settle_failures_++, options_.max_delay_ms));
      continue;
    }
    settle_failures_ = 0;
    std::optional<Decision> decision = decisions_->get(std::chrono::milliseconds(options_.idle_ms));
    if (stopped()) break;
    if (decision) {
      publish(*decision);
    } else {
      idle();
    }
    ask_for_dependencies();
  }
}

// ---- joining

bool Publisher::settle() {
  // A connection made by a fire-and-forget call runs no hook: only the generation tells (A2.4).
  if (port_->generation() != joined_generation_ && !membership_->needs_join())
    membership_->want_join();
  while (!stopped() && membership_->needs_join()) {
    if (!join()) return false;
  }
  while (!stopped() && membership_->needs_state()) {
    if (!take_state()) return false;
  }
  return true;
}

bool Publisher::join() {
  if (stale_in_row_ > 1)
    pause(doubled(options_.first_delay_ms, stale_in_row_, options_.max_delay_ms));
  const uint64_t token = membership_->begin();
  const uint64_t generation = port_->generation();
  JoinAnswer answer;
  const int rc = port_->join(&answer);
  if (rc < 0) {
    if (!stopped())
      log_(LogLevel::kWarn,
           absl::StrCat("cannot join the cluster, trying again: ", port_->last_error()));
    return false;
  }
  ++stats_.joins;
  joined_generation_ = port_->generation();
  const bool changed = membership_->joined(token, answer);
  // Reconnected meanwhile: whether that join was on the newest connection is not known, so join
  // once more.
  if (generation != 0 && joined_generation_ != generation) membership_->want_join();
  log_(LogLevel::kInfo,
       absl::StrCat("joined at revision ", answer.revision, " as the ",
                    membership_->active() ? "active" : "standby", " scheduler, epoch ",
                    answer.epoch, changed ? "" : " (as before)"));
  return true;
}

bool Publisher::take_state() {
  const uint64_t token = membership_->begin();
  const int64_t began_ms = now_ms_();
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->view.begin_retake();
  }
  std::vector<Host> hosts;
  std::vector<Queue> queues;
  std::vector<Reservation> reservations;
  int rc = port_->hosts(&hosts);
  if (rc >= 0) rc = port_->queues(&queues);
  if (rc >= 0) rc = port_->reservations(&reservations);
  if (rc >= 0) {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    for (const Host& host : hosts) shared_->view.put_host(host);
    for (const Queue& queue : queues) shared_->view.put_queue(queue);
    for (const Reservation& each : reservations) shared_->view.put_reservation(each);
  }
  JobFilter filter;
  filter.states = kAliveStates;
  filter.limit = options_.page_rows;
  size_t rows = 0;
  do {
    std::vector<Job> page;
    JobId next_after = 0;
    if (rc >= 0) rc = port_->jobs(filter, &page, &next_after);
    filter.after_id = next_after;
    if (rc < 0 || stopped()) {
      if (!stopped())
        log_(LogLevel::kWarn,
             absl::StrCat("cannot take the state, trying again: ", port_->last_error()));
      return false;
    }
    rows += page.size();
    std::lock_guard<std::mutex> lock(shared_->mutex);
    for (const Job& job : page) shared_->view.put_job(job);
  } while (filter.after_id != 0);
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->view.end_retake();
  }
  take_past();
  membership_->state_taken(token);
  ready_ = true;
  log_(LogLevel::kInfo, absl::StrCat("state taken: ", rows, " jobs, ", hosts.size(), " hosts, ",
                                     queues.size(), " queues in ", now_ms_() - began_ms, " ms"));
  replan_();
  return true;
}

// What ended before this scheduler came: for fair share, and for how long jobs usually run. The
// newest first; whoever cannot be asked now is not asked again, since this only improves guesses.
void Publisher::take_past() {
  if (past_taken_) return;
  past_taken_ = true;
  JobFilter filter;
  filter.descending = true;
  filter.limit = options_.page_rows;
  std::vector<Job> past;
  while (past.size() < options_.past_jobs && !stopped()) {
    std::vector<Job> page;
    JobId next_after = 0;
    if (port_->history(filter, &page, &next_after) < 0) break;
    past.insert(past.end(), page.begin(), page.end());
    filter.after_id = next_after;
    if (next_after == 0) break;
  }
  std::lock_guard<std::mutex> lock(shared_->mutex);
  // Averages move with the newest: these come last.
  for (auto job = past.rbegin(); job != past.rend(); ++job) shared_->view.put_past(*job);
}

void Publisher::ask_for_dependencies() {
  std::vector<JobId> ids;
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    ids = shared_->view.take_unasked();
  }
  for (size_t at = 0; at < ids.size() && !stopped(); at += kIdsPerQuery) {
    JobFilter filter;
    filter.ids.assign(ids.begin() + at, ids.begin() + std::min(at + kIdsPerQuery, ids.size()));
    std::vector<Job> rows, old_rows;
    JobId next_after = 0;
    int rc = port_->jobs(filter, &rows, &next_after);
    std::set<JobId> missing(filter.ids.begin(), filter.ids.end());
    for (const Job& job : rows) missing.erase(job.id);
    if (rc >= 0 && !missing.empty()) {
      filter.ids.assign(missing.begin(), missing.end());
      rc = port_->history(filter, &old_rows, &next_after);
    }
    for (const Job& job : old_rows) {
      if (missing.erase(job.id) > 0) rows.push_back(job);
    }
    if (rc >= 0) {
      std::lock_guard<std::mutex> lock(shared_->mutex);
      for (const Job& job : rows) shared_->view.put_job(job);
      for (const JobId id : missing) shared_->view.set_unknown(id);
    }
    for (const Job& job : rows) {
      if (rc >= 0 && job.array_id == job.id) rc = ask_for_array(job.id);
    }
    if (rc < 0) {
      std::lock_guard<std::mutex> lock(shared_->mutex);
      shared_->view.ask_again({ids.begin() + at, ids.end()});
      return;
    }
  }
  if (!ids.empty()) replan_();
}

// All tasks of an array into the view, those that ended long ago too.
int Publisher::ask_for_array(JobId array_id) {
  for (const bool old : {true, false}) {
    JobFilter filter;
    filter.array_id = array_id;
    filter.limit = options_.page_rows;
    do {
      std::vector<Job> page;
      JobId next_after = 0;
      const int rc = old ? port_->history(filter, &page, &next_after)
                         : port_->jobs(filter, &page, &next_after);
      if (rc < 0) return rc;
      if (stopped()) return -ECANCELED;
      filter.after_id = next_after;
      std::lock_guard<std::mutex> lock(shared_->mutex);
      for (const Job& job : page) shared_->view.put_job(job);
    } while (filter.after_id != 0);
  }
  std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->view.set_array_told(array_id);
  return 0;
}

void Publisher::idle() {
  port_->heartbeat();
  if (membership_->active() || membership_->needs_join()) return;
  const int64_t now = now_ms_();
  if (now < next_poll_ms_) return;
  next_poll_ms_ = now + options_.standby_poll_ms;
  std::string name;
  if (port_->active_scheduler(&name) >= 0 && name.empty()) {
    log_(LogLevel::kInfo, "no scheduler is active: joining to take over");
    membership_->want_join();
  }
}

// ---- publishing

void Publisher::publish(const Decision& decision) {
  int attempts = 0;
  while (!stopped()) {  // before each attempt, so that queued decisions do not each cost a call on
                        // the way out
    if (!membership_->may_publish(decision.epoch))
      return drop(decision, "decided before another scheduler took over");
    std::vector<int> item_status;
    const int rc = attempt(decision, &item_status);
    ++attempts;
    if (rc >= 0) return succeeded(decision, item_status, attempts);
    if (is_refusal(rc)) return refused(decision, rc);
    if (stopped()) break;
    ++stats_.retries;
    log_(LogLevel::kWarn,
         absl::StrCat("extended retry ", attempts, " of a decision of ", decision.dispatches.size(),
                      " starts, ", decision.evictions.size(), " evictions and ",
                      decision.reasons.size(), " reasons: ", port_->last_error()));
    pause(doubled(options_.first_delay_ms, attempts - 1, options_.max_delay_ms));
  }
  ++stats_.dropped;
}

int Publisher::attempt(const Decision& decision, std::vector<int>* item_status) {
  if (!decision.dispatches.empty())
    return port_->dispatch(decision.epoch, decision.dispatches, item_status);
  if (!decision.evictions.empty()) return port_->evict(decision.epoch, decision.evictions);
  return port_->pend_reasons(decision.epoch, decision.reasons);
}

void Publisher::succeeded(const Decision& decision, const std::vector<int>& item_status,
                          int attempts) {
  ++stats_.published;
  stats_.reasons += decision.reasons.size();
  stats_.evicted += decision.evictions.size();
  for (const Eviction& eviction : decision.evictions)
    log_(LogLevel::kInfo, absl::StrCat("job ", eviction.job, " ", eviction.reason));
  stale_in_row_ = 0;
  if (attempts > 1) {
    log_(LogLevel::kWarn,
         absl::StrCat("decision published by extended retry, at attempt ", attempts));
  }
  size_t refusals = 0;
  for (size_t i = 0; i < decision.dispatches.size(); ++i) {
    if (i >= item_status.size() || item_status[i] == 0) continue;
    ++refusals;
    roll_back(decision.dispatches[i]);
    log_(LogLevel::kInfo,
         absl::StrCat(
             "start of job ", decision.dispatches[i].job, " on ",
             decision.dispatches[i].allocs.empty() ? "" : decision.dispatches[i].allocs[0].host,
             " was refused with status ", item_status[i], ": planning anew"));
  }
  stats_.dispatched += decision.dispatches.size() - refusals;
  stats_.refused += refusals;
  if (refusals > 0) replan_();
}

void Publisher::refused(const Decision& decision, int rc) {
  stats_.refused += decision.dispatches.size();
  if (rc == -E_XCE_STALE) {
    ++stale_in_row_;
    log_(LogLevel::kInfo,
         absl::StrCat("epoch ", decision.epoch, " is over",
                      membership_->overtaken() ? ": standing by" : ": joining again"));
    if (!membership_->overtaken()) membership_->want_join();
  } else {
    log_(LogLevel::kError,
         absl::StrCat("the controller refuses a decision: ", port_->last_error()));
  }
  for (const Dispatch& dispatch : decision.dispatches) roll_back(dispatch);
  undo_evictions(decision);
  replan_();
}

void Publisher::drop(const Decision& decision, const char* why) {
  ++stats_.dropped;
  log_(LogLevel::kInfo, absl::StrCat("dropping ", decision.dispatches.size(), " starts and ",
                                     decision.reasons.size(), " reasons: ", why));
  undo_evictions(decision);
  std::lock_guard<std::mutex> lock(shared_->mutex);
  for (const Dispatch& dispatch : decision.dispatches)
    shared_->view.roll_back(dispatch.job, dispatch.attempt, 0);
}

void Publisher::undo_evictions(const Decision& decision) {
  std::lock_guard<std::mutex> lock(shared_->mutex);
  for (const Eviction& eviction : decision.evictions)
    shared_->view.undo_eviction(eviction.job, eviction.attempt);
}

void Publisher::roll_back(const Dispatch& dispatch) {
  std::lock_guard<std::mutex> lock(shared_->mutex);
  const JobRecord* job = shared_->view.find(dispatch.job);
  if (job == nullptr) return;
  const int delay_ms = doubled(options_.refused_ms, static_cast<int>(job->refusals), 10'000);
  shared_->view.roll_back(dispatch.job, dispatch.attempt, now_ms_() + delay_ms);
}

}  // namespace xce::sched
