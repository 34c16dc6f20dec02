// See reporter.h.
#include "worker/agent/reporter.h"

#include <algorithm>

#include "absl/time/time.h"
#include "worker/agent/clock.h"

namespace xce::worker {
namespace {
constexpr int kIdleMs = 100;
}  // namespace

void Reporter::start() {
  thread_ = std::thread([this] { run(); });
}

void Reporter::stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Reporter::wake() {
  absl::MutexLock lock(&mutex_);
  woken_ = true;
}

void Reporter::rejoined() {
  absl::MutexLock lock(&mutex_);
  rejoined_ = true;
}

void Reporter::wait() {
  absl::MutexLock lock(&mutex_);
  auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return woken_ || rejoined_ || stopping_;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&ready), absl::Milliseconds(kIdleMs));
  woken_ = false;
}

void Reporter::run() {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      if (rejoined_) sent_ = 0;
      rejoined_ = false;
    }
    if (!send_some()) wait();
  }
}

bool Reporter::send_some() {
  const uint64_t joined = connector_->joined_generation();
  if (joined == 0) return false;
  if (joined != link_->generation()) {  // a fire-and-forget call reconnected: the new primary wants
                                        // a join first
    connector_->kick();
    return false;
  }
  const uint64_t confirmed = outbox_->confirmed();
  const int64_t now = monotonic_ms();
  if (confirmed != seen_confirmed_) {
    seen_confirmed_ = confirmed;
    progress_ms_ = now;
  }
  if (sent_ > confirmed && now - progress_ms_ > options_.resend_ms) sent_ = 0;
  const std::vector<Report> reports =
      outbox_->pending(std::max(sent_, confirmed), options_.reports_a_message);
  if (reports.empty()) return false;
  if (link_->notify(options_.instance, reports) < 0) return false;
  sent_ = reports.back().outbox_seq;
  progress_ms_ = now;
  return true;
}

}  // namespace xce::worker
