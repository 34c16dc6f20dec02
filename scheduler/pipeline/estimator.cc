#include "scheduler/pipeline/estimator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace xce::sched {

Estimator::Estimator(ControllerPort* port, const Membership* membership, SharedView* shared,
                     const EstimatorOptions& options, Clock now_ms, LogFn log)
    : port_(port),
      membership_(membership),
      shared_(shared),
      options_(options),
      now_ms_(std::move(now_ms)),
      log_(std::move(log)) {}

void Estimator::stop() {
  std::lock_guard<std::mutex> lock(mutex_);
  stop_ = true;
  stopping_.notify_all();
}

bool Estimator::rest(int64_t ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  stopping_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stop_; });
  return !stop_;
}

void Estimator::run() {
  int64_t rest_ms = options_.every_ms;
  while (rest(rest_ms)) {
    rest_ms = options_.every_ms;
    const std::optional<uint64_t> epoch = membership_->deciding_epoch();
    if (!epoch) continue;
    const auto began = std::chrono::steady_clock::now();
    estimate(*epoch);
    const auto took_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                             std::chrono::steady_clock::now() - began)
                             .count();
    rest_ms = std::max<int64_t>(rest_ms, options_.rest * took_ms);
  }
}

void Estimator::estimate(uint64_t epoch) {
  const uint64_t generation = port_->generation();
  if (epoch != told_epoch_ || generation != told_generation_) told_.clear();
  told_epoch_ = epoch;
  told_generation_ = generation;
  const int64_t now_ms = now_ms_();
  Outlook outlook;
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    if (shared_->view.waiting() == 0) {
      told_.clear();  // the primary forgets jobs that do not wait
      return;
    }
    outlook = gather_outlook(shared_->view, now_ms, options_.limits);
  }
  const size_t waiting = outlook.ready.size() + outlook.blocked.size();
  const std::vector<StartEstimate> starts = estimate_starts(std::move(outlook), options_.limits);
  log_(LogLevel::kDebug, absl::StrCat("estimated the starts of ", starts.size(), " of ", waiting,
                                      " waiting jobs in ", now_ms_() - now_ms, " ms"));
  tell(epoch, starts, now_ms);
}

void Estimator::tell(uint64_t epoch, const std::vector<StartEstimate>& starts, int64_t now_ms) {
  std::vector<StartEstimate> items;
  std::unordered_map<JobId, int64_t> known;
  known.reserve(starts.size());
  for (const StartEstimate& start : starts) {
    auto it = told_.find(start.job);
    const bool fresh = it == told_.end();
    const auto slack_ms = std::max(
        options_.ignore_ms,
        static_cast<int64_t>(options_.ignore_share * static_cast<double>(start.start_ms - now_ms)));
    if (!fresh && std::abs(it->second - start.start_ms) <= slack_ms) {
      known[start.job] = it->second;
    } else {
      known[start.job] = start.start_ms;
      items.push_back(start);
    }
    if (!fresh) told_.erase(it);
  }
  for (const auto& [job, start_ms] : told_) items.push_back({job, 0});  // not known any more
  told_ = std::move(known);
  for (size_t at = 0; at < items.size(); at += options_.items) {
    const size_t end = std::min(at + options_.items, items.size());
    port_->estimates(epoch, {items.begin() + static_cast<std::ptrdiff_t>(at),
                             items.begin() + static_cast<std::ptrdiff_t>(end)});
  }
}

}  // namespace xce::sched
