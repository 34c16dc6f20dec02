#include "scheduler/policy/round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/policy/policy_testutil.h"

namespace xce::sched {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Round, FirstComeFirstServed) {
  Story s;
  s.host("h1", 2);
  for (JobId id = 1; id <= 4; ++id) s.job(id);
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 2));
  EXPECT_THAT(s.round(), IsEmpty());
  s.end(1);
  EXPECT_THAT(s.round(), ElementsAre(3));
}

TEST(Round, QueuePriorityThenJobPriorityThenId) {
  Story s;
  s.host("h1", 10);
  s.queue("urgent").priority = 5;
  s.queue("default");
  s.job(1).spec.priority = 0;
  s.job(2).spec.priority = 7;
  s.job(3).spec.queue = "urgent";
  s.job(4).spec.queue = "urgent";
  s.jobs[4].spec.priority = 1;
  s.job(5);
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(4, 3, 2, 1, 5));
}

TEST(Round, QueuesOfOnePriorityAreServedAsOne) {
  Story s;
  s.host("h1", 10);
  s.queue("a");
  s.queue("b");
  for (JobId id = 1; id <= 4; ++id) s.job(id).spec.queue = id % 2 ? "b" : "a";
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 2, 3, 4));
}

TEST(Round, BestFitPacksSoThatLargeJobsFindRoom) {
  Story s;
  s.host("large", 8);
  s.host("small", 2);
  s.job(1, 2);
  s.job(2, 8);
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 2));
  EXPECT_EQ(s.host_of(1), "small");
  EXPECT_EQ(s.host_of(2), "large");
}

TEST(Round, MemoryAndGenericResourcesCount) {
  Story s;
  s.host("plain", 8, 1000);
  s.host("gpu", 8, 8000, {{"gpu", 2}});
  s.job(1).spec.memory_mb = 4000;
  s.job(2).spec.gres = {{"gpu", 1}};
  s.job(3).spec.gres = {{"gpu", 2}};
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 2));
  EXPECT_EQ(s.host_of(1), "gpu");
  EXPECT_EQ(s.host_of(2), "gpu");
  s.end(2);
  EXPECT_THAT(s.round(), ElementsAre(3));
}

TEST(Round, ExclusiveTakesAnIdleHostWhole) {
  Story s;
  s.host("h1", 4);
  s.job(1);
  s.job(2).spec.exclusive = true;
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1));
  s.end(1);
  EXPECT_THAT(s.round(), ElementsAre(2));
  EXPECT_EQ(s.jobs[2].allocs[0].cpus, 4u);
  s.job(3);
  s.tell(3);
  EXPECT_THAT(s.round(), IsEmpty());
}

TEST(Round, SeveralHostsOrNone) {
  Story s;
  s.host("h1", 4);
  s.host("h2", 4);
  s.job(1, 3).spec.nodes = 2;
  s.job(2, 4).spec.nodes = 3;
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1));
  ASSERT_EQ(s.jobs[1].allocs.size(), 2u);
  EXPECT_NE(s.jobs[1].allocs[0].host, s.jobs[1].allocs[1].host);
}

TEST(Round, DrainedAndUnreachableHostsGetNothing) {
  Story s;
  s.host_state("h1", 4, HostState::kDrained);
  s.host_state("h2", 4, HostState::kUnreachable);
  s.job(1);
  s.tell();
  EXPECT_THAT(s.round(), IsEmpty());
  s.host_state("h1", 4, HostState::kUp);
  EXPECT_THAT(s.round(), ElementsAre(1));
}

TEST(Round, LimitsHoldUpNobodyElse) {
  Story s;
  s.host("h1", 100);
  s.queue("default").max_running_per_user = 1;
  s.queue("one").max_running = 1;
  s.queue("stopped").active = false;
  s.queue("stopped").priority = 9;
  s.job(1);
  s.job(2);
  s.job(3).spec.user = "bob";
  s.job(4).spec.queue = "one";
  s.job(5).spec.queue = "one";
  s.job(6).spec.queue = "stopped";
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 3, 4));
  s.end(1);
  s.end(4);
  EXPECT_THAT(s.round(), ElementsAre(2, 5));
}

