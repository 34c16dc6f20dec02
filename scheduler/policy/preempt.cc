#include "scheduler/policy/preempt.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace xce::sched {
namespace {

constexpr int32_t kNoQueue = INT32_MAX;

// The lowest priority of a preemptible queue that runs anything.
int32_t lowest_preemptible(const View& view) {
  int32_t lowest = kNoQueue;
  for (const auto& [id, count] : view.running().of_queue) {
    const Queue* queue = view.queue(id);
    if (queue != nullptr && queue->preemptible) lowest = std::min(lowest, queue->priority);
  }
  return lowest;
}

int32_t priority_of(const View& view, NameId queue) {
  const Queue* record = view.queue(queue);
  return record == nullptr ? 0 : record->priority;
}

bool is_limited(const View& view, const ClassKey& key) {
  const Queue* queue = view.queue(key.queue);
  return key.limited_array != 0 ||
         (queue != nullptr && (queue->max_running > 0 || queue->max_running_per_user > 0 ||
                               queue->max_cpus_per_user > 0));
}

// One host as it will be when evictions are through, less what was claimed of it in this pass.
class Room {
 public:
  Room(const View& view, const HostSlot& host) : view_(view), host_(&host) {
    for (const auto& [id, hold] : host.holds) {
      const JobRecord* job = view.find(id);
      if (job == nullptr || !is_evicted(*job)) holds_.push_back({id, job, &hold});
    }
  }

  const HostSlot& host() const { return *host_; }
  struct Offer {
    std::vector<JobId> victims;  // none: there is room already
    int64_t lost = 0;            // cpu-milliseconds of work
  };
  // What it takes to make room here for the need of a job of a queue of this priority.
  std::optional<Offer> offer(const Need& need, int32_t priority, int64_t now_ms) const {
    if (!host_->total.fits(need)) return std::nullopt;
    const std::vector<const Held*> candidates = candidates_below(priority);
    std::set<JobId> victims;
    for (const Held* held : candidates) {
      if (fits(need, victims)) break;
      victims.insert(held->id);
    }
    if (!fits(need, victims)) return std::nullopt;
    Offer offer;
    for (const Held* held : candidates) {  // a small one may stay, once a large one goes
      if (victims.erase(held->id) == 0 || fits(need, victims)) continue;
      victims.insert(held->id);
      offer.victims.push_back(held->id);
      offer.lost += std::max<int64_t>(now_ms - held->job->start_ms, 0) * held->hold->alloc.cpus;
    }
    return offer;
  }
  void claim(const Need& need) {
    claims_.push_back(need);
    claimed_whole_ = claimed_whole_ || need.exclusive;
  }
  void gone(JobId id) { gone_.insert(id); }

 private:
  struct Held {
    JobId id;
    const JobRecord* job;
    const Hold* hold;
  };
  // Those who may have to go, in the order in which they do.
  std::vector<const Held*> candidates_below(int32_t priority) const {
    std::vector<const Held*> out;
    for (const Held& held : holds_) {
      // A start that is not confirmed yet is left alone until it is.
      if (held.job == nullptr || held.job->planned || gone_.count(held.id) > 0) continue;
      const Queue* queue = view_.queue(held.job->key.queue);
      if (queue != nullptr && queue->preemptible && queue->priority < priority)
        out.push_back(&held);
    }
    const auto place = [this](const Held* h) {
      return std::make_tuple(priority_of(view_, h->job->key.queue), -h->job->start_ms, h->id);
    };
    std::sort(out.begin(), out.end(),
              [&](const Held* a, const Held* b) { return place(a) < place(b); });
    return out;
  }
  bool fits(const Need& need, const std::set<JobId>& victims) const {
    if (claimed_whole_ || (need.exclusive && !claims_.empty())) return false;
    Amounts free = host_->total;
    for (const Held& held : holds_) {
      if (gone_.count(held.id) > 0 || victims.count(held.id) > 0) continue;
      if (need.exclusive || held.hold->exclusive) return false;
      free.take(held.hold->alloc);
    }
    for (const Need& claim : claims_) free.take(claim);
    return free.fits(need);
  }

