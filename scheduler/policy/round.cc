#include "scheduler/policy/round.h"

#include <algorithm>
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

bool asks_no_less(const Need& a, uint32_t a_nodes, const Need& b, uint32_t b_nodes) {
  if (a.cpus < b.cpus || a.memory_mb < b.memory_mb || a_nodes < b_nodes) return false;
  if (b.exclusive && !a.exclusive) return false;
  return std::all_of(b.gres.begin(), b.gres.end(), [&a](const Gres& needed) {
    return std::any_of(a.gres.begin(), a.gres.end(), [&](const Gres& asked) {
      return asked.name == needed.name && asked.count >= needed.count;
    });
  });
}

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
    while (view_.hosts().most_free_cpus() > 0 && !closed_) {
      if (failures >= limits_.max_tries || looks_ >= limits_.max_looks) break;
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
    const int64_t duration_ms = view_.duration_ms(key);
    return plan_ ? consider_planned(key, duration_ms) : consider_promise(key, duration_ms);
  }

  // The hosts that have room now. The plan or the promise may still be in the way.
  template <typename Permits>
  std::vector<const HostSlot*> hosts_for(const ClassKey& key, int64_t duration_ms,
                                         const Permits& permits) {
    if (failures_.covers(key.need, key.nodes)) return {};
    const int64_t until_ms = later(now_ms_, duration_ms);
    bool others_reason = false;  // room there is, but not for this one
    std::vector<const HostSlot*> hosts = view_.hosts().best_fit(
        key.need, key.nodes,
        [&](const HostSlot& host) {
          const bool may =
              permits(host) &&
              (host.kept.empty() || host.keeps_off(key.need, now_ms_, until_ms) == nullptr);
          others_reason = others_reason || !may;
          return may;
        },
        &looks_);
    if (hosts.empty() && !others_reason) failures_.note(key.need, key.nodes);
    return hosts;
  }

  bool consider_promise(const ClassKey& key, int64_t duration_ms) {
    const int64_t ends_ms = duration_ms == kNever ? 0 : now_ms_ + duration_ms;
    const std::vector<const HostSlot*> hosts =
        hosts_for(key, duration_ms,
                  [&](const HostSlot& host) { return promise_.permits(host, key.need, ends_ms); });
    if (hosts.empty()) {
      // A job that no host could ever run holds up nobody.
      if (!promise_.made()) {
        looks_ += view_.hosts().hosts().size();
        if (promise_.make(view_.hosts(), walk_.id(), key.need, key.nodes, now_ms_, duration_ms))
          closed_ = limits_.backfill == Backfill::kNone;
      }
      return false;
    }
    for (const HostSlot* host : hosts) promise_.use(*host, key.need, ends_ms);
    start(key, hosts);
    return true;
  }

  bool consider_planned(const ClassKey& key, int64_t duration_ms) {
    const bool reserves =
        plan_->reservations() - result_.dispatches.size() < limits_.max_reservations;
    const auto anywhere = [](const HostSlot&) { return true; };
    // Those behind the head of their class wait with it, whatever the plan says.
    const bool may_start = !walk_.is_follower() && !hosts_for(key, duration_ms, anywhere).empty();
    if (!may_start && !reserves) return false;
    looks_ += kLooksOfPlan * plan_->profiles().size();
    const Plan::Slot slot = plan_->find(key.need, key.nodes, duration_ms);
    if (slot.starts_ms == now_ms_ && may_start) {
      plan_->reserve(slot, key.need, duration_ms);
      start(key, slot.hosts);
      return true;
    }
    if (reserves) {
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

  // What looking at a host's whole future costs, in looks at what it has now.
  static constexpr size_t kLooksOfPlan = 4;

  View& view_;
  const int64_t now_ms_;
  const RoundLimits& limits_;
  ClassWalk walk_;
  Failures failures_;
  Promise promise_;
  std::unique_ptr<Plan> plan_;  // of conservative backfill
  RoundResult result_;
  size_t looks_ = 0;
  bool closed_ = false;  // nobody else may start
};

}  // namespace

void Failures::note(const Need& need, uint32_t nodes) {
  smallest_.erase(std::remove_if(smallest_.begin(), smallest_.end(),
                                 [&](const auto& each) {
                                   return asks_no_less(each.first, each.second, need, nodes);
                                 }),
                  smallest_.end());
  if (smallest_.size() == kMost) smallest_.erase(smallest_.begin());
  smallest_.emplace_back(need, nodes);
}

bool Failures::covers(const Need& need, uint32_t nodes) const {
  return std::any_of(smallest_.begin(), smallest_.end(), [&](const auto& each) {
    return asks_no_less(need, nodes, each.first, each.second);
  });
}

RoundResult run_round(View* view, int64_t now_ms, const RoundLimits& limits) {
  view->set_now(now_ms);
  view->release_parked(now_ms);
  RoundResult result = Round(view, now_ms, limits).run();
  if (!result.more) result.evictions = choose_evictions(view, now_ms, limits);
  return result;
}

JobId first_startable(const View& view, int64_t now_ms) {
  ClassWalk walk(view, now_ms);
  for (size_t tries = 0; tries < 100; ++tries) {
    const JobClass* cls = walk.next();
    if (cls == nullptr) return 0;
    const ClassKey& key = *cls->key;
    if (limit_of(view, key) != Limit::kNone) continue;
    const int64_t until_ms = later(now_ms, view.duration_ms(key));
    const auto permits = [&](const HostSlot& host) {
      return host.keeps_off(key.need, now_ms, until_ms) == nullptr;
    };
    if (!view.hosts().best_fit(key.need, key.nodes, permits).empty()) return walk.id();
    // One that waits for hosts may rightly keep those after it waiting; one that can never run does
    // not.
    Promise promise;
    if (promise.make(view.hosts(), walk.id(), key.need, key.nodes, now_ms, view.duration_ms(key)))
      return 0;
  }
  return 0;
}

}  // namespace xce::sched
