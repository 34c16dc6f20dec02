#include "controller/state/control.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "controller/state/queues.h"
#include "controller/state/steps.h"
#include "xce/errnox.h"

namespace xce::state {
namespace {

enum : uint32_t { kPriority = 1, kTimeLimit = 2, kName = 4, kQueue = 8 };
constexpr size_t kMaxRefusalsTold = 3;

// What became of one job: changed, needed no change, or refused.
struct Verdict {
  bool changed = false;
  int status = 0;
  std::string message;
};
Verdict changed() { return {true, 0, ""}; }
Verdict unchanged(std::string message = "") { return {false, 0, std::move(message)}; }

std::string label(const Job& job) {
  return job.array_id ? absl::StrCat("job ", job.array_id, "[", job.array_index, "]")
                      : absl::StrCat("job ", job.id);
}

Verdict refused(const Job& job, const std::string& why) {
  return {false, E_XCE_INVALID, absl::StrCat(label(job), " is ", name_of(job.state), why)};
}

struct Wish {
  Turn& turn;
  const Command& command;
  const JobControl& control;
};

bool all_hosts_unreachable(const Turn& turn, const Job& job) {
  return std::all_of(job.allocs.begin(), job.allocs.end(), [&](const Alloc& alloc) {
    const Host* host = turn.tables.hosts.find(alloc.host);
    return host == nullptr || host->state >= HostState::kUnreachable;
  });
}

Verdict kill(const Wish& wish, Job& job) {
  if (is_ended(job.state)) {
    return unchanged(absl::StrCat(label(job), " has ended already (", name_of(job.state), ")"));
  }
  const bool dropped = wish.turn.tables.requeue_wanted.erase(job.id) != 0;
  if (is_waiting(job.state)) {
    end_job(wish.turn, job, JobState::kKilled, wish.turn.now_ms,
            absl::StrCat("killed by ", words_for(wish.command.who), " before it started"));
    return changed();
  }
  const uint32_t signal = wish.control.signal;
  // Nobody else can end a job whose host is gone for good. Should the host come back, its worker
  // finds that the job has ended and kills what still runs.
  if (signal == 0 && all_hosts_unreachable(wish.turn, job)) {
    const std::string host = job.allocs.front().host;
    job.desired = Desired::kKill;
    end_job(wish.turn, job, JobState::kKilled, wish.turn.now_ms,
            absl::StrCat("killed by ", words_for(wish.command.who), " while its host ", host,
                         " was unreachable; it may run there until the host comes back"));
    return changed();
  }
  if (job.desired == Desired::kKill && job.kill_signal == signal && !dropped) return unchanged();
  job.desired = Desired::kKill;
  job.kill_signal = signal;
  job.reason = absl::StrCat("being killed by ", words_for(wish.command.who));
  wish.turn.touch(job);
  return changed();
}

Verdict suspend(const Wish& wish, Job& job) {
  if (is_waiting(job.state)) return refused(job, ": it has not started; hold it instead");
  if (is_ended(job.state)) return refused(job, ": it has ended");
  if (job.desired == Desired::kKill) return refused(job, " and is being killed");
  if (job.desired == Desired::kSuspend) return unchanged();
  job.desired = Desired::kSuspend;
  job.reason = absl::StrCat("suspended by ", words_for(wish.command.who));
  wish.turn.touch(job);
  return changed();
}

Verdict resume(const Wish& wish, Job& job) {
  if (is_waiting(job.state)) return refused(job, ": it has not started; release it if it is held");
  if (is_ended(job.state)) return refused(job, ": it has ended; requeue it to run it again");
  if (job.desired == Desired::kKill) return refused(job, " and is being killed");
  if (job.desired == Desired::kRun && job.state != JobState::kSuspended) return unchanged();
  job.desired = Desired::kRun;
  job.reason.clear();
  wish.turn.touch(job);
  return changed();
}

Verdict hold(const Wish& wish, Job& job) {
  if (job.state == JobState::kHeld) return unchanged();
  if (is_ended(job.state)) return refused(job, ": it has ended");
  if (!is_waiting(job.state)) return refused(job, ": it has started; suspend it instead");
  wish.turn.tables.jobs.set_state(job, JobState::kHeld);
  job.reason = absl::StrCat("held by ", words_for(wish.command.who));
  job.eligible_ms = 0;
  wish.turn.touch(job);
  return changed();
}

Verdict release(const Wish& wish, Job& job) {
  if (job.state == JobState::kPending) return unchanged();
  if (job.state != JobState::kHeld) return refused(job, ": only a held job can be released");
  if (!wish.turn.tables.jobs.steps_of(job.id).empty())
    return refused(job, ": what its last attempt started in it still ends");
  wish.turn.tables.jobs.set_state(job, JobState::kPending);
  job.reason.clear();
  job.eligible_ms = job.spec.dependencies.empty() ? wish.turn.now_ms : 0;
  wish.turn.touch(job);
  return changed();
}

Verdict requeue(const Wish& wish, Job& job) {
  if (job.spec.step) {
    return refused(
        job, absl::StrCat(" and a command inside job ", job.spec.step->job,
                          ": run it there anew with 'xce run --job ", job.spec.step->job, "'"));
  }
  if (is_waiting(job.state)) return refused(job, ": it waits already");
  if (is_ended(job.state)) {
    if (!wish.turn.tables.queues.count(job.spec.queue)) {
      return refused(job, absl::StrCat(" and its queue '", job.spec.queue,
                                       "' is gone: submit it anew to another"));
    }
    wait_again(wish.turn, job, absl::StrCat("requeued by ", words_for(wish.command.who)));
    return changed();
  }
  if (!wish.turn.tables.requeue_wanted.insert(job.id).second) return unchanged();
  job.desired = Desired::kKill;
  job.kill_signal = 0;
  job.reason = absl::StrCat("being requeued by ", words_for(wish.command.who));
  wish.turn.touch(job);
  return changed();
}

// Whether every asked for modification is right for the job; nothing is changed unless all are.
Verdict check_modify(const Wish& wish, const Job& job) {
  const uint32_t mask = wish.control.modify_mask;
  const JobSpec& to = wish.control.modify;
  if (is_ended(job.state)) return refused(job, ": it has ended; requeue it or submit anew");
  if ((mask & kQueue) && !is_waiting(job.state))
    return refused(job, ": it has started and cannot change its queue");
  const std::string& name = mask & kQueue ? to.queue : job.spec.queue;
  const auto queue = wish.turn.tables.queues.find(name);
  if (queue == wish.turn.tables.queues.end()) {
    return {false, E_XCE_NOENT,
            absl::StrCat("there is no queue '", name, "': list the queues and name one of them")};
  }
  if ((mask & kQueue) && name != job.spec.queue && !queue->second.open) {
    return {false, E_XCE_INVALID,
            absl::StrCat("queue '", name,
                         "' is closed: use another queue, or wait until it is opened")};
  }
  if ((mask & kQueue) && name != job.spec.queue) {
    if (Result r = check_access(queue->second, wish.command.who, job.spec.user); r.status)
      return {false, r.status, r.message};
    if (Result r = check_pending(wish.turn.tables, queue->second, job.spec.user, 1); r.status)
      return {false, r.status, r.message};
  }
  const uint32_t max_s = queue->second.max_time_s;
  const uint32_t time_s = mask & kTimeLimit ? to.time_limit_s : job.spec.time_limit_s;
  if ((mask & (kTimeLimit | kQueue)) && max_s && (time_s == 0 || time_s > max_s) &&
      !is_privileged(wish.command.who)) {
    return {
        false, E_XCE_INVALID,
        absl::StrCat("queue '", name, "' allows ", max_s, " s and ", label(job), " would ask for ",
                     time_s ? absl::StrCat(time_s, " s") : "no limit", ": ask for less time")};
  }
  const uint32_t old_s = job.spec.time_limit_s;
  const bool more = old_s != 0 && (time_s == 0 || time_s > old_s);
  if ((mask & kTimeLimit) && more && !is_waiting(job.state) && !is_privileged(wish.command.who)) {
    return {false, E_XCE_PERM,
            absl::StrCat(label(job), " has started: only an administrator may give it more time")};
  }
  return {};
}

Verdict modify(const Wish& wish, Job& job) {
  const uint32_t mask = wish.control.modify_mask;
  const JobSpec& to = wish.control.modify;
  const Verdict verdict = check_modify(wish, job);
  if (verdict.status) return verdict;
  if (mask & kPriority) job.spec.priority = to.priority;
  if (mask & kTimeLimit) job.spec.time_limit_s = to.time_limit_s;
  if (mask & kName) job.spec.name = to.name;
  if (mask & kQueue) wish.turn.tables.jobs.set_queue(job, to.queue);
  if ((mask & kTimeLimit) && has_hosts(job.state)) limit_steps(wish.turn, job);
  wish.turn.touch(job);
  return changed();
}

// What is done to a running job is done to the commands that run in it.
void control_steps(const Wish& wish, const Job& job) {
  if (!has_hosts(job.state)) return;
  const IdSet steps = wish.turn.tables.jobs.steps_of(job.id);  // a copy: some may end here
  for (const JobId id : steps) {
    Job& step = *wish.turn.tables.jobs.find(id);
    switch (wish.control.action) {
      case JobAction::kKill:
        if (wish.control.signal == 0) kill(wish, step);
        break;
      case JobAction::kSuspend: suspend(wish, step); break;
      case JobAction::kResume: resume(wish, step); break;
      default: break;
    }
  }
}

Verdict control_one(const Wish& wish, Job& job) {
  const Identity& who = wish.command.who;
  const bool own = who.role == Role::kUser && who.user == job.spec.user;
  if (!own && !is_privileged(who)) {
    return {false, E_XCE_PERM,
            absl::StrCat(label(job), " belongs to ", job.spec.user,
                         ": only its owner or an administrator may ", "control it")};
  }
  control_steps(wish, job);
  switch (wish.control.action) {
    case JobAction::kKill: return kill(wish, job);
    case JobAction::kSuspend: return suspend(wish, job);
    case JobAction::kResume: return resume(wish, job);
    case JobAction::kHold: return hold(wish, job);
    case JobAction::kRelease: return release(wish, job);
    case JobAction::kRequeue: return requeue(wish, job);
    case JobAction::kModify: return modify(wish, job);
  }
  return {false, E_XCE_INVALID, "no such action on a job"};
}

// On an id without a job in the state.
Verdict of_none(JobAction action, JobId id, JobId next_id) {
  if (id == 0 || id >= next_id) return {false, E_XCE_NOENT, absl::StrCat("there is no job ", id)};
  const std::string ended = absl::StrCat("job ", id, " ended long ago");
  if (action == JobAction::kKill) return unchanged(ended);
  return {false, E_XCE_NOENT,
          absl::StrCat(ended, " and is history: 'xce history ", id, "' shows it; submit it anew")};
}

// The jobs that an id stands for: itself, or with whole_array all kept tasks of its array.
std::vector<JobId> meant_by(const JobTable& jobs, JobId id, bool whole_array) {
  if (!whole_array) return {id};
  const Job* job = jobs.find(id);
  const JobId array = job && job->array_id ? job->array_id : id;
  std::vector<JobId> ids;
  for (auto it = jobs.all().lower_bound(array);
       it != jobs.all().end() && it->second.array_id == array; ++it) {
    ids.push_back(it->first);
  }
  if (ids.empty()) ids.push_back(id);  // no array
  return ids;
}

// Gathers the verdicts on several jobs into one result.
class Sum {
 public:
  void add(Verdict verdict) {
    if (verdict.changed) ++result_.count;
    if (verdict.status == 0) {
      good_ = true;
    } else if (first_status_ == 0) {
      first_status_ = verdict.status;
    }
    if (verdict.message.empty()) return;
    if (++told_ > kMaxRefusalsTold) return;
    absl::StrAppend(&result_.message, told_ > 1 ? "; " : "", verdict.message);
  }
  Result result() {
    if (told_ > kMaxRefusalsTold)
      absl::StrAppend(&result_.message, "; and ", told_ - kMaxRefusalsTold, " more");
    if (!good_) result_.status = first_status_;
    return std::move(result_);
  }

