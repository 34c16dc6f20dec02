#include "scheduler/policy/fair_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "scheduler/policy/policy_testutil.h"

namespace xce::sched {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kHour = 3'600'000;

TEST(FairShare, OffMeansThatNobodyUsesAnything) {
  FairShare off;
  off.start(1, 4, 0);
  EXPECT_EQ(off.usage(1, kHour), 0);
}

TEST(FairShare, UsageGrowsWhileAJobRunsAndHalvesAfterwards) {
  FairShare share(kHour);
  share.start(1, 4, 1000);
  EXPECT_NEAR(share.usage(1, 1000 + 10'000), 40, 0.1);  // ten seconds: hardly any decay
  share.end(1, 4, 1000 + 10'000);
  const double used = share.usage(1, 11'000);
  EXPECT_NEAR(share.usage(1, 11'000 + kHour), used / 2, 1e-9);
  EXPECT_NEAR(share.usage(1, 11'000 + 3 * kHour), used / 8, 1e-9);
  EXPECT_EQ(share.usage(2, kHour), 0);
}

TEST(FairShare, AJobThatRunsForEverLevelsOff) {
  FairShare share(kHour);
  share.start(1, 1, 0);
  EXPECT_NEAR(share.usage(1, 100 * kHour), 3600 / std::log(2.0), 1e-6);
}

TEST(FairShare, TheOrderOfTellingDoesNotMatter) {
  FairShare in_order(kHour), late(kHour);
  in_order.start(1, 2, 0);
  in_order.start(1, 3, 5000);
  in_order.end(1, 2, 60'000);
  in_order.end(1, 3, 90'000);
  late.start(1, 3, 5000);
  late.end(1, 3, 90'000);
  late.start(1, 2, 0);
  late.end(1, 2, 60'000);
  EXPECT_NEAR(in_order.usage(1, kHour), late.usage(1, kHour), 1e-6);
}

TEST(FairShare, AStartThatNeverWasLeavesNothing) {
  FairShare share(kHour);
  share.start(1, 2, 7000);
  share.end(1, 2, 7000);
  EXPECT_EQ(share.usage(1, kHour), 0);
}

// ---- in rounds

void job_of(Story* s, JobId id, const std::string& user) { s->job(id).spec.user = user; }

TEST(FairShareRound, WhoUsedLessGoesFirst) {
  Story s;
  s.view.set_fair_share(kHour);
  s.host("h1", 1);
  for (JobId id = 1; id <= 3; ++id) job_of(&s, id, "ann");
  job_of(&s, 4, "bob");
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1));
  s.now_ms += 10'000;
  s.end(1);
  EXPECT_THAT(s.round(), ElementsAre(4));  // bob has used nothing so far
  s.now_ms += 60'000;
  s.end(4);
  EXPECT_THAT(s.round(), ElementsAre(2));  // bob has used more than ann by now
}

TEST(FairShareRound, OneRoundSharesAnEmptyCluster) {
  Story s;
  s.view.set_fair_share(kHour);
  s.host("h1", 4);
  for (JobId id = 1; id <= 4; ++id) job_of(&s, id, "ann");
  for (JobId id = 5; id <= 8; ++id) job_of(&s, id, "bob");
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 5, 2, 6));
}

TEST(FairShareRound, PrioritiesOfQueuesAndJobsComeFirst) {
  Story s;
  s.view.set_fair_share(kHour);
  s.host("h1", 1);
  s.queue("urgent").priority = 5;
  job_of(&s, 1, "ann");
  s.tell();
  s.round();
  job_of(&s, 2, "bob");
  job_of(&s, 3, "ann");
  s.jobs[3].spec.priority = 1;
  job_of(&s, 4, "ann");
  s.jobs[4].spec.queue = "urgent";
  s.tell();
  s.now_ms += 1000;
  s.end(1);
  EXPECT_THAT(s.round(), ElementsAre(4));
  s.end(4);
  EXPECT_THAT(s.round(), ElementsAre(3));
  s.end(3);
  EXPECT_THAT(s.round(), ElementsAre(2));
}

TEST(FairShareRound, ARefusedStartCostsNothing) {
  Story s;
  s.view.set_fair_share(kHour);
  s.host("h1", 1);
  job_of(&s, 1, "ann");
  s.tell();
  ASSERT_EQ(run_round(&s.view, s.now_ms).dispatches.size(), 1u);
  s.now_ms += 5000;
  s.view.roll_back(1, 1, 0);
  EXPECT_EQ(s.view.usage_of("ann", s.now_ms), 0);
}

TEST(FairShareRound, AFreshSchedulerCountsWhatRunsFromItsStart) {
  Story s;
  s.view.set_fair_share(kHour);
  s.host("h1", 2);
  job_of(&s, 1, "ann");
  s.jobs[1].state = JobState::kRunning;
  s.jobs[1].start_ms = s.now_ms - 100'000;
  s.jobs[1].allocs = {{"h1", 1, 0, {}}};
  s.tell();
  s.tell(1);  // told again: not counted again
  EXPECT_NEAR(s.view.usage_of("ann", s.now_ms), 100, 2);
  s.end(1);
  EXPECT_NEAR(s.view.usage_of("ann", s.now_ms), 100, 2);
  EXPECT_NEAR(s.view.usage_of("ann", s.now_ms + kHour), 50, 1);
}

TEST(FairShareRound, OffIsFirstComeFirstServed) {
  Story s;
  s.host("h1", 2);
  for (JobId id = 1; id <= 3; ++id) job_of(&s, id, id == 3 ? "bob" : "ann");
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 2));
  EXPECT_THAT(s.round(), IsEmpty());
}

}  // namespace
}  // namespace xce::sched
