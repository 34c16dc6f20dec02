// What a round, its reasons and the estimates cost with many jobs and hosts, in easy and in
// hard workloads. By hand:
//   bazel run -c opt //scheduler/policy:policy_bench -- [jobs] [hosts] [workload...]
// The view is locked during the first four; the pipeline works on beside the last.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "scheduler/policy/estimate.h"
#include "scheduler/policy/policy_testutil.h"

namespace xce::sched {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Times of one kind of work.
class Times {
 public:
  template <typename Work>
  void take(Work work) {
    const auto begin = Clock::now();
    work();
    const double ms = ms_since(begin);
    sum_ += ms;
    max_ = std::max(max_, ms);
    ++n_;
  }
  void print(const char* what) const {
    printf("  %-40s mean %8.3f ms, longest %8.3f ms\n", what, n_ == 0 ? 0 : sum_ / n_, max_);
  }

 private:
  double sum_ = 0, max_ = 0;
  int n_ = 0;
};

struct Workload {
  const char* name;
  const char* what;
  std::function<void(int, Job*)> fill;
  uint32_t host_cpus = 64;
  uint64_t host_memory_mb = 100'000;
  Backfill backfill = Backfill::kEasy;
  bool fair_share = false, preemption = false;
};

void basic(int i, Job* job) {
  job->spec.cpus = 1 + i % 8;
  job->spec.user = "user" + std::to_string(i % 50);
  job->spec.queue = "queue" + std::to_string(i % 4);
  job->spec.time_limit_s = 600 * (1 + i % 24);
}
// Every job is a kind of its own.
void different(int i, Job* job) {
  basic(i, job);
  job->spec.cpus = 2 + i % 7;
  job->spec.memory_mb = 1 + i;
}
// What is missing is memory, which hosts are not sorted by.
void no_memory(int i, Job* job) {
  basic(i, job);
  job->spec.cpus = 1 + i % 2;
  job->spec.memory_mb = 12'000 + i % 20'000;
}
void many_hosts(int i, Job* job) {
  different(i, job);
  job->spec.nodes = 1 + i % 32;
}
void many_users(int i, Job* job) {
  different(i, job);
  job->spec.user = "user" + std::to_string(i % 5000);
}
std::vector<Workload> workloads() {
  std::vector<Workload> all = {
      {"alike", "600 kinds of jobs, hosts full", basic},
      {"different", "each job another kind, one cpu left on each host", different, 65},
      {"memory", "each job another kind, hosts have cpus left but no memory", no_memory},
      {"wide", "each job another kind, on 1 to 32 hosts", many_hosts, 65},
      {"users", "fair share among 5,000 users", many_users, 65},
      {"preempt", "jobs of higher queues push out those of the lowest", different, 65},
      {"conservative", "conservative backfill, each job another kind", different, 65},
      {"conservative-memory", "the same, memory missing", no_memory},
  };
  all[4].fair_share = true;
  all[5].preemption = true;
  all[6].backfill = all[7].backfill = Backfill::kConservative;
  return all;
}

void run(const Workload& workload, int jobs, int hosts) {
  printf("%s: %s\n", workload.name, workload.what);
  Story s;
  if (workload.fair_share) s.view.set_fair_share(3'600'000);
  RoundLimits limits;
  limits.backfill = workload.backfill;
  for (int i = 0; i < hosts; ++i)
    s.host("host" + std::to_string(10000 + i), workload.host_cpus, workload.host_memory_mb);
  for (int q = 0; q < 4; ++q) s.queue("queue" + std::to_string(q)).priority = q;
  s.queue("queue0").preemptible = workload.preemption;
  for (int i = 1; i <= jobs + hosts * 8; ++i) workload.fill(i, &s.job(i));
  Times hear, fill, idle, one_ends, reasons, outlook, rest;
  size_t started = 0;
  const auto fill_hosts = [&] {
    for (size_t n = 1; n > 0; started += n) {
      RoundResult result;
      fill.take([&] { result = run_round(&s.view, s.now_ms, limits); });
      n = result.dispatches.size();
      for (const Dispatch& dispatch : result.dispatches) s.accept(dispatch);
    }
  };
  // The first ones fill the hosts from a queue that gives way; the others come after them.
  const JobId low = workload.preemption ? hosts * 16 : 0;
  for (auto& [id, job] : s.jobs) {
    if (low != 0) job.spec.queue = id <= low ? "queue0" : "queue" + std::to_string(1 + id % 3);
    if (id <= low) s.tell(id);
  }
  s.tell_queues();
  if (low != 0) fill_hosts();
  hear.take([&] { s.tell(); });
  fill_hosts();
  printf("  %zu started, %zu wait\n", started, s.view.waiting());
  for (int i = 0; i < 5; ++i) idle.take([&] { run_round(&s.view, s.now_ms, limits); });
  JobId ends = 1;
  for (int i = 0; i < 20; ++i) {
    while (s.jobs.count(ends) == 0 || s.jobs[ends].state != JobState::kRunning) ++ends;
    s.now_ms += 10;
    one_ends.take([&] {
      s.end(ends);
      s.round(limits);
    });
  }
  for (int i = 0; i < 20; ++i)
    reasons.take([&] { collect_reasons(&s.view, s.now_ms += 1000, {}, nullptr); });
  Outlook copy;
  size_t estimates = 0;
  outlook.take([&] { copy = gather_outlook(s.view, s.now_ms, {}); });
  rest.take([&] { estimates = estimate_starts(std::move(copy), {}).size(); });
  fill.print("a round that starts jobs");
  idle.print("a round in which nothing starts");
  one_ends.print("one job ends, and a round");
  reasons.print("a pass over the reasons");
  outlook.print("estimates: with the view locked");
  rest.print("estimates: the rest");
  hear.print("the view hears of all jobs");
  printf("  %zu jobs have an estimate\n", estimates);
}

}  // namespace
}  // namespace xce::sched

int main(int argc, char** argv) {
  const int jobs = argc > 1 ? atoi(argv[1]) : 100'000, hosts = argc > 2 ? atoi(argv[2]) : 1000;
  for (const auto& workload : xce::sched::workloads()) {
    const auto named = [&](const char* arg) { return std::string(arg) == workload.name; };
    if (argc <= 3 || std::any_of(argv + 3, argv + argc, named)) run(workload, jobs, hosts);
  }
  return 0;
}
