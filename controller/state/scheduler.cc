#include "controller/state/scheduler.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "xce/errnox.h"

namespace xce::state {
namespace {

constexpr size_t kMaxReasonBytes = 1024;

Result check_epoch(const Tables& tables, const Command& command, uint64_t epoch) {
  if (command.who.role != Role::kScheduler && command.who.role != Role::kController) {
    return refuse(E_XCE_PERM, absl::StrCat("role ", name_of(command.who.role),
                                           " may not schedule: only the active scheduler may"));
  }
  if (epoch != tables.scheduler.epoch || epoch == 0) {
    return refuse(E_XCE_STALE, absl::StrCat("epoch ", epoch, " is over: the active scheduler is '",
                                            tables.scheduler.name, "' of epoch ",
                                            tables.scheduler.epoch, "; join to take over"));
  }
  return {};
}

// Whether what is given covers what the job asks of each host.
bool covers(const Alloc& alloc, const JobSpec& spec) {
  return alloc.cpus >= spec.cpus && alloc.memory_mb >= spec.memory_mb &&
         std::all_of(spec.gres.begin(), spec.gres.end(), [&](const Gres& gres) {
           return count_of(alloc.gres, gres.name) >= gres.count;
         });
}

int place_one(Turn& turn, const Dispatch& item) {
  Job* job = turn.tables.jobs.find(item.job);
  if (!job) return E_XCE_NOENT;
  if (item.attempt == job->attempt && !is_waiting(job->state) && item.allocs == job->allocs)
    return 0;
  if (job->state != JobState::kPending || item.attempt != job->attempt + 1) return E_XCE_STALE;
  if (item.allocs.size() != std::max<uint32_t>(1, job->spec.nodes)) return E_XCE_INVALID;
  const auto queue = turn.tables.queues.find(job->spec.queue);
  if (queue != turn.tables.queues.end() && !queue->second.active) return E_XCE_STALE;
  std::set<std::string> names;
  for (const Alloc& alloc : item.allocs) {
    if (!names.insert(alloc.host).second || !covers(alloc, job->spec)) return E_XCE_INVALID;
    if (!turn.tables.hosts.fits(alloc, job->spec.exclusive)) return E_XCE_STALE;
  }
  if (!reservations_permit(turn.tables, *job, item.allocs)) return E_XCE_STALE;
  place(turn, *job, item.allocs);
  return 0;
}

// Stops a running job so that it waits again. One that has moved on meanwhile is left alone.
void evict(Turn& turn, const Eviction& eviction) {
  Job* job = turn.tables.jobs.find(eviction.job);
  if (!job || job->attempt != eviction.attempt || !has_hosts(job->state) || job->spec.step) return;
  if (job->desired == Desired::kKill) return;
  const auto queue = turn.tables.queues.find(job->spec.queue);
  if (queue == turn.tables.queues.end() || !queue->second.preemptible) return;
  turn.tables.requeue_wanted.insert(job->id);
  job->desired = Desired::kKill;
  job->kill_signal = 0;
  job->reason = eviction.reason.substr(0, kMaxReasonBytes);
  turn.touch(*job);
}

}  // namespace

Result join_scheduler(Turn& turn, const Command& command) {
  State::Scheduler& active = turn.tables.scheduler;
  if (active.epoch == 0 || active.client != command.client || active.name != command.who.name) {
    if (active.epoch == 0 || active.client != command.client) ++active.epoch;
    active.client = command.client;
    active.name = command.who.name;
    turn.scheduler_changed = true;
  }
  Result result;
  result.revision = turn.index;
  result.epoch = active.epoch;
  result.active = true;
  return result;
}

Result dispatch(Turn& turn, const Command& command, const Dispatches& dispatches) {
  Result result = check_epoch(turn.tables, command, dispatches.epoch);
  if (result.status) return result;
  for (const Eviction& eviction : dispatches.evictions) evict(turn, eviction);
  for (const Dispatch& item : dispatches.items) {
    result.item_status.push_back(place_one(turn, item));
    if (result.item_status.back() == 0) ++result.count;
  }
  return result;
}

Result set_pend_reasons(Turn& turn, const Command& command, const PendReasons& reasons) {
  Result result = check_epoch(turn.tables, command, reasons.epoch);
  if (result.status) return result;
  for (const PendReason& item : reasons.items) {
    Job* job = turn.tables.jobs.find(item.job);
    if (!job || job->state != JobState::kPending)
      continue;  // a held job's reason tells who held it
    std::string reason = item.reason.substr(0, kMaxReasonBytes);
    if (item.hopeless && !job->spec.dependencies.empty()) {
      end_job(turn, *job, JobState::kKilled, turn.now_ms, std::move(reason));
      ++result.count;
      continue;
    }
    if (job->reason == reason) continue;
    job->reason = std::move(reason);
    turn.touch(*job);
    ++result.count;
  }
  return result;
}

}  // namespace xce::state
