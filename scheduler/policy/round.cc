#include "scheduler/policy/round.h"

#include <memory>
#include <utility>

#include "scheduler/policy/plan.h"
#include "scheduler/policy/preempt.h"

namespace xce::sched {
namespace {

// What a start counts for its user's fair share, a cpu, in the round that makes it: so that one
// round over an empty cluster does not give all of it to one user.
constexpr double kChargeAtStartS = 60;

template <typename Map, typename Key>
uint64_t count_of(const Map& map, const Key& key) {
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
    if (queue->max_cpus_per_user > 0 &&
        count_of(running.cpus_of_user, std::make_pair(key.queue, key.user)) +
                uint64_t{key.need.cpus} * key.nodes >
            queue->max_cpus_per_user) {
      return Limit::kUserCpus;
    }
  }
  if (key.limited_array != 0 && count_of(running.of_array, key.limited_array) >= key.array_limit) {
    return Limit::kArrayFull;
  }
  return Limit::kNone;
}

ClassWalk::ClassWalk(const View& view, int64_t now_ms) : view_(view), now_ms_(now_ms) {
  const auto& lines = view.ready().lines();
  cursors_.reserve(lines.size());
  for (const auto& [line, heads] : lines) {
    const Queue* queue = view.queue(line.queue);
    const int64_t negated = queue == nullptr ? 0 : -static_cast<int64_t>(queue->priority);
    cursors_.push_back(Cursor{line, negated, Position{}});
    advance(cursors_.size() - 1);
  }
}

double ClassWalk::usage_of(NameId user) const {
  if (!view_.fair_share().on()) return 0;
  auto it = charged_.find(user);
  return view_.fair_share().usage(user, now_ms_) + (it == charged_.end() ? 0 : it->second);
}

void ClassWalk::advance(size_t cursor) {
  Cursor& c = cursors_[cursor];
  const JobClass* cls = view_.ready().next(c.line, &c.at);
  if (cls == nullptr) return;
  turns_.push(Turn{c.negated_queue_priority, c.at.negated_priority, usage_of(cls->key->user),
                   c.at.id, cursor, cls, false});
}

const JobClass* ClassWalk::next() {
  // Only now: what was decided about the last job moved the heads of its line.
  if (last_.cls != nullptr && !last_.follower) advance(last_.cursor);
  last_ = Turn{};
  while (!turns_.empty()) {
    Turn turn = turns_.top();
    turns_.pop();
    if (dropped_.count(cursors_[turn.cursor].line.queue) > 0) continue;
    if (view_.fair_share().on()) {  // it may have risen since the turn was noted
      const double usage = usage_of(turn.cls->key->user);
      if (usage > turn.usage) {
        turn.usage = usage;
        turns_.push(turn);
        continue;
      }
    }
    last_ = turn;
    return turn.cls;
  }
  return nullptr;
}

void ClassWalk::follow() {
  auto after = last_.cls->waiting.upper_bound(last_.id);
  if (after == last_.cls->waiting.end()) return;
  Turn turn = last_;
  turn.id = *after;
  turn.follower = true;
  turns_.push(turn);
}

void ClassWalk::charge(uint32_t cpus) {
  if (view_.fair_share().on()) charged_[last_.cls->key->user] += kChargeAtStartS * cpus;
}

namespace {

// One round's work.
class Round {
 public:
  Round(View* view, int64_t now_ms, const RoundLimits& limits)
      : view_(*view), now_ms_(now_ms), limits_(limits), walk_(*view, now_ms) {}

  RoundResult run() {
    if (limits_.backfill == Backfill::kConservative && view_.ready().size() > 0 &&
        view_.hosts().most_free_cpus() > 0) {
      plan_ = std::make_unique<Plan>(view_.hosts(), now_ms_);
    }
    size_t failures = 0;
    while (view_.hosts().most_free_cpus() > 0 && failures < limits_.max_tries && !closed_) {
      if (result_.dispatches.size() == limits_.max_dispatches) {
        result_.more = true;
        break;
      }
      const JobClass* cls = walk_.next();
      if (cls == nullptr) break;
      ++result_.tries;
      if (!consider(*cls)) ++failures;
    }
    return std::move(result_);
  }

