#include "controller/state/tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/state/steps.h"

namespace xce::state {

Result refuse(int status, std::string message) {
  Result result;
  result.status = status;
  result.message = std::move(message);
  return result;
}

bool is_privileged(const Identity& who) {
  switch (who.role) {
    case Role::kUser: return who.uid == 0 && who.user == "root";
    case Role::kScheduler:
    case Role::kApiserver:
    case Role::kController: return true;
    default: return false;
  }
}

std::string words_for(const Identity& who) {
  if (who.role == Role::kScheduler) return "the scheduler";
  if (who.role == Role::kController) return "the controller";
  return who.user.empty() ? "an administrator" : who.user;
}

void place(Turn& turn, Job& job, std::vector<Alloc> allocs) {
  JobTable& jobs = turn.tables.jobs;
  for (Alloc& alloc : allocs) turn.tables.hosts.choose_indices(&alloc);
  jobs.set_allocs(job, std::move(allocs));
  jobs.set_state(job, JobState::kStarting);
  ++job.attempt;
  job.desired = Desired::kRun;
  job.kill_signal = 0;
  job.reason.clear();
  for (const Alloc& alloc : job.allocs) {
    turn.tables.hosts.allocate(alloc, job.id, job.spec.exclusive);
    turn.touch(*turn.tables.hosts.find(alloc.host));
  }
  turn.touch(job);
}

void release_hosts(Turn& turn, Job& job) {
  if (job.spec.step) return;  // what it used is its job's
  for (const Alloc& alloc : job.allocs) {
    turn.tables.hosts.release(alloc, job.id);
    if (Host* host = turn.tables.hosts.find(alloc.host)) turn.touch(*host);
  }
}

void end_job(Turn& turn, Job& job, JobState outcome, int64_t end_ms, std::string reason) {
  if (has_hosts(job.state)) release_hosts(turn, job);
  turn.tables.jobs.set_state(job, outcome);
  turn.touch(job);
  turn.tables.jobs.set_end(job, end_ms);
  job.reason = std::move(reason);
  if (job.spec.step)
    step_ended(turn, job);
  else
    kill_steps(turn, job);
}

void lose_job(Turn& turn, Job& job, int64_t end_ms, const std::string& reason) {
  const bool wanted = turn.tables.requeue_wanted.erase(job.id) != 0;  // by a person
  const bool killed = job.desired == Desired::kKill && !wanted;
  const bool again = !killed && (wanted || job.spec.requeue) && !job.spec.step;
  const bool too_often = again && !wanted && job.starts >= kMaxLostStarts;
  end_job(turn, job, killed ? JobState::kKilled : JobState::kLost, end_ms,
          too_often ? absl::StrCat(reason, "; not requeued: it was started ", job.starts,
                                   " times already")
                    : reason);
  if (again && !too_often) wait_again(turn, job, absl::StrCat("requeued: ", reason));
}

void give_back(Turn& turn, Job& job, std::string reason) {
  const int64_t eligible_ms = job.eligible_ms;
  turn.tables.requeue_wanted.erase(job.id);
  release_hosts(turn, job);
  wait_again(turn, job, std::move(reason));
  job.eligible_ms = eligible_ms;  // it keeps its place
}

void wait_again(Turn& turn, Job& job, std::string reason) {
  JobTable& jobs = turn.tables.jobs;
  const bool steps = !jobs.steps_of(job.id).empty();
  jobs.set_state(job, steps ? JobState::kHeld : JobState::kPending);
  jobs.set_end(job, 0);
  jobs.set_allocs(job, {});
  job.desired = Desired::kRun;
  job.kill_signal = 0;
  job.reason = steps ? kWaitsForSteps : std::move(reason);
  job.eligible_ms = steps ? 0 : turn.now_ms;
  job.start_ms = 0;
  job.exit_code = 0;
  job.exit_signal = 0;
  job.usage = Usage{};
  job.stdout_file.clear();
  job.stderr_file.clear();
  turn.touch(job);
}

}  // namespace xce::state
