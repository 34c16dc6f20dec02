#include "scheduler/policy/estimate.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

#include "scheduler/policy/plan.h"
#include "scheduler/policy/round.h"

namespace xce::sched {
namespace {

// ---- gathering

class Gatherer {
 public:
  Gatherer(const View& view, int64_t now_ms, const EstimateLimits& limits)
      : view_(view), limits_(limits) {
    out_.now_ms = now_ms;
  }

  Outlook run() {
    out_.ready.reserve(view_.ready().size());
    for (const auto& [line, heads] : view_.ready().lines()) {
      for (const auto& [position, cls] : heads) {
        const uint32_t place = class_of(*cls->key);
        for (const JobId id : cls->waiting) out_.ready.push_back({id, place});
      }
    }
    view_.each_blocked([this](const JobRecord& job) { add_blocked(job); });
    if (!out_.blocked.empty()) {
      for (const Outlook::Waiting& job : out_.ready) {
        const JobId array = view_.find(job.job)->array_id;
        if (array != 0) out_.arrays[job.job] = array;
      }
    }
    add_hosts();
    for (Outlook::Class& cls : out_.classes) cls.possible = cls.possible && is_possible(cls);
    return std::move(out_);
  }

 private:
  int64_t run_ms(const ClassKey& key) const {
    const int64_t limit_s = view_.time_limit_s(key);
    if (limit_s > 0) return limit_s * 1000;
    const int64_t usual = view_.usual_run_ms(key.user);
    return usual > 0 ? usual : limits_.unknown_run_ms;
  }

  // Each class of ready jobs comes once; only blocked jobs share them and one another's.
  uint32_t class_of(const ClassKey& key) {
    const auto place = static_cast<uint32_t>(out_.classes.size());
    if (view_.has_blocked()) {
      const auto [it, fresh] = classes_.try_emplace(key, place);
      if (!fresh) return it->second;
    }
    Outlook::Class cls;
    const Queue* queue = view_.queue(key.queue);
    cls.negated_queue_priority = queue == nullptr ? 0 : -static_cast<int64_t>(queue->priority);
    cls.negated_priority = key.negated_priority;
    cls.usage = view_.fair_share().on() ? view_.fair_share().usage(key.user, out_.now_ms) : 0;
    cls.need = key.need;
    cls.nodes = key.nodes;
    cls.run_ms = run_ms(key);
    cls.possible = queue == nullptr || queue->active;
    if (queue != nullptr) {
      add_limit(&cls, queue->max_running, std::make_tuple(key.queue, NameId{0}, JobId{0}, 'q'));
      add_limit(&cls, queue->max_running_per_user,
                std::make_tuple(key.queue, key.user, JobId{0}, 'u'));
      const uint64_t cpus = uint64_t{key.need.cpus} * key.nodes;
      if (queue->max_cpus_per_user >= cpus)
        add_limit(&cls, static_cast<uint32_t>(queue->max_cpus_per_user / cpus),
                  std::make_tuple(key.queue, key.user, JobId{0}, 'c'));
      else if (queue->max_cpus_per_user > 0)
        cls.possible = false;
    }
    add_limit(&cls, key.array_limit, std::make_tuple(NameId{0}, NameId{0}, key.limited_array, 'a'));
    out_.classes.push_back(std::move(cls));
    return place;
  }

  using LimitKey = std::tuple<NameId, NameId, JobId, char>;
  void add_limit(Outlook::Class* cls, uint32_t most, const LimitKey& key) {
    if (most == 0) return;
    auto [it, fresh] = limit_places_.try_emplace(key, out_.limits.size());
    if (fresh) out_.limits.push_back(RunLimit{most, {}});
    cls->limits.push_back(it->second);
  }

  void add_blocked(const JobRecord& job) {
    Dependency which;
    JobFate fate;
    if (view_.dependencies(job, &which, &fate) != DependencyVerdict::kWaits) return;
    Outlook::Blocked blocked;
    blocked.job = job.id;
    blocked.array_id = job.array_id;
    blocked.cls = class_of(job.key);
    blocked.waits_for = which.job;
    blocked.whole_array = fate.array_id != 0 && fate.array_id == which.job &&
                          which.kind != DependencyKind::kSingleton;
    blocked.for_its_start = which.kind == DependencyKind::kAfter;
    out_.blocked.push_back(blocked);
  }

