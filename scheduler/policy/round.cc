#include "scheduler/policy/round.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace xce::sched {
namespace {

template <typename Map, typename Key>
uint32_t count_of(const Map& map, const Key& key) {
  auto it = map.find(key);
  return it == map.end() ? 0 : it->second;
}

}  // namespace

Limit limit_of(const View& view, const ClassKey& key) {
  const Running& running = view.running();
  if (const Queue* queue = view.queue(key.queue)) {
    if (!queue->active) return Limit::kQueueStopped;
    if (queue->max_running > 0 && count_of(running.of_queue, key.queue) >= queue->max_running)
      return Limit::kQueueFull;
    if (queue->max_running_per_user > 0 &&
        count_of(running.of_user, std::make_pair(key.queue, key.user)) >=
            queue->max_running_per_user) {
      return Limit::kUserFull;
    }
  }
  if (key.limited_array != 0 && count_of(running.of_array, key.limited_array) >= key.array_limit) {
    return Limit::kArrayFull;
  }
  return Limit::kNone;
}

ClassWalk::ClassWalk(const View& view) : view_(view) {
  for (const auto& [queue, waiting] : view.ready().waiting()) {
    const Queue* record = view.queue(queue);
    cursors_.push_back(Cursor{
        queue, record == nullptr ? 0 : -static_cast<int64_t>(record->priority), Position{}, false});
  }
  std::sort(cursors_.begin(), cursors_.end(), [&view](const Cursor& a, const Cursor& b) {
    return std::forward_as_tuple(a.negated_priority, view.name(a.queue)) <
           std::forward_as_tuple(b.negated_priority, view.name(b.queue));
  });
}

const JobClass* ClassWalk::next() {
  // Queues of one priority are merged; the first priority that has anything left decides.
  const JobClass* best = nullptr;
  Position best_at;
  for (size_t i = 0; i < cursors_.size(); ++i) {
    if (cursors_[i].done) continue;
    if (best != nullptr && cursors_[i].negated_priority != cursors_[last_].negated_priority) break;
    Position at = cursors_[i].at;
    const JobClass* found = view_.ready().next(cursors_[i].queue, &at);
    if (found == nullptr) {
      cursors_[i].done = true;
    } else if (best == nullptr || at < best_at) {
      best = found;
      best_at = at;
      last_ = i;
    }
  }
  if (best != nullptr) cursors_[last_].at = best_at;
  return best;
}

void ClassWalk::drop_queue() { cursors_[last_].done = true; }

RoundResult run_round(View* view, int64_t now_ms, const RoundLimits& limits) {
  RoundResult result;
  view->release_parked(now_ms);
  ClassWalk walk(*view);
  Reservation reservation;
  size_t failures = 0;
  while (view->hosts().most_free_cpus() > 0 && failures < limits.max_tries) {
    if (result.dispatches.size() == limits.max_dispatches) {
      result.more = true;
      break;
    }
    const JobClass* cls = walk.next();
    if (cls == nullptr) break;
    ++result.tries;
    const ClassKey& key = *cls->key;
    const Limit limit = limit_of(*view, key);
    if (limit == Limit::kQueueStopped || limit == Limit::kQueueFull) walk.drop_queue();
    if (limit != Limit::kNone) {
      ++failures;
      continue;
    }
    const JobId id = *cls->waiting.begin();
    const int64_t limit_s = view->time_limit_s(key);
    const int64_t ends_ms = limit_s > 0 ? now_ms + limit_s * 1000 : 0;
    const auto permits = [&](const HostSlot& host) {
      return reservation.permits(host, key.need, ends_ms);
    };
    const std::vector<const HostSlot*> hosts = view->hosts().best_fit(key.need, key.nodes, permits);
    if (hosts.empty()) {
      ++failures;
      if (!reservation.made()) reservation.make(view->hosts(), id, key.need, key.nodes, now_ms);
      continue;
    }
    Dispatch dispatch;
    dispatch.job = id;
    for (const HostSlot* host : hosts) {
      dispatch.allocs.push_back(HostPool::alloc_of(key.need, *host));
      reservation.use(*host, key.need, ends_ms);
    }
    dispatch.attempt = view->start_locally(id, dispatch.allocs, now_ms);
    result.dispatches.push_back(std::move(dispatch));
  }
  return result;
}

JobId first_startable(const View& view) {
  ClassWalk walk(view);
  for (size_t tries = 0; tries < 100; ++tries) {
    const JobClass* cls = walk.next();
    if (cls == nullptr) return 0;
    const ClassKey& key = *cls->key;
    if (limit_of(view, key) != Limit::kNone) continue;
    if (!view.hosts().best_fit(key.need, key.nodes, [](const HostSlot&) { return true; }).empty()) {
      return *cls->waiting.begin();
    }
    // One that waits for hosts may rightly keep those after it waiting; one that can never run does
    // not.
    Reservation reservation;
    if (reservation.make(view.hosts(), *cls->waiting.begin(), key.need, key.nodes, 0)) return 0;
  }
  return 0;
}

}  // namespace xce::sched
