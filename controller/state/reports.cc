#include "controller/state/reports.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "xce/errnox.h"

namespace xce::state {
namespace {

// When it happened: as the worker says, since a report may come late, but not before floor_ms nor
// in the future.
int64_t time_of(const Turn& turn, const Report& report, int64_t floor_ms) {
  if (report.time_ms <= 0) return turn.now_ms;
  return std::min(turn.now_ms, std::max(report.time_ms, floor_ms));
}

void started(Turn& turn, Job& job, const Report& report) {
  if (job.state != JobState::kStarting) return;
  turn.tables.jobs.set_state(job, JobState::kRunning);
  job.start_ms = time_of(turn, report, job.submit_ms);
  ++job.starts;
  job.reason = report.message;
  job.stdout_file = report.stdout_file;
  job.stderr_file = report.stderr_file;
  turn.touch(job);
}

void ended(Turn& turn, Job& job, const Report& report) {
  // The host could not start it, through no fault of the job's.
  const bool never_started = report.kind == NotifyKind::kFail &&
                             report.outcome == JobState::kPending &&
                             job.state == JobState::kStarting;
  const bool killed = job.desired == Desired::kKill;
  if (never_started && !killed && !job.spec.step) return give_back(turn, job, report.message);
  JobState outcome = !never_started ? report.outcome
                     : killed       ? JobState::kKilled
                                    : JobState::kFailed;
  const bool failed = report.kind == NotifyKind::kFail;
  if (!is_ended(outcome) || (failed && outcome == JobState::kCompleted)) {
    outcome = failed || report.exit_code != 0 || report.exit_signal != 0 ? JobState::kFailed
                                                                         : JobState::kCompleted;
  }
  job.exit_code = report.exit_code;
  job.exit_signal = report.exit_signal;
  job.usage = report.usage;
  if (!report.stdout_file.empty()) job.stdout_file = report.stdout_file;
  if (!report.stderr_file.empty()) job.stderr_file = report.stderr_file;
  turn.tables.jobs.add_cpu(job, report.usage.cpu_ms);
  const int64_t end_ms = time_of(turn, report, std::max(job.submit_ms, job.start_ms));
  if (outcome == JobState::kLost) return lose_job(turn, job, end_ms, report.message);
  end_job(turn, job, outcome, end_ms, report.message);
  if (turn.tables.requeue_wanted.erase(job.id)) wait_again(turn, job, "requeued");
}

void apply_report(Turn& turn, const std::string& host, const Report& report) {
  Job* job = turn.tables.jobs.find(report.job);
  if (!job || !has_hosts(job->state) || report.attempt != job->attempt ||
      job->allocs.front().host != host)
    return;
  switch (report.kind) {
    case NotifyKind::kStart: return started(turn, *job, report);
    case NotifyKind::kFinish:
    case NotifyKind::kFail: return ended(turn, *job, report);
    case NotifyKind::kStop:
    case NotifyKind::kResumed: {
      const JobState from =
          report.kind == NotifyKind::kStop ? JobState::kRunning : JobState::kSuspended;
      const JobState to =
          report.kind == NotifyKind::kStop ? JobState::kSuspended : JobState::kRunning;
      if (job->state != from) return;
      turn.tables.jobs.set_state(*job, to);
      job->reason = report.message;
      return turn.touch(*job);
    }
    case NotifyKind::kChkpt: job->usage = report.usage; return turn.touch(*job);
  }
}

}  // namespace

Result notify(Turn& turn, const Command& command, const Notify& notify) {
  if (command.who.role != Role::kWorker || command.who.name != notify.host) {
    return refuse(E_XCE_PERM,
                  absl::StrCat("only the worker of host '", notify.host, "' may report for it"));
  }
  Host* host = turn.tables.hosts.find(notify.host);
  if (!host)
    return refuse(E_XCE_NOENT,
                  absl::StrCat("host '", notify.host, "' has not joined: join first, then report"));
  if (notify.instance != 0 && notify.instance != host->instance) {
    return refuse(E_XCE_STALE, absl::StrCat("another start of the worker of host '", notify.host,
                                            "' has joined since: join again, or stop this one"));
  }
  hear_from(turn, *host);
  for (const Report& report : notify.items) {
    if (report.outbox_seq <= host->outbox_applied) continue;
    if (report.outbox_seq != host->outbox_applied + 1) break;
    host->outbox_applied = report.outbox_seq;
    apply_report(turn, notify.host, report);
  }
  turn.outboxes[notify.host] = host->outbox_applied;
  Result result;
  result.outbox_applied = host->outbox_applied;
  return result;
}

}  // namespace xce::state