  // Hosts as they are; holds without a known end get a likely one.
  void add_hosts() {
    std::map<JobId, int64_t> seen;
    for (const auto& [name, host] : view_.hosts().hosts()) {
      const bool usable = host.usable();
      if (usable) out_.hosts.push_back(host);
      for (const auto& [id, hold] : host.holds) {
        auto [it, fresh] = seen.try_emplace(id, 0);
        if (fresh) it->second = likely_end(id, hold);
        if (fresh) note_running(id, it->second);
        if (usable) out_.hosts.back().holds[id].ends_ms = it->second;
      }
    }
  }
  int64_t likely_end(JobId id, const Hold& hold) const {
    if (hold.ends_ms != 0) return std::max(hold.ends_ms, out_.now_ms + 1);
    const JobRecord* job = view_.find(id);
    if (job == nullptr || job->start_ms == 0) return out_.now_ms + limits_.unknown_run_ms;
    const int64_t end_ms = job->start_ms + run_ms(job->key);
    // One that has outlived what was expected will run as long again, as far as anybody can tell.
    return end_ms > out_.now_ms ? end_ms : 2 * out_.now_ms - job->start_ms + 1;
  }
  void note_running(JobId id, int64_t end_ms) {
    const JobRecord* job = view_.find(id);
    if (job == nullptr) return;
    for (const LimitKey& key :
         {LimitKey{job->key.queue, 0, 0, 'q'}, LimitKey{job->key.queue, job->key.user, 0, 'u'},
          LimitKey{job->key.queue, job->key.user, 0, 'c'},
          LimitKey{0, 0, job->key.limited_array, 'a'}}) {
      auto it = limit_places_.find(key);
      if (it != limit_places_.end()) out_.limits[it->second].ends_ms.push_back(end_ms);
    }
    if (out_.blocked.empty()) return;
    out_.ends_ms[id] = end_ms;
    if (job->array_id == 0) return;
    int64_t& latest = out_.array_ends_ms[job->array_id];
    latest = std::max(latest, end_ms);
  }

  bool is_possible(const Outlook::Class& cls) const {
    uint32_t capable = 0;
    for (const HostSlot& host : out_.hosts) {
      if (!host.total.fits(cls.need)) continue;
      if (++capable == cls.nodes) return true;
    }
    return false;
  }

  const View& view_;
  const EstimateLimits& limits_;
  Outlook out_;
  std::map<ClassKey, uint32_t> classes_;
  std::map<LimitKey, size_t> limit_places_;
};

// ---- working it out

// Cpus of all hosts as one pool, filled in the order of time.
class Pool {
 public:
  Pool(const Plan& plan, int64_t now_ms) : now_ms_(now_ms) {
    for (const HostProfile& profile : plan.profiles()) {
      int64_t before = 0;
      profile.each_step([&](int64_t from_ms, uint32_t free) {
        changes_[from_ms] += static_cast<int64_t>(free) - before;
        before = free;
      });
    }
    advance();
  }
  // When so many cpus are free; never before an earlier answer, but for those that must not start
  // before from_ms. 0: never.
  int64_t place(int64_t cpus, int64_t from_ms, int64_t run_ms) {
    if (from_ms > now_ms_) {
      changes_[from_ms] -= cpus;
      changes_[from_ms + run_ms] += cpus;
      return from_ms;
    }
    while (free_ < cpus && !changes_.empty()) advance();
    if (free_ < cpus) return 0;
    free_ -= cpus;
    changes_[now_ms_ + std::max<int64_t>(run_ms, 1)] += cpus;
    return now_ms_;
  }

 private:
  void advance() {
    if (changes_.empty()) return;
    now_ms_ = std::max(now_ms_, changes_.begin()->first);
    free_ += changes_.begin()->second;
    changes_.erase(changes_.begin());
  }

