#include "scheduler/pipeline/pipeline.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace xce::sched {
namespace {

// Puts one event into the view.
struct Apply {
  View* view;
  void operator()(const Job& job) const { view->put_job(job); }
  void operator()(const JobGone& gone) const { view->remove_job(gone.id, gone.revision); }
  void operator()(const Host& host) const { view->put_host(host); }
  void operator()(const HostGone& gone) const { view->remove_host(gone.name); }
  void operator()(const Queue& queue) const { view->put_queue(queue); }
  void operator()(const QueueGone& gone) const { view->remove_queue(gone.name); }
  void operator()(const Reservation& r) const { view->put_reservation(r); }
  void operator()(const ReservationGone& gone) const {
    view->remove_reservation(gone.name, gone.revision);
  }
  void operator()(const WakeUp&) const {}
};

}  // namespace

Pipeline::Pipeline(ControllerPort* port, const PipelineOptions& options, Publisher::Clock now_ms,
                   LogFn log)
    : options_(options),
      now_ms_(now_ms),
      log_(log),
      jbuf_(options.jbuf_capacity),
      decisions_(options.decisions_capacity),
      publisher_(
          port, &membership_, &shared_, &decisions_, options.publisher, now_ms,
          [this] { replan(); }, log),
      estimator_(port, &membership_, &shared_, options.estimator, now_ms, log) {
  shared_.view.set_fair_share(options_.fair_share_half_life_ms);
}

Pipeline::~Pipeline() { stop(); }

void Pipeline::run() {
  std::thread picker([this] { pick(); });
  std::thread allocator([this] { allocate(); });
  std::thread estimator([this] { estimator_.run(); });
  publisher_.run();
  stop();
  picker.join();
  allocator.join();
  estimator.join();
}

void Pipeline::stop() {
  publisher_.stop();
  estimator_.stop();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    inbox_filled_.notify_all();
  }
  jbuf_.close();
  decisions_.close();
}

std::string Pipeline::stats() const {
  const PublisherStats& s = publisher_.stats();
  return absl::StrCat(rounds_picked_.load(), " rounds, ", s.published.load(),
                      " decisions published (", s.dispatched.load(), " starts, ", s.reasons.load(),
                      " reasons), ", s.refused.load(), " starts refused, ", s.evicted.load(),
                      " evictions, ", s.retries.load(), " extended retries, ", s.joins.load(),
                      " joins");
}

// ---- what is pushed

void Pipeline::on_event(ViewEvent event) {
  std::lock_guard<std::mutex> lock(mutex_);
  inbox_.push_back(std::move(event));
  inbox_filled_.notify_one();
}

void Pipeline::on_gap() {
  membership_.want_state();
  decisions_.poke();
}

void Pipeline::on_scheduler(uint64_t epoch, const std::string& name) {
  const bool was_active = membership_.active();
  membership_.scheduler_is(epoch, name);
  if (was_active && !membership_.active()) {
    log_(LogLevel::kInfo,
         absl::StrCat("scheduler '", name, "' is active now, epoch ", epoch, ": standing by"));
  }
  decisions_.poke();
}

void Pipeline::replan() {
  std::lock_guard<std::mutex> lock(mutex_);
  dirty_ = true;
  inbox_filled_.notify_one();
}

// ---- stages

void Pipeline::apply(const std::vector<ViewEvent>& events) {
  bool unasked;
  {
    std::lock_guard<std::mutex> lock(shared_.mutex);
    for (const ViewEvent& event : events) std::visit(Apply{&shared_.view}, event);
    unasked = shared_.view.has_unasked();
  }
  if (unasked) decisions_.poke();
}

void Pipeline::pick() {
  while (true) {
    std::vector<ViewEvent> events;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const int wait_ms = reasons_due_ ? options_.reasons_every_ms : options_.tick_ms;
      inbox_filled_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                             [this] { return stop_ || dirty_ || !inbox_.empty(); });
      if (stop_) return;
      events.swap(inbox_);
      dirty_ = false;
    }
    if (!events.empty()) apply(events);
    if (!membership_.deciding_epoch()) {
      watch_the_active_one();
      continue;
    }
    if (!jbuf_.put(RoundRequest{++rounds_picked_})) return;
  }
}

// A standby has no other way to know that the active scheduler died: the controllers only know who
// joined last.
void Pipeline::watch_the_active_one() {
  if (!membership_.standing_by()) {
    overdue_job_ = 0;
    return;
  }
  JobId job;
  const int64_t now = now_ms_();
  {
    std::lock_guard<std::mutex> lock(shared_.mutex);
    job = first_startable(shared_.view, now);
  }
  if (job != overdue_job_) {
    overdue_job_ = job;
    overdue_since_ms_ = now;
  } else if (job != 0 && now - overdue_since_ms_ >= options_.takeover_ms) {
    log_(LogLevel::kWarn, absl::StrCat("job ", job, " could have started ", now - overdue_since_ms_,
                                       " ms ago: the active scheduler does not work, taking over"));
    overdue_job_ = 0;
    membership_.want_join();
    decisions_.poke();
  }
}

void Pipeline::allocate() {
  while (true) {
    const std::optional<RoundRequest> request =
        jbuf_.get(std::chrono::milliseconds(options_.tick_ms));
    if (!request) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stop_) return;
      continue;
    }
    const std::optional<uint64_t> epoch = membership_.deciding_epoch();
    if (!epoch) continue;
    Decision starts, evictions, reasons;
    starts.epoch = evictions.epoch = reasons.epoch = *epoch;
    {
      std::lock_guard<std::mutex> lock(shared_.mutex);
      decide(&starts, &evictions, &reasons);
    }
    if (!starts.dispatches.empty() && !decisions_.put(std::move(starts))) return;
    if (!evictions.evictions.empty() && !decisions_.put(std::move(evictions))) return;
    if (!reasons.reasons.empty() && !decisions_.put(std::move(reasons))) return;
  }
}

// Called with the view locked.
void Pipeline::decide(Decision* starts, Decision* evictions, Decision* reasons) {
  const int64_t now = now_ms_();
  RoundResult result = run_round(&shared_.view, now, options_.round);
  starts->dispatches = std::move(result.dispatches);
  evictions->evictions = std::move(result.evictions);
  reasons_due_ = shared_.view.waiting() > 0;
  if (result.more) return replan();
  if (!starts->dispatches.empty()) quiet_since_ms_ = now;
  // Reasons yield to starts: they go when all is quiet, and otherwise rarely.
  const bool quiet = starts->dispatches.empty() &&
                     now >= quiet_since_ms_ + options_.reasons_every_ms / 2 &&
                     decisions_.size() == 0;
  const int64_t since = now - last_reasons_ms_;
  if (since < options_.reasons_every_ms || (!quiet && since < 10 * options_.reasons_every_ms))
    return;
  reasons->reasons = collect_reasons(&shared_.view, now, options_.reasons, nullptr);
  last_reasons_ms_ = now;
}

}  // namespace xce::sched