 private:
  // Starts the job whose turn it is, or sees to what waiting for it means to others.
  bool consider(const JobClass& cls) {
    const ClassKey& key = *cls.key;
    const Limit limit = limit_of(view_, key);
    if (limit == Limit::kQueueStopped || limit == Limit::kQueueFull) walk_.drop_queue();
    if (limit != Limit::kNone) return false;
    const int64_t limit_s = view_.time_limit_s(key);
    return plan_ ? consider_planned(key, limit_s > 0 ? limit_s * 1000 : kNever)
                 : consider_reserved(key, limit_s > 0 ? now_ms_ + limit_s * 1000 : 0);
  }

  bool consider_reserved(const ClassKey& key, int64_t ends_ms) {
    const auto permits = [&](const HostSlot& host) {
      return reservation_.permits(host, key.need, ends_ms);
    };
    const std::vector<const HostSlot*> hosts = view_.hosts().best_fit(key.need, key.nodes, permits);
    if (hosts.empty()) {
      // A job that no host could ever run holds up nobody.
      if (!reservation_.made() &&
          reservation_.make(view_.hosts(), walk_.id(), key.need, key.nodes, now_ms_)) {
        closed_ = limits_.backfill == Backfill::kNone;
      }
      return false;
    }
    for (const HostSlot* host : hosts) reservation_.use(*host, key.need, ends_ms);
    start(key, hosts);
    return true;
  }

  bool consider_planned(const ClassKey& key, int64_t duration_ms) {
    const Plan::Slot slot = plan_->find(key.need, key.nodes, duration_ms);
    // Those behind the head of their class wait with it, whatever the plan says.
    if (slot.starts_ms == now_ms_ && !walk_.is_follower()) {
      plan_->reserve(slot, key.need, duration_ms);
      start(key, slot.hosts);
      return true;
    }
    if (plan_->reservations() - result_.dispatches.size() < limits_.max_reservations) {
      if (slot.starts_ms == kNever) {
        plan_->drain_for(key.need, key.nodes);
      } else {
        plan_->reserve(slot, key.need, duration_ms);
        walk_.follow();
      }
    }
    return false;
  }

  void start(const ClassKey& key, const std::vector<const HostSlot*>& hosts) {
    Dispatch dispatch;
    dispatch.job = walk_.id();
    uint32_t cpus = 0;
    for (const HostSlot* host : hosts) {
      dispatch.allocs.push_back(HostPool::alloc_of(key.need, *host));
      cpus += dispatch.allocs.back().cpus;
    }
    walk_.charge(cpus);
    dispatch.attempt = view_.start_locally(dispatch.job, dispatch.allocs, now_ms_);
    result_.dispatches.push_back(std::move(dispatch));
  }

  View& view_;
  const int64_t now_ms_;
  const RoundLimits& limits_;
  ClassWalk walk_;
  Reservation reservation_;
  std::unique_ptr<Plan> plan_;  // of conservative backfill
  RoundResult result_;
  bool closed_ = false;  // nobody else may start
};

}  // namespace

RoundResult run_round(View* view, int64_t now_ms, const RoundLimits& limits) {
  view->set_now(now_ms);
  view->release_parked(now_ms);
  RoundResult result = Round(view, now_ms, limits).run();
  if (!result.more) result.evictions = choose_evictions(view, now_ms, limits);
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
      return walk.id();
    }
    // One that waits for hosts may rightly keep those after it waiting; one that can never run does
    // not.
    Reservation reservation;
    if (reservation.make(view.hosts(), walk.id(), key.need, key.nodes, 0)) return 0;
  }
  return 0;
}

}  // namespace xce::sched
