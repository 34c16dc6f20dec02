#include "scheduler/sim/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "scheduler/sim/command.h"
#include "scheduler/sim/generate.h"

namespace xce::sched {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Row {
  int64_t submit_s, run_s, estimate_s;
  uint32_t cpus;
  int64_t user = 1;
};

Trace trace_of(const std::vector<Row>& rows) {
  Trace trace;
  for (const Row& row : rows) {
    trace.jobs.push_back(TraceJob{static_cast<int64_t>(trace.jobs.size()) + 1, row.submit_s,
                                  row.run_s, row.estimate_s, row.cpus, row.user});
  }
  return trace;
}

Trace generated(size_t jobs, uint64_t seed) {
  GenerateOptions options;
  options.jobs = jobs;
  options.seed = seed;
  return *parse_swf(generate_swf(options), "generated");
}

SimOptions options_of(uint32_t cpus, Backfill backfill) {
  SimOptions options;
  options.cpus = cpus;
  options.backfill = backfill;
  return options;
}

std::vector<int64_t> waits(const Trace& trace, const SimOptions& options) {
  std::vector<int64_t> out;
  simulate(trace, options, [&out](const SimJob& j) { out.push_back(j.start_s - j.job->submit_s); });
  return out;
}

// Ten processors. Job 1 has 6 of them until 100; job 2 wants 8 and must wait for that; job 3 wants
// 4 for 50 and fits beside job 1; job 4 wants 4 for 200, which would delay job 2.
const std::vector<Row> kSmall = {
    {0, 100, 100, 6}, {10, 100, 100, 8}, {20, 50, 50, 4}, {30, 200, 200, 4}};

TEST(Simulate, FcfsWaitsComputedByHand) {
  // Job 2 at 100, jobs 3 and 4 when it ends at 200.
  EXPECT_THAT(waits(trace_of(kSmall), options_of(10, Backfill::kNone)),
              ElementsAre(0, 90, 180, 170));
}

TEST(Simulate, EasyWaitsComputedByHand) {
  // Job 3 runs from 20 to 70; job 4 must not go beside it (4 of 4 free from 70 on, but it would
  // last until 270 and leave 6 for job 2): it starts when job 2 ends.
  const Trace trace = trace_of(kSmall);
  EXPECT_THAT(waits(trace, options_of(10, Backfill::kEasy)), ElementsAre(0, 90, 0, 170));
  const SimResult r = simulate(trace, options_of(10, Backfill::kEasy));
  EXPECT_EQ(r.jobs, 4u);
  EXPECT_DOUBLE_EQ(r.mean_wait_s, 65);
  EXPECT_DOUBLE_EQ(r.median_wait_s, 0);
  EXPECT_DOUBLE_EQ(r.max_wait_s, 170);
  EXPECT_DOUBLE_EQ(r.mean_bounded_slowdown, (1 + 1.9 + 1 + 1.85) / 4);
  EXPECT_EQ(r.makespan_s, 400);
  EXPECT_DOUBLE_EQ(r.utilization, (600 + 800 + 200 + 800) / 4000.0);
  EXPECT_EQ(r.backfilled, 1);
}

TEST(Simulate, EasyUsesWhatTheReservationLeaves) {
  // Two processors are left beside job 2 once it runs: job 3 of 2 may last as long as it likes.
  // Then nothing is left, and job 4 waits until job 2 has ended.
  EXPECT_THAT(
      waits(trace_of({{0, 100, 100, 6}, {10, 100, 100, 8}, {20, 900, 900, 2}, {30, 900, 900, 2}}),
            options_of(10, Backfill::kEasy)),
      ElementsAre(0, 90, 0, 170));
}

TEST(Simulate, AnEarlyEndIsUsedAtOnce) {
  EXPECT_THAT(waits(trace_of({{0, 30, 100, 6}, {10, 100, 100, 8}, {20, 90, 95, 2}}),
                    options_of(10, Backfill::kEasy)),
              ElementsAre(0, 20, 0));
}

TEST(Simulate, BoundedSlowdownOfShortJobsAndNoRunTime) {
  const SimResult r = simulate(trace_of({{0, 20, 20, 1}, {0, 0, 1, 1}, {5, 5, 5, 1}}),
                               options_of(1, Backfill::kNone));
  EXPECT_DOUBLE_EQ(r.mean_bounded_slowdown, (1 + 2 + 2) / 3.0);  // (20+0)/10, (15+5)/10
}

TEST(Simulate, JobsTooLargeAreLeftOut) {
  const SimResult r =
      simulate(trace_of({{0, 10, 10, 4}, {0, 10, 10, 5}}), options_of(4, Backfill::kEasy));
  EXPECT_EQ(r.jobs, 1u);
  EXPECT_EQ(r.impossible, 1u);
}

TEST(Simulate, FairShareServesTheOneWhoUsedLess) {
  const Trace trace = trace_of({{0, 100, 100, 1, 1}, {1, 100, 100, 1, 1}, {2, 100, 100, 1, 2}});
  SimOptions options = options_of(1, Backfill::kEasy);
  EXPECT_THAT(waits(trace, options), ElementsAre(0, 99, 198));
  options.fair_share_half_life_s = 3600;
  EXPECT_THAT(waits(trace, options), ElementsAre(0, 199, 98));
}

// Each job is planned after those before it only, and nothing ends late: backfill costs nobody.
TEST(Simulate, ConservativeStartsNoJobLaterThanFcfsWithExactEstimates) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Trace trace = generated(400, seed);
    for (TraceJob& job : trace.jobs) job.estimate_s = std::max<int64_t>(job.run_s, 1);
    const auto fcfs = waits(trace, options_of(256, Backfill::kNone));
    SimOptions options = options_of(256, Backfill::kConservative);
    const auto conservative = waits(trace, options);
    for (size_t i = 0; i < fcfs.size(); ++i)
      ASSERT_LE(conservative[i], fcfs[i]) << "seed " << seed << " job " << i + 1;
  }
}