  const View& view_;
  const HostSlot* host_;
  std::vector<Held> holds_;  // but of those on their way out
  std::set<JobId> gone_;     // chosen in this pass
  std::vector<Need> claims_;
  bool claimed_whole_ = false;
};

class Chooser {
 public:
  Chooser(View* view, int64_t now_ms, const RoundLimits& limits)
      : view_(*view), now_ms_(now_ms), limits_(limits) {}

  std::vector<Eviction> run() {
    const int32_t lowest = lowest_preemptible(view_);
    if (lowest == kNoQueue || view_.ready().size() == 0) return {};
    ClassWalk walk(view_, now_ms_);
    size_t jobs = 0;
    for (size_t tries = 0; tries < limits_.max_tries; ++tries) {
      if (jobs >= limits_.max_evictors || offers_ >= limits_.max_offers) break;
      const JobClass* cls = walk.next();
      if (cls == nullptr || priority_of(view_, cls->key->queue) <= lowest) break;
      const ClassKey& key = *cls->key;
      // Where one of a queue of higher priority, or of this one, found no way there is none.
      if (limit_of(view_, key) != Limit::kNone || failures_.covers(key.need, key.nodes)) continue;
      ++jobs;
      if (make_room(key, walk.id()) && !is_limited(view_, key)) walk.follow();
    }
    for (const Eviction& eviction : evictions_)
      view_.evict_locally(eviction.job, now_ms_ + limits_.eviction_ms);
    return std::move(evictions_);
  }

 private:
  // False: there is no way for this job, nor for those of its kind.
  bool make_room(const ClassKey& key, JobId job) {
    if (rooms_.empty()) {
      for (const auto& [name, host] : view_.hosts().hosts())
        if (host.usable()) rooms_.emplace(name, Room(view_, host));
    }
    const int32_t priority = priority_of(view_, key.queue);
    const int64_t until_ms = later(now_ms_, view_.duration_ms(key));
    std::vector<std::pair<int64_t, std::string_view>> candidates;  // work lost, host
    std::map<std::string_view, Room::Offer> offers;
    bool kept_off = false;
    for (const auto& [name, room] : rooms_) {
      ++offers_;
      if (room.host().keeps_off(key.need, now_ms_, until_ms) != nullptr) {
        kept_off = true;
        continue;
      }
      std::optional<Room::Offer> offer = room.offer(key.need, priority, now_ms_);
      if (!offer) continue;
      candidates.emplace_back(offer->lost + static_cast<int64_t>(offer->victims.size()), name);
      offers[name] = std::move(*offer);
    }
    if (candidates.size() < key.nodes) {
      if (!kept_off) failures_.note(key.need, key.nodes);
      return false;
    }
    std::partial_sort(candidates.begin(), candidates.begin() + key.nodes, candidates.end());
    for (uint32_t i = 0; i < key.nodes; ++i) {
      const std::string_view name = candidates[i].second;
      rooms_.find(name)->second.claim(key.need);
      for (const JobId victim : offers.at(name).victims) evict(victim, key, job);
    }
    return true;
  }

  void evict(JobId victim, const ClassKey& key, JobId job) {
    if (!chosen_.insert(victim).second) return;
    const JobRecord* record = view_.find(victim);
    evictions_.push_back(Eviction{victim, record->attempt,
                                  absl::StrCat("makes room for job ", job, " of queue '",
                                               view_.name(key.queue), "' and waits again")});
    for (const Alloc& alloc : record->extra->allocs) {
      auto room = rooms_.find(alloc.host);
      if (room != rooms_.end()) room->second.gone(victim);
    }
  }

  View& view_;
  const int64_t now_ms_;
  const RoundLimits& limits_;
  std::map<std::string_view, Room> rooms_;  // usable hosts, made when first needed
  Failures failures_;
  size_t offers_ = 0;
  std::set<JobId> chosen_;
  std::vector<Eviction> evictions_;
};

}  // namespace

std::vector<Eviction> choose_evictions(View* view, int64_t now_ms, const RoundLimits& limits) {
  return Chooser(view, now_ms, limits).run();
}

}  // namespace xce::sched
