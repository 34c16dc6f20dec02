#include "controller/state/rebirth.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/state/snapshot.h"

namespace xce::state {
namespace {

class Midwife final : public StateSink {
 public:
  Midwife(const Rebirth& how, StateBuilder* to) : how_(how), to_(to) {}

  void totals(const SavedTotals& from) override {
    SavedTotals totals = from;
    now_ms_ = from.now_ms;
    totals.applied = how_.index;
    totals.next_job += kRebirthJobIds;
    totals.session_floor = how_.index;
    totals.scheduler.epoch += kRebirthEpochs;
    totals.scheduler.client = ClientId();
    to_->totals(totals);
  }
  void queue(const Queue& queue) override { to_->queue(queue); }
  void user(const User& user) override { to_->user(user); }
  void host(const Host& host, bool shrunk, JobId holder) override {
    to_->host(host, shrunk, holder);
  }
  void outbox(const std::string& host, uint64_t seq) override { to_->outbox(host, seq); }
  void job(const Job& from, bool) override {
    Job job = from;
    if (has_hosts(job.state)) {
      // One that was about to start may have started: no worker may take this for an order to.
      if (job.state == JobState::kStarting) {
        job.state = JobState::kRunning;
        if (job.start_ms == 0) job.start_ms = std::max(now_ms_, job.submit_ms);
        job.starts = std::max(job.starts, 1u);
      }
      job.spec.requeue = false;
      job.reason = absl::StrCat("restored from the backup of ", how_.when,
                                ": goes on if its host still runs it");
      job.modify_index = how_.index;
    } else {
      job.attempt += kRebirthAttempts;
      if (is_waiting(job.state)) {
        if (how_.hold_waiting && job.state == JobState::kPending) {
          job.state = JobState::kHeld;
          job.eligible_ms = 0;
          job.reason = absl::StrCat("restored from the backup of ", how_.when,
                                    ": it may have run since; release it if not");
        }
        job.modify_index = how_.index;
      }
    }
    to_->take_job(std::move(job), false);
  }
  void session(const SavedSession&) override {}
  void key(const SavedKey& key) override { to_->key(key); }
  void orphan(const SubmitKeys::Orphan& orphan) override { to_->orphan(orphan); }
  void reservation(const Reservation& reservation) override { to_->reservation(reservation); }

 private:
  const Rebirth& how_;
  StateBuilder* const to_;
  int64_t now_ms_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<State>> reborn(const State& old, const Rebirth& how) {
  StateBuilder builder;
  Midwife midwife(how, &builder);
  old.save(midwife);
  return builder.finish();
}

}  // namespace xce::state