  int64_t now_ms_;
  int64_t free_ = 0;
  std::map<int64_t, int64_t> changes_;  // time -> cpus more or fewer
};

class Solver {
 public:
  Solver(Outlook outlook, const EstimateLimits& limits)
      : in_(std::move(outlook)), plan_(in_.hosts, in_.now_ms) {
    exact_ =
        in_.hosts.empty() ? 0 : std::min(limits.exact_jobs, limits.host_budget / in_.hosts.size());
    for (RunLimit& limit : in_.limits)
      std::make_heap(limit.ends_ms.begin(), limit.ends_ms.end(), std::greater<>());
    for (const HostSlot& host : in_.hosts) host_cpus_ = std::max(host_cpus_, host.total.cpus);
  }

  std::vector<StartEstimate> run() {
    const auto place = [this](const Outlook::Waiting& job) {
      const Outlook::Class& cls = in_.classes[job.cls];
      return std::make_tuple(cls.negated_queue_priority, cls.negated_priority, cls.usage, job.job);
    };
    std::sort(in_.ready.begin(), in_.ready.end(),
              [&](const auto& a, const auto& b) { return place(a) < place(b); });
    for (const Outlook::Waiting& job : in_.ready) {
      auto array = in_.arrays.find(job.job);
      add(job.job, in_.classes[job.cls], array == in_.arrays.end() ? 0 : array->second, in_.now_ms);
    }
    for (const Outlook::Blocked& job : in_.blocked) add_blocked(job);
    return std::move(out_);
  }

 private:
  void add_blocked(const Outlook::Blocked& job) {
    const auto& times = job.for_its_start ? starts_ : in_.ends_ms;
    const auto& known = job.whole_array && !job.for_its_start ? in_.array_ends_ms : times;
    auto it = known.find(job.waits_for);
    if (it == known.end()) return;
    add(job.job, in_.classes[job.cls], job.array_id, it->second + 1);
  }

  void add(JobId id, const Outlook::Class& cls, JobId array_id, int64_t from_ms) {
    if (!cls.possible) return;
    for (const size_t place : cls.limits) {
      const RunLimit& limit = in_.limits[place];
      if (limit.ends_ms.size() >= limit.most) from_ms = std::max(from_ms, limit.ends_ms.front());
    }
    const int64_t start_ms = out_.size() < exact_ ? plan(cls, from_ms) : pool(cls, from_ms);
    if (start_ms == 0) return;
    const int64_t end_ms = start_ms + cls.run_ms;
    for (const size_t place : cls.limits) use(&in_.limits[place], end_ms);
    out_.push_back({id, start_ms});
    if (in_.blocked.empty()) return;
    starts_[id] = start_ms;
    in_.ends_ms[id] = end_ms;
    if (array_id == 0) return;
    int64_t& latest = in_.array_ends_ms[array_id];
    latest = std::max(latest, end_ms);
  }

  static void use(RunLimit* limit, int64_t end_ms) {
    auto& ends = limit->ends_ms;
    if (ends.size() >= limit->most) {
      std::pop_heap(ends.begin(), ends.end(), std::greater<>());
      ends.pop_back();
    }
    ends.push_back(end_ms);
    std::push_heap(ends.begin(), ends.end(), std::greater<>());
  }

  int64_t plan(const Outlook::Class& cls, int64_t from_ms) {
    const Plan::Slot slot = plan_.find(cls.need, cls.nodes, cls.run_ms, from_ms);
    if (slot.starts_ms == kNever) return 0;
    plan_.reserve(slot, cls.need, cls.run_ms);
    return slot.starts_ms;
  }
  int64_t pool(const Outlook::Class& cls, int64_t from_ms) {
    if (!pool_) pool_ = std::make_unique<Pool>(plan_, in_.now_ms);
    const int64_t cpus = cls.need.exclusive ? host_cpus_ : cls.need.cpus;
    return pool_->place(cpus * cls.nodes, from_ms, cls.run_ms);
  }

  Outlook in_;
  Plan plan_;
  std::unique_ptr<Pool> pool_;
  size_t exact_ = 0;
  uint32_t host_cpus_ = 1;  // of the largest host
  std::map<JobId, int64_t> starts_;
  std::vector<StartEstimate> out_;
};

}  // namespace

Outlook gather_outlook(const View& view, int64_t now_ms, const EstimateLimits& limits) {
  return Gatherer(view, now_ms, limits).run();
}

std::vector<StartEstimate> estimate_starts(Outlook outlook, const EstimateLimits& limits) {
  return Solver(std::move(outlook), limits).run();
}

}  // namespace xce::sched
