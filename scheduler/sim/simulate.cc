#include "scheduler/sim/simulate.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <utility>

#include "scheduler/policy/round.h"
#include "scheduler/policy/view.h"

namespace xce::sched {
namespace {

constexpr int64_t kEpochMs = 1'000'000;  // the view takes time 0 for "not known"
constexpr char kHost[] = "pool";

class Simulation {
 public:
  Simulation(const Trace& trace, const SimOptions& options) : options_(options) {
    limits_.backfill = options.backfill;
    limits_.max_tries = SIZE_MAX;  // a bound for the sake of reaction time; here only results count
    view_.set_fair_share(options.fair_share_half_life_s * 1000);
    Host host;
    host.attrs.name = kHost;
    host.attrs.cpus = options.cpus;
    host.modify_index = ++revision_;
    view_.put_host(host);
    for (const TraceJob& job : trace.jobs) {
      if (job.cpus > options.cpus) {
        ++impossible_;
      } else {
        ran_.push_back(SimJob{&job, -1, -1});
      }
    }
  }

  void run() {
    size_t next = 0;
    while (next < ran_.size() || !ends_.empty()) {
      int64_t now_s = next < ran_.size() ? ran_[next].job->submit_s : INT64_MAX;
      if (!ends_.empty()) now_s = std::min(now_s, ends_.top().first);
      // Whatever happens in one second is known before anything is decided, ends first.
      for (; !ends_.empty() && ends_.top().first == now_s; ends_.pop()) end(ends_.top().second);
      for (; next < ran_.size() && ran_[next].job->submit_s == now_s; ++next) submit(next);
      decide(now_s);
    }
  }

  const std::vector<SimJob>& jobs() const { return ran_; }
  size_t impossible() const { return impossible_; }
  int64_t backfilled() const { return backfilled_; }

 private:
  static int64_t ms(int64_t s) { return kEpochMs + s * 1000; }

  Job record_of(size_t place) {
    const TraceJob& from = *ran_[place].job;
    Job job;
    job.id = place + 1;
    job.spec.cpus = from.cpus;
    job.spec.user = from.user < 0 ? "nobody" : std::to_string(from.user);
    job.spec.queue = "default";
    job.spec.time_limit_s = static_cast<uint32_t>(std::min<int64_t>(from.estimate_s, UINT32_MAX));
    job.submit_ms = ms(from.submit_s);
    job.modify_index = ++revision_;
    return job;
  }

  void submit(size_t place) {
    view_.put_job(record_of(place));
    waiting_.insert(place);
  }

  void end(size_t place) {
    Job job = record_of(place);
    job.state = JobState::kCompleted;
    job.starts = 1;
    job.start_ms = ms(ran_[place].start_s);
    job.end_ms = ms(ran_[place].end_s);
    view_.put_job(job);
  }

  void decide(int64_t now_s) {
    while (!waiting_.empty()) {
      const RoundResult result = run_round(&view_, ms(now_s), limits_);
      for (const Dispatch& dispatch : result.dispatches) started(dispatch, now_s);
      if (!result.more) return;
    }
  }

  void started(const Dispatch& dispatch, int64_t now_s) {
    const size_t place = dispatch.job - 1;
    ran_[place].start_s = now_s;
    ran_[place].end_s = now_s + ran_[place].job->run_s;
    ends_.emplace(ran_[place].end_s, place);
    if (*waiting_.begin() != place) ++backfilled_;
    waiting_.erase(place);
    Job job = record_of(place);
    job.state = JobState::kRunning;
    job.attempt = dispatch.attempt;
    job.starts = 1;
    job.start_ms = ms(now_s);
    job.allocs = dispatch.allocs;
    view_.put_job(job);
  }

  const SimOptions options_;
  RoundLimits limits_;
  View view_;
  Index revision_ = 0;
  std::vector<SimJob> ran_;
  absl::btree_set<size_t> waiting_;
  using End = std::pair<int64_t, size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  size_t impossible_ = 0;
  int64_t backfilled_ = 0;
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// The smallest value that at least this part of all do not exceed (nearest rank). Sorted values.
double quantile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const double rank = part * static_cast<double>(sorted.size());
  size_t place = static_cast<size_t>(rank);
  if (static_cast<double>(place) == rank && place > 0) --place;
  return sorted[std::min(place, sorted.size() - 1)];
}

}  // namespace

SimResult simulate(const Trace& trace, const SimOptions& options,
                   const std::function<void(const SimJob&)>& each) {
  Simulation simulation(trace, options);
  simulation.run();
  SimResult result;
  result.jobs = simulation.jobs().size();
  result.impossible = simulation.impossible();
  result.backfilled = simulation.backfilled();
  std::vector<double> waits, slowdowns;
  double used = 0;
  int64_t first_s = INT64_MAX, last_s = 0;
  for (const SimJob& ran : simulation.jobs()) {
    if (each) each(ran);
    const double wait_s = static_cast<double>(ran.start_s - ran.job->submit_s);
    const double run_s = static_cast<double>(ran.job->run_s);
    waits.push_back(wait_s);
    slowdowns.push_back(std::max(1.0, (wait_s + run_s) / std::max(run_s, 10.0)));
    used += run_s * ran.job->cpus;
    first_s = std::min(first_s, ran.job->submit_s);
    last_s = std::max(last_s, ran.end_s);
  }
  if (result.jobs == 0) return result;
  result.mean_wait_s = mean(waits);
  result.mean_bounded_slowdown = mean(slowdowns);
  std::sort(waits.begin(), waits.end());
  std::sort(slowdowns.begin(), slowdowns.end());
  result.median_wait_s = quantile(waits, 0.5);
  result.p95_wait_s = quantile(waits, 0.95);
  result.max_wait_s = waits.back();
  result.median_bounded_slowdown = quantile(slowdowns, 0.5);
  result.p95_bounded_slowdown = quantile(slowdowns, 0.95);
  result.makespan_s = last_s - first_s;
  if (result.makespan_s > 0)
    result.utilization = used / (static_cast<double>(result.makespan_s) * options.cpus);
  return result;
}

}  // namespace xce::sched
