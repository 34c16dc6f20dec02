#include "scheduler/policy/host_profile.h"

#include <algorithm>

namespace xce::sched {
namespace {

int64_t planned_end(const Hold& hold, int64_t now_ms) {
  return hold.ends_ms == 0 ? kNever : std::max(hold.ends_ms, now_ms + 1);
}

// Sums of what jobs hold. A host may have less than its jobs hold (it shrank): free is then zero.
class Held {
 public:
  explicit Held(const Amounts& total) : total_(total), gres_(total.gres.size(), 0) {}
  void add(const Hold& hold, int sign) {
    cpus_ += sign * static_cast<int64_t>(hold.alloc.cpus);
    memory_mb_ += sign * static_cast<int64_t>(hold.alloc.memory_mb);
    jobs_ += sign;
    exclusive_ += hold.exclusive ? sign : 0;
    for (const Gres& g : hold.alloc.gres) {
      for (size_t i = 0; i < gres_.size(); ++i) {
        if (total_.gres[i].name == g.name) gres_[i] += sign * static_cast<int64_t>(g.count);
      }
    }
  }
  bool idle() const { return jobs_ == 0; }
  Amounts free() const {
    Amounts left = total_;
    left.cpus = exclusive_ > 0 ? 0 : minus(left.cpus, cpus_);
    left.memory_mb = minus(left.memory_mb, memory_mb_);
    for (size_t i = 0; i < gres_.size(); ++i)
      left.gres[i].count = minus(left.gres[i].count, gres_[i]);
    return left;
  }

 private:
  template <typename T>
  static T minus(T total, int64_t held) {
    return static_cast<T>(std::max<int64_t>(static_cast<int64_t>(total) - held, 0));
  }
  const Amounts& total_;
  int64_t cpus_ = 0, memory_mb_ = 0, jobs_ = 0, exclusive_ = 0;
  std::vector<int64_t> gres_;
};

}  // namespace

HostProfile::HostProfile(const HostSlot& host, int64_t now_ms) : host_(&host) {
  Held held(host.total);
  std::vector<std::pair<int64_t, const Hold*>> ends;
  ends.reserve(host.holds.size());
  for (const auto& [job, hold] : host.holds) {
    held.add(hold, 1);
    const int64_t end_ms = planned_end(hold, now_ms);
    if (end_ms != kNever) ends.emplace_back(end_ms, &hold);
  }
  std::sort(ends.begin(), ends.end());
  steps_.reserve(ends.size() + 1);
  steps_.push_back(Step{now_ms, held.free(), held.idle()});
  for (size_t i = 0; i < ends.size(); ++i) {
    held.add(*ends[i].second, -1);
    if (i + 1 < ends.size() && ends[i + 1].first == ends[i].first) continue;
    steps_.push_back(Step{ends[i].first, held.free(), held.idle()});
  }
}

bool HostProfile::fits(const Step& step, const Need& need) const {
  if (need.exclusive) return step.idle && host_->total.fits(need);
  return step.free.fits(need);
}

size_t HostProfile::index_at(int64_t time_ms) const {
  auto after = std::upper_bound(steps_.begin(), steps_.end(), time_ms,
                                [](int64_t t, const Step& s) { return t < s.from_ms; });
  return after == steps_.begin() ? 0 : static_cast<size_t>(after - steps_.begin()) - 1;
}

int64_t HostProfile::earliest(const Need& need, int64_t from_ms, int64_t duration_ms) const {
  while (true) {
    const int64_t start_ms = earliest_free(need, from_ms, duration_ms);
    if (start_ms == kNever || host_->kept.empty()) return start_ms;
    const Kept* kept = host_->keeps_off(need, start_ms, later(start_ms, duration_ms));
    if (kept == nullptr) return start_ms;
    from_ms = kept->end_ms;  // after start_ms, as it overlaps
  }
}

int64_t HostProfile::earliest_free(const Need& need, int64_t from_ms, int64_t duration_ms) const {
  size_t i = index_at(from_ms);
  while (i < steps_.size()) {
    if (!fits(steps_[i], need)) {
      ++i;
      continue;
    }
    const int64_t start_ms = std::max(from_ms, steps_[i].from_ms);
    const int64_t until_ms = later(start_ms, duration_ms);
    size_t j = i + 1;
    while (j < steps_.size() && steps_[j].from_ms < until_ms && fits(steps_[j], need)) ++j;
    if (j == steps_.size() || steps_[j].from_ms >= until_ms) return start_ms;
    i = j;
  }
  return kNever;
}

// Makes a step begin at that time, and returns its place.
size_t HostProfile::split(int64_t time_ms) {
  const size_t i = index_at(time_ms);
  if (steps_[i].from_ms >= time_ms) return i;
  Step step = steps_[i];
  step.from_ms = time_ms;
  steps_.insert(steps_.begin() + static_cast<int64_t>(i) + 1, std::move(step));
  return i + 1;
}

void HostProfile::reserve(const Need& need, int64_t from_ms, int64_t until_ms) {
  const size_t first = split(from_ms);
  const size_t end = until_ms == kNever ? steps_.size() : split(until_ms);
  for (size_t i = first; i < end; ++i) {
    steps_[i].free.take(need);
    if (need.exclusive) steps_[i].free.cpus = 0;
    steps_[i].idle = false;
  }
}

}  // namespace xce::sched
