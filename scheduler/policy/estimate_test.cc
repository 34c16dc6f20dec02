#include "scheduler/policy/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/policy/policy_testutil.h"

namespace xce::sched {
namespace {

// Seconds from now until each waiting job's estimated start.
std::map<JobId, int64_t> seconds(const Story& s, const EstimateLimits& limits = {}) {
  std::map<JobId, int64_t> out;
  for (const StartEstimate& e : estimate_starts(gather_outlook(s.view, s.now_ms, limits), limits))
    out[e.job] = (e.start_ms - s.now_ms + 999) / 1000;
  return out;
}

using Times = std::map<JobId, int64_t>;

Job& limited(Story* s, JobId id, uint32_t cpus, uint32_t seconds) {
  Job& job = s->job(id, cpus);
  job.spec.time_limit_s = seconds;
  return job;
}

TEST(Estimate, EachWaitingJobInItsTurn) {
  Story s;
  s.host("h1", 2);
  limited(&s, 1, 2, 100);
  limited(&s, 2, 2, 50);
  limited(&s, 3, 1, 70);
  limited(&s, 4, 1, 10);
  s.tell();
  s.round();
  EXPECT_EQ(seconds(s), (Times{{2, 100}, {3, 150}, {4, 150}}));
  s.now_ms += 40'000;
  EXPECT_EQ(seconds(s), (Times{{2, 60}, {3, 110}, {4, 110}}));
}

// Behind the first few, hosts are one pool: the order is kept, and every job has a time.
TEST(Estimate, ManyJobsBehindTheFirst) {
  Story s;
  s.host("h1", 2);
  s.host("h2", 2);
  for (JobId id = 1; id <= 20; ++id) limited(&s, id, 1, 100);
  s.tell();
  s.round();
  EstimateLimits limits;
  limits.exact_jobs = 3;
  const Times times = seconds(s, limits);
  ASSERT_EQ(times.size(), 16u);
  for (JobId id = 5; id <= 20; ++id)
    EXPECT_EQ(times.at(id), static_cast<int64_t>((id - 1) / 4) * 100) << id;
}

TEST(Estimate, WithoutTimeLimitsByWhatIsUsual) {
  Story s;
  s.host("h1", 1);
  s.job(1);
  s.job(2);
  s.tell();
  s.round();
  EXPECT_EQ(seconds(s), (Times{{2, 3600}}));  // nothing is known
  s.now_ms += 30'000;
  s.end(1);
  EXPECT_EQ(s.round().size(), 1u);
  s.job(3);
  s.tell(3);
  EXPECT_EQ(seconds(s), (Times{{3, 30}}));
  s.now_ms += 45'000;  // longer than usual: as long again
  EXPECT_EQ(seconds(s), (Times{{3, 46}}));
}

TEST(Estimate, LimitsOfQueuesUsersAndArrays) {
  Story s;
  s.host("h1", 100);
  s.queue("one").max_running = 1;
  s.queue("user").max_running_per_user = 1;
  s.queue("cpus").max_cpus_per_user = 4;
  for (JobId id = 1; id <= 3; ++id) limited(&s, id, 1, 100).spec.queue = "one";
  for (JobId id = 4; id <= 5; ++id) limited(&s, id, 1, 100).spec.queue = "user";
  for (JobId id = 6; id <= 8; ++id) limited(&s, id, 2, 100).spec.queue = "cpus";
  for (JobId id = 9; id <= 11; ++id) {
    Job& task = limited(&s, id, 1, 100);
    task.array_id = 9;
    task.spec.array_limit = 2;
  }
  s.tell();
  s.round();
  EXPECT_EQ(seconds(s), (Times{{2, 100}, {3, 200}, {5, 100}, {8, 100}, {11, 100}}));
}

TEST(Estimate, ThoseThatWaitForOthers) {
  Story s;
  s.host("h1", 1);
  limited(&s, 1, 1, 100);
  limited(&s, 2, 1, 50);
  limited(&s, 3, 1, 10).spec.dependencies = {{DependencyKind::kAfterOk, 2}};
  limited(&s, 4, 1, 10).spec.dependencies = {{DependencyKind::kAfterAny, 3}};
  limited(&s, 5, 1, 10).state = JobState::kHeld;
  limited(&s, 6, 1, 10).spec.dependencies = {{DependencyKind::kAfterAny, 5}};
  s.tell();
  s.round();
  EXPECT_EQ(seconds(s), (Times{{2, 100}, {3, 151}, {4, 161}}));
}

TEST(Estimate, NoneForWhatCannotStart) {
  Story s;
  s.host("h1", 4);
  s.queue("stopped").active = false;
  limited(&s, 1, 8, 100);
  limited(&s, 2, 1, 100).spec.queue = "stopped";
  limited(&s, 3, 1, 100).spec.nodes = 2;
  s.tell();
  s.round();
  EXPECT_TRUE(seconds(s).empty());
}

}  // namespace
}  // namespace xce::sched