 private:
  Result result_;
  bool good_ = false;
  int first_status_ = 0;
  size_t told_ = 0;
};

}  // namespace

Result control_jobs(Turn& turn, const Command& command, const JobControl& control) {
  if (control.ids.empty())
    return refuse(E_XCE_INVALID, "no job is named: give at least one job id");
  constexpr uint32_t kAll = kPriority | kTimeLimit | kName | kQueue;
  if (control.action == JobAction::kModify &&
      ((control.modify_mask & ~kAll) || control.modify_mask == 0)) {
    return refuse(
        E_XCE_INVALID,
        "only priority, time limit, name and queue of a job can be modified: name one of them");
  }
  if (control.action == JobAction::kModify && control.modify.name.size() > 4096) {
    return refuse(E_XCE_INVALID, "the name is longer than 4096 bytes: shorten it");
  }
  if (control.signal > 64)
    return refuse(E_XCE_INVALID, absl::StrCat("there is no signal ", control.signal));
  Sum sum;
  const Wish wish{turn, command, control};
  for (const JobId named : control.ids) {
    for (const JobId id : meant_by(turn.tables.jobs, named, control.whole_array)) {
      Job* job = turn.tables.jobs.find(id);
      if (job) {
        sum.add(control_one(wish, *job));
      } else {
        sum.add(of_none(control.action, id, turn.tables.jobs.next_id()));
      }
    }
  }
  return sum.result();
}

}  // namespace xce::state