TEST(Round, ArrayLimit) {
  Story s;
  s.host("h1", 100);
  for (JobId id = 1; id <= 5; ++id) {
    Job& task = s.job(id);
    task.array_id = 1;
    task.spec.array_limit = 2;
  }
  s.job(6);
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 2, 6));
  EXPECT_EQ(s.reason(3), "array limit 2 reached");
  s.end(2);
  EXPECT_THAT(s.round(), ElementsAre(3));
}

TEST(Round, HeldJobsWaitUntilReleased) {
  Story s;
  s.host("h1", 4);
  s.job(1).state = JobState::kHeld;
  s.tell();
  EXPECT_THAT(s.round(), IsEmpty());
  s.jobs[1].state = JobState::kPending;
  s.tell(1);
  EXPECT_THAT(s.round(), ElementsAre(1));
}

TEST(Backfill, AShortJobMayGoFirstALongOneMayNot) {
  Story s;
  s.host("h1", 4);
  s.job(1, 3).spec.time_limit_s = 100;
  s.job(2, 4).spec.time_limit_s = 100;  // first in line: starts when 1 ends
  s.job(3, 1).spec.time_limit_s = 200;  // would delay 2
  s.job(4, 1).spec.time_limit_s = 50;   // ends before
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 4));
  s.now_ms += 100'000;
  s.end(1);
  s.end(4);
  EXPECT_THAT(s.round(), ElementsAre(2));
}

TEST(Backfill, WhatTheReservationLeavesOverMayBeUsedForever) {
  Story s;
  s.host("h1", 8);
  s.job(1, 6).spec.time_limit_s = 100;
  s.job(2, 7).spec.time_limit_s = 100;
  s.job(3, 1);  // no limit: fits beside 2
  s.job(4, 1);  // would not
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 3));
}

TEST(Backfill, OtherHostsAreFreeToUse) {
  Story s;
  s.host("big", 8);
  s.host("small", 2);
  s.job(1, 6);
  s.job(2, 8);  // only "big" will do
  s.job(3, 2);
  s.job(4, 1);
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 3));
  EXPECT_EQ(s.host_of(3), "small");
}

TEST(Backfill, ALargeJobIsNotStarvedByJobsWithoutLimit) {
  Story s;
  s.host("h1", 4);
  for (JobId id = 1; id <= 4; ++id) s.job(id);
  s.tell();
  ASSERT_EQ(s.round().size(), 4u);
  s.job(5, 4);
  s.job(6);
  s.tell();
  s.end(1);
  EXPECT_THAT(s.round(), IsEmpty());
  s.end(2);
  s.end(3);
  s.end(4);
  EXPECT_THAT(s.round(), ElementsAre(5));
}

TEST(Backfill, AnImpossibleJobHoldsUpNobody) {
  Story s;
  s.host("h1", 4);
  s.job(1, 64);
  s.job(2);
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(2));
}

TEST(Round, NoMoreThanOneCommandHolds) {
  Story s;
  s.host("h1", 1000);
  for (JobId id = 1; id <= 300; ++id) s.job(id);
  s.tell();
  const RoundResult first = run_round(&s.view, s.now_ms);
  EXPECT_EQ(first.dispatches.size(), 256u);
  EXPECT_TRUE(first.more);
  const RoundResult second = run_round(&s.view, s.now_ms);
  EXPECT_EQ(second.dispatches.size(), 44u);
  EXPECT_FALSE(second.more);
}

// The cost of a round follows what can start, not how many jobs wait.
TEST(Round, LooksAtKindsOfJobsNotAtJobs) {
  Story s;
  s.host("h1", 4);
  for (JobId id = 1; id <= 50'000; ++id) s.job(id);
  s.tell();
  EXPECT_LE(run_round(&s.view, s.now_ms).tries, 5u);
  EXPECT_LE(run_round(&s.view, s.now_ms).tries, 1u);
}

TEST(FirstStartable, IsWhatAnySchedulerWouldStart) {
  Story s;
  s.host("h1", 4);
  s.queue("stopped").active = false;
  s.queue("stopped").priority = 9;
  s.job(1).spec.queue = "stopped";
  s.job(2, 64);
  s.job(3, 3);
  s.job(4, 2);
  s.job(5, 1);
  s.tell();
  EXPECT_EQ(first_startable(s.view, s.now_ms), 3u);
  s.round();
  EXPECT_EQ(first_startable(s.view, s.now_ms), 0u);  // 4 waits, and 5 with it
}

}  // namespace
}  // namespace xce::sched
