// See lifecycle.h. PURE.
#include "worker/lifecycle/lifecycle.h"

#include <algorithm>

namespace xce::worker {
namespace {

constexpr size_t kMaxTombstones = 65536;
constexpr uint32_t kSignalKill = 9;

std::string words(Key key) {
  return "job " + std::to_string(key.job) + " (attempt " + std::to_string(key.attempt) + ")";
}

Report report_of(Key key, NotifyKind kind, int64_t time_ms) {
  Report report;
  report.kind = kind;
  report.job = key.job;
  report.attempt = key.attempt;
  report.time_ms = time_ms;
  return report;
}

}  // namespace

std::vector<Action> Lifecycle::step(const Event& event, int64_t now_ms) {
  Actions out;
  std::visit([&](const auto& e) { on(e, now_ms, &out); }, event);
  return out;
}

const LocalJob* Lifecycle::find(Key key) const {
  auto it = jobs_.find(key);
  return it == jobs_.end() ? nullptr : &it->second;
}

uint32_t Lifecycle::newest_seen(JobId job) const {
  auto tombstone = tombstones_.find(job);
  uint32_t newest = tombstone == tombstones_.end() ? 0 : tombstone->second;
  for (auto it = jobs_.lower_bound(Key{job, 0}); it != jobs_.end() && it->first.job == job; ++it) {
    newest = std::max(newest, it->first.attempt);
  }
  return newest;
}

void Lifecycle::on(const Observed& event, int64_t now_ms, Actions* out) {
  const Job& job = event.job;
  disown_older(job, out);
  const Key key{job.id, job.attempt};
  auto it = jobs_.find(key);
  if (it != jobs_.end()) {
    observe_known(key, &it->second, job, out);
  } else {
    observe_unknown(job, now_ms, out);
  }
}

// What still runs here of earlier attempts has been given up by the controller.
void Lifecycle::disown_older(const Job& job, Actions* out) {
  for (auto it = jobs_.lower_bound(Key{job.id, 0});
       it != jobs_.end() && it->first < Key{job.id, job.attempt}; ++it) {
    orphan(it->first, &it->second, "a newer attempt " + std::to_string(job.attempt) + " exists",
           out);
  }
}

void Lifecycle::observe_known(Key key, LocalJob* local, const Job& job, Actions* out) {
  if (job.modify_index != 0 && job.modify_index < local->modify_index)
    return;  // overtaken by a newer record
  local->modify_index = job.modify_index;
  if (local->phase == Phase::kEnded) return;
  if (!has_hosts(job.state)) {
    orphan(key, local, std::string("the controller counts it as ") + name_of(job.state), out);
    return;
  }
  if (local->orphan) return;
  local->wanted = job.desired;
  local->wanted_signal = job.kill_signal;
  local->wanted_limit_s = job.spec.time_limit_s;
  align_limit(key, local, out);
  align(key, local, out);
}

void Lifecycle::observe_unknown(const Job& job, int64_t now_ms, Actions* out) {
  if (!has_hosts(job.state) || job.allocs.empty()) return;
  if (job.allocs.front().host != host_) return;  // a job of many hosts runs from its first one
  const Key key{job.id, job.attempt};
  if (newest_seen(job.id) >= job.attempt)
    return;  // an old record, or one that we have finished already

  LocalJob local;
  local.modify_index = job.modify_index;
  if (job.spec.step != nullptr) local.part_of = Key{job.spec.step->job, job.spec.step->attempt};
  if (job.state != JobState::kStarting) {
    Report report = report_of(key, NotifyKind::kFail, now_ms);
    report.outcome = JobState::kLost;
    report.message = "lost on host " + host_ +
                     ": its worker knows nothing of this attempt (was its data directory removed?)";
    out->push_back(
        Note{true, words(key) + " is said to run here, but is unknown: reported as lost"});
    end(key, &jobs_.emplace(key, local).first->second, report, out);
    return;
  }
  const bool too_late = local.part_of.job != 0 && has_ended(local.part_of);
  if (job.desired == Desired::kKill || too_late) {
    Report report = report_of(key, NotifyKind::kFail, now_ms);
    report.outcome = JobState::kKilled;
    report.message = too_late ? "its job ended before it started" : "killed before it started";
    end(key, &jobs_.emplace(key, local).first->second, report, out);
    return;
  }
  local.wanted = job.desired;
  local.wanted_limit_s = job.spec.time_limit_s;
  local.ordered_limit_s = job.spec.time_limit_s;
  jobs_.emplace(key, local);
  out->push_back(Launch{key, job});
}

void Lifecycle::on(const Disowned& event, int64_t, Actions* out) {
  auto it = jobs_.find(event.key);
  if (it != jobs_.end()) orphan(event.key, &it->second, event.why, out);
}

void Lifecycle::orphan(Key key, LocalJob* local, const std::string& why, Actions* out) {
  if (local->orphan || local->phase == Phase::kEnded) return;
  local->orphan = true;
  local->wanted = Desired::kKill;
  local->wanted_signal = 0;
  out->push_back(Note{true, words(key) + " is no longer this host's (" + why + "): killing it"});
  align(key, local, out);
}

// The steps of a job end with it, whether or not a controller is there to say so.
void Lifecycle::end_steps(Key job, Actions* out) {
  for (auto& [key, local] : jobs_) {
    if (!(local.part_of == job) || local.orphan || local.phase == Phase::kEnded) continue;
    local.orphan = true;
    local.wanted = Desired::kKill;
    local.wanted_signal = kSignalKill;
    out->push_back(Note{false, words(key) + " is killed: its " + words(job) + " has ended"});
    align(key, &local, out);
  }
}

bool Lifecycle::has_ended(Key key) const {
  const LocalJob* local = find(key);
  return local != nullptr ? local->phase == Phase::kEnded : newest_seen(key.job) >= key.attempt;
}

void Lifecycle::align(Key key, LocalJob* local, Actions* out) {
  if (local->phase != Phase::kRunning && local->phase != Phase::kSuspended)
    return;  // once it has started
  if (local->wanted == local->ordered &&
      (local->wanted != Desired::kKill || local->wanted_signal == local->ordered_signal)) {
    return;
  }
  // An order to end is final: a later "run" cannot take it back.
  const bool ending = local->ordered == Desired::kKill && local->ordered_signal == 0;
  if (ending) return;
  Order order;
  order.key = key;
  switch (local->wanted) {
    case Desired::kKill:
      order.control = Control::kKill;
      order.signal = local->wanted_signal;
      break;
    case Desired::kSuspend: order.control = Control::kSuspend; break;
    case Desired::kRun: order.control = Control::kResume; break;
  }
  // After a signal that was not meant to end the job, "run" and nothing stopped is no order.
  const bool nothing_to_resume =
      order.control == Control::kResume && local->ordered != Desired::kSuspend;
  local->ordered = local->wanted;
  local->ordered_signal = local->wanted_signal;
  if (!nothing_to_resume) out->push_back(order);
}

// A time limit may be changed while the job runs.
void Lifecycle::align_limit(Key key, LocalJob* local, Actions* out) {
  if (local->phase != Phase::kRunning && local->phase != Phase::kSuspended) return;
  if (local->orphan || local->modify_index == 0) return;  // nothing of it was observed yet
  if (local->ordered_limit_s == local->wanted_limit_s) return;
  local->ordered_limit_s = local->wanted_limit_s;
  Order order;
  order.key = key;
  order.control = Control::kLimit;
  order.time_limit_s = local->wanted_limit_s;
  out->push_back(order);
}

void Lifecycle::on(const Found& event, int64_t now_ms, Actions* out) {
  LocalJob local;
  local.phase = event.phase;
  local.start_reported = event.start_reported;
  local.stdout_file = event.stdout_file;
  local.stderr_file = event.stderr_file;
  local.part_of = event.part_of;
  if (event.phase == Phase::kSuspended) local.ordered = local.wanted = Desired::kSuspend;
  LocalJob* added = &jobs_.emplace(event.key, local).first->second;
  if (event.phase == Phase::kRunning || event.phase == Phase::kSuspended) {
    report_start(event.key, added, now_ms, out);
    const bool suspended = event.phase == Phase::kSuspended;
    if (suspended != event.suspend_reported) {
      Report report =
          report_of(event.key, suspended ? NotifyKind::kStop : NotifyKind::kResumed, now_ms);
      report.outcome = suspended ? JobState::kSuspended : JobState::kRunning;
      out->push_back(Send{report});
    }
  }
  if (event.part_of.job != 0 && has_ended(event.part_of)) end_steps(event.part_of, out);
}

void Lifecycle::report_start(Key key, LocalJob* local, int64_t time_ms, Actions* out) {
  if (local->start_reported) return;
  local->start_reported = true;
  Report report = report_of(key, NotifyKind::kStart, time_ms);
  report.outcome = JobState::kRunning;
  report.stdout_file = local->stdout_file;
  report.stderr_file = local->stderr_file;
  out->push_back(Send{report});
}

void Lifecycle::on(const Started& event, int64_t, Actions* out) {
  auto it = jobs_.find(event.key);
  if (it == jobs_.end() || it->second.phase != Phase::kLaunching) return;
  LocalJob* local = &it->second;
  local->phase = Phase::kRunning;
  local->stdout_file = event.stdout_file;
  local->stderr_file = event.stderr_file;
  report_start(event.key, local, event.time_ms, out);
  align_limit(event.key, local, out);
  align(event.key, local, out);
}

void Lifecycle::on(const Suspended& event, int64_t, Actions* out) {
  auto it = jobs_.find(event.key);
  if (it == jobs_.end() || it->second.phase != Phase::kRunning) return;
  it->second.phase = Phase::kSuspended;
  Report report = report_of(event.key, NotifyKind::kStop, event.time_ms);
  report.outcome = JobState::kSuspended;
  out->push_back(Send{report});
}

void Lifecycle::on(const Resumed& event, int64_t, Actions* out) {
  auto it = jobs_.find(event.key);
  if (it == jobs_.end() || it->second.phase != Phase::kSuspended) return;
  it->second.phase = Phase::kRunning;
  Report report = report_of(event.key, NotifyKind::kResumed, event.time_ms);
  report.outcome = JobState::kRunning;
  out->push_back(Send{report});
}

void Lifecycle::end(Key key, LocalJob* local, Report report, Actions* out) {
  local->phase = Phase::kEnded;
  report.job = key.job;
  report.attempt = key.attempt;
  report.stdout_file = local->stdout_file;
  report.stderr_file = local->stderr_file;
  out->push_back(Send{std::move(report)});
  end_steps(key, out);
}

void Lifecycle::on(const Exited& event, int64_t, Actions* out) {
  auto it = jobs_.find(event.key);
  if (it == jobs_.end() || it->second.phase == Phase::kEnded) return;
  // A shepherd that ended without having started anything could not start the job: that is a
  // failure, not an end.
  const bool ran = it->second.phase != Phase::kLaunching;
  Report report =
      report_of(event.key, ran ? NotifyKind::kFinish : NotifyKind::kFail, event.time_ms);
  report.outcome = event.outcome;
  report.exit_code = event.exit_code;
  report.exit_signal = event.exit_signal;
  report.usage = event.usage;
  report.message = event.message;
  end(event.key, &it->second, std::move(report), out);
}

void Lifecycle::on(const Vanished& event, int64_t, Actions* out) {
  auto it = jobs_.find(event.key);
  if (it == jobs_.end() || it->second.phase == Phase::kEnded) return;
  Report report = report_of(event.key, NotifyKind::kFail, event.time_ms);
  report.outcome = event.outcome;
  report.message = event.message;
  out->push_back(Note{true, words(event.key) + ": " + event.message});
  end(event.key, &it->second, std::move(report), out);
}

void Lifecycle::on(const GivenBack& event, int64_t, Actions* out) {
  auto it = jobs_.find(event.key);
  if (it == jobs_.end() || it->second.phase != Phase::kLaunching) return;
  Report report = report_of(event.key, NotifyKind::kFail, event.time_ms);
  report.outcome = JobState::kPending;
  report.message = event.message;
  out->push_back(Note{true, words(event.key) + " is given back: " + event.message});
  end(event.key, &it->second, std::move(report), out);
}

void Lifecycle::on(const NotLaunched& event, int64_t, Actions*) {
  auto it = jobs_.find(event.key);
  if (it != jobs_.end() && it->second.phase == Phase::kLaunching) jobs_.erase(it);
}

void Lifecycle::on(const FinalConfirmed& event, int64_t, Actions* out) {
  auto it = jobs_.find(event.key);
  if (it == jobs_.end() || it->second.phase != Phase::kEnded) return;
  forget(event.key);
  out->push_back(Remove{event.key});
}

void Lifecycle::on(const ControllersReset&, int64_t, Actions*) {
  tombstones_.clear();
  tombstone_order_.clear();
  for (auto& [key, local] : jobs_) local.modify_index = 0;
}

void Lifecycle::forget(Key key) {
  jobs_.erase(key);
  auto [it, added] = tombstones_.emplace(key.job, key.attempt);
  if (!added) {
    it->second = std::max(it->second, key.attempt);
    return;
  }
  tombstone_order_.push_back(key.job);
  if (tombstone_order_.size() > kMaxTombstones) {
    tombstones_.erase(tombstone_order_.front());
    tombstone_order_.pop_front();
  }
}

}  // namespace xce::worker