TEST(Simulate, NeverMoreInUseThanThereIs) {
  const Trace trace = generated(3000, 7);
  for (const Backfill backfill : {Backfill::kNone, Backfill::kEasy, Backfill::kConservative}) {
    std::map<int64_t, int64_t> change;
    size_t told = 0;
    simulate(trace, options_of(256, backfill), [&](const SimJob& j) {
      ++told;
      ASSERT_GE(j.start_s, j.job->submit_s);
      ASSERT_EQ(j.end_s, j.start_s + j.job->run_s);
      change[j.start_s] += j.job->cpus;
      change[j.end_s] -= j.job->cpus;
    });
    EXPECT_EQ(told, 3000u);
    int64_t used = 0;
    for (const auto& [time, by] : change) {
      used += by;
      ASSERT_LE(used, 256);
    }
  }
}

TEST(Simulate, AHundredThousandJobsTakeSeconds) {  // the test's time limit says so
  const Trace trace = generated(100'000, 3);
  EXPECT_EQ(simulate(trace, options_of(256, Backfill::kEasy)).jobs, 100'000u);
}

TEST(Report, TextAndJson) {
  Trace trace = trace_of(kSmall);
  trace.no_estimate = 4;
  const std::vector<PolicyResult> results = {
      {"easy", simulate(trace, options_of(10, Backfill::kEasy))}};
  const std::string text = report_text("t.swf", trace, 10, results);
  EXPECT_THAT(text, HasSubstr("t.swf: 4 jobs on 10 processors\n"));
  EXPECT_THAT(text, HasSubstr("4 jobs without a requested time"));
  EXPECT_THAT(text, HasSubstr("60.00%       400 s"));
  const std::string json = report_json("t.swf", trace, 10, results);
  EXPECT_THAT(json, HasSubstr("\"policy\": \"easy\""));
  EXPECT_THAT(json, HasSubstr("\"utilization\": 0.6"));
}

}  // namespace
}  // namespace xce::sched
