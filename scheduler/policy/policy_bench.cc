// What a round, its reasons and the estimates cost with many jobs and hosts. By hand:
//   bazel run -c opt //scheduler/policy:policy_bench -- [jobs] [hosts]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "scheduler/policy/estimate.h"
#include "scheduler/policy/policy_testutil.h"

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void print(const char* what, double ms) { printf("%-44s %9.3f ms\n", what, ms); }

// 200 kinds of jobs of 50 users in 4 queues over hosts of 64 cpus, all of them full.
int run(int jobs, int hosts) {
  using namespace xce::sched;
  Story s;
  for (int i = 0; i < hosts; ++i) s.host("host" + std::to_string(10000 + i), 64);
  for (int q = 0; q < 4; ++q) s.queue("queue" + std::to_string(q)).priority = q;
  auto begin = Clock::now();
  for (int i = 1; i <= jobs + hosts * 16; ++i) {
    xce::Job& job = s.job(i, 1 + i % 8);
    job.spec.user = "user" + std::to_string(i % 50);
    job.spec.queue = "queue" + std::to_string(i % 4);
    job.spec.time_limit_s = 600 * (1 + i % 24);
  }
  s.tell();
  print("the view hears of all jobs", ms_since(begin));
  begin = Clock::now();
  size_t started = 0, rounds = 0;
  for (size_t n = 1; n > 0; ++rounds) started += n = s.round().size();
  printf("%zu started, %zu wait\n", started, s.view.waiting());
  print("rounds that fill the cluster, each", ms_since(begin) / static_cast<double>(rounds));
  begin = Clock::now();
  for (int i = 0; i < 20; ++i) s.round();
  print("a round in which nothing starts", ms_since(begin) / 20);
  begin = Clock::now();
  size_t again = 0;
  xce::JobId ends = 1;
  for (int i = 0; i < 100; ++i) {
    while (s.jobs.count(ends) == 0 || s.jobs[ends].state != xce::JobState::kRunning) ++ends;
    s.end(ends);
    again += s.round().size();
  }
  printf("%zu started when 100 had ended\n", again);
  print("one job ends, and a round", ms_since(begin) / 100);
  begin = Clock::now();
  for (int i = 0; i < 100; ++i) collect_reasons(&s.view, s.now_ms += 1000, {}, nullptr);
  print("a pass over the reasons", ms_since(begin) / 100);
  begin = Clock::now();
  Outlook outlook = gather_outlook(s.view, s.now_ms, {});
  print("estimates: with the view locked", ms_since(begin));
  begin = Clock::now();
  const size_t n = estimate_starts(std::move(outlook), {}).size();
  print("estimates: the rest", ms_since(begin));
  printf("%zu jobs have an estimate\n", n);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc > 1 ? atoi(argv[1]) : 100'000, argc > 2 ? atoi(argv[2]) : 1000);
}
