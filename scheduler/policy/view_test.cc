#include "scheduler/policy/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/policy/policy_testutil.h"

namespace xce::sched {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(View, OlderRecordsAreIgnored) {
  Story s;
  s.host("h1", 4);
  s.job(1);
  s.tell();
  Job old = s.jobs[1];
  old.modify_index = 1;
  old.state = JobState::kHeld;
  s.view.put_job(old);
  EXPECT_THAT(s.round(), ElementsAre(1));
}

TEST(View, ADecisionHoldsItsHostsUntilConfirmed) {
  Story s;
  s.host("h1", 1);
  s.job(1);
  s.job(2);
  s.tell();
  ASSERT_EQ(run_round(&s.view, s.now_ms).dispatches.size(), 1u);
  s.tell(1);  // an event of before the dispatch was applied: still waiting, attempt 0
  EXPECT_THAT(run_round(&s.view, s.now_ms).dispatches, IsEmpty());
}

TEST(View, ARefusalIsPlannedAnewLaterOrWhenTheRecordChanges) {
  Story s;
  s.host("h1", 1);
  s.job(1);
  s.tell();
  ASSERT_EQ(run_round(&s.view, s.now_ms).dispatches.size(), 1u);
  s.view.roll_back(1, 1, s.now_ms + 100);
  EXPECT_THAT(run_round(&s.view, s.now_ms).dispatches, IsEmpty());
  s.now_ms += 100;
  ASSERT_EQ(run_round(&s.view, s.now_ms).dispatches.size(), 1u);
  s.view.roll_back(1, 1, s.now_ms + 100'000);
  s.view.roll_back(1, 1, s.now_ms + 100'000);  // twice is once
  s.tell(1);
  EXPECT_THAT(s.round(), ElementsAre(1));
  s.view.roll_back(1, 1, 0);  // confirmed by now: too late
  EXPECT_EQ(s.view.running().of_queue.size(), 1u);
}

TEST(View, ARequeuedJobGetsTheNextAttempt) {
  Story s;
  s.host("h1", 1);
  s.job(1);
  s.tell();
  s.round();
  s.jobs[1].state = JobState::kPending;
  s.jobs[1].allocs.clear();
  s.tell(1);
  const RoundResult again = run_round(&s.view, s.now_ms);
  ASSERT_EQ(again.dispatches.size(), 1u);
  EXPECT_EQ(again.dispatches[0].attempt, 2u);
}

// What runs inside a job (xce run --job) uses that job's hosts and counts for nothing by itself.
TEST(View, AStepHoldsNothingAndCountsNothing) {
  Story s;
  s.host("h1", 1);
  Job& step = s.job(1);
  step.spec.step = std::make_shared<const Step>(Step{9, {}, 1, 0, 0});
  step.state = JobState::kRunning;
  step.attempt = 1;
  step.start_ms = s.now_ms;
  step.allocs = {Alloc{"h1", 0, 0, {}}};
  s.job(2).spec.exclusive = true;
  s.tell();
  EXPECT_THAT(s.view.running().of_queue, IsEmpty());
  EXPECT_THAT(s.round(), ElementsAre(2));
  s.jobs[1].state = JobState::kCompleted;
  s.jobs[1].end_ms = s.now_ms + 5;
  s.tell(1);
  EXPECT_EQ(s.view.find(1), nullptr);
  EXPECT_EQ(s.view.running().of_queue.size(), 1u);
}

TEST(View, WhatDoesNotComeInARetakeIsGone) {
  Story s;
  s.host("h1", 1);
  s.host("h2", 1);
  s.job(1);
  s.job(2);
  s.job(3);
  s.tell();
  s.view.begin_retake();
  s.host("h1", 1);
  s.tell(2);
  s.view.put_job(s.jobs[3]);  // the same record as before
  s.view.end_retake();
  EXPECT_EQ(s.view.find(1), nullptr);
  EXPECT_EQ(s.view.hosts().usable_hosts(), 1u);
  EXPECT_THAT(s.round(), ElementsAre(2));
}

TEST(View, AStalePageRowDoesNotBringBackAnEndedJob) {
  Story s;
  s.host("h1", 1);
  s.job(1);
  s.tell();
  const Job row = s.jobs[1];
  s.view.begin_retake();
  s.end(1);
  s.view.put_job(row);
  s.view.remove_job(2, s.revision);
  Job removed = row;
  removed.id = 2;
  s.view.put_job(removed);
  s.view.end_retake();
  EXPECT_EQ(s.view.jobs(), 0u);
}

struct DependencyCase {
  DependencyKind kind;
  JobState fate;
  bool met;
  const char* words;
};

TEST(Dependencies, EveryKindAndFate) {
  const DependencyCase cases[] = {
      {DependencyKind::kAfter, JobState::kRunning, true, ""},
      {DependencyKind::kAfter, JobState::kPending, false, "waits for job 1 to start"},
      {DependencyKind::kAfterOk, JobState::kCompleted, true, ""},
      {DependencyKind::kAfterOk, JobState::kRunning, false, "waits for job 1 to succeed"},
      {DependencyKind::kAfterOk, JobState::kFailed, false,
       "dependency can never be met: job 1 failed"},
      {DependencyKind::kAfterNotOk, JobState::kTimeout, true, ""},
      {DependencyKind::kAfterNotOk, JobState::kCompleted, false,
       "dependency can never be met: job 1 completed"},
      {DependencyKind::kAfterAny, JobState::kRunning, false, "waits for job 1 to end"},
      {DependencyKind::kAfterAny, JobState::kLost, true, ""},
  };
  for (const DependencyCase& c : cases) {
    Story s;
    s.host("h1", 4);
    s.job(1).spec.cpus = 64;  // never starts by itself
    s.job(2).spec.dependencies = {{c.kind, 1}};
    s.tell();
    if (is_ended(c.fate)) {
      s.end(1, c.fate);
    } else {
      s.jobs[1].state = c.fate;
      s.tell(1);
    }
    EXPECT_EQ(s.reason(2), c.words) << static_cast<int>(c.kind) << " " << name_of(c.fate);
    EXPECT_EQ(s.round().size(), c.met ? 1u : 0u)
        << static_cast<int>(c.kind) << " " << name_of(c.fate);
  }
}

TEST(Dependencies, AnUnknownJobIsAskedForOnce) {
  Story s;
  s.host("h1", 4);
  s.job(2).spec.dependencies = {{DependencyKind::kAfterOk, 1}};
  s.job(4).spec.dependencies = {{DependencyKind::kAfterAny, 3}};
  s.tell();
  EXPECT_THAT(s.view.take_unasked(), ElementsAre(1, 3));
  EXPECT_THAT(s.view.take_unasked(), IsEmpty());
  EXPECT_EQ(s.reason(2), "");
  Job found;
  found.id = 1;
  found.state = JobState::kCompleted;
  s.view.put_job(found);
  s.view.set_unknown(3);
  EXPECT_EQ(s.reason(4), "dependency can never be met: job 3 is not known");
  EXPECT_THAT(s.round(), ElementsAre(2));
}

TEST(Dependencies, SingletonsRunOneAfterTheOther) {
  Story s;
  s.host("h1", 4);
  for (JobId id = 1; id <= 3; ++id) {
    s.job(id).spec.name = "nightly";
    s.job(id).spec.dependencies = {{DependencyKind::kSingleton, 0}};
  }
  s.job(4).spec.name = "other";
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 4));
  EXPECT_EQ(s.reason(3), "waits for job 1 of the same name and user to end");
  s.end(1);
  EXPECT_THAT(s.round(), ElementsAre(2));
  EXPECT_EQ(s.reason(3), "waits for job 2 of the same name and user to end");
}

// Jobs 1 to 3 are an array; 4 waits for all of it, 5 for its second task only.
Story story_of_an_array(DependencyKind kind) {
  Story s;
  s.host("h1", 8);
  for (JobId id = 1; id <= 3; ++id) {
    s.job(id).array_id = 1;
    s.jobs[id].spec.cpus = 64;  // never starts by itself
  }
  s.job(4).spec.dependencies = {{kind, 1}};
  s.job(5).spec.dependencies = {{kind, 2}};
  s.tell();
  EXPECT_THAT(s.view.take_unasked(), ElementsAre(1));
  s.view.set_array_told(1);
  EXPECT_THAT(s.view.take_unasked(), IsEmpty());
  return s;
}

TEST(Dependencies, TheFirstIdOfAnArrayMeansAllOfIt) {
  Story s = story_of_an_array(DependencyKind::kAfterOk);
  EXPECT_EQ(s.reason(4), "waits for array 1 to succeed");
  EXPECT_EQ(s.reason(5), "waits for job 2 to succeed");
  s.end(1);
  EXPECT_THAT(s.round(), IsEmpty());
  s.end(2);
  EXPECT_THAT(s.round(), ElementsAre(5));
  s.end(3);
  EXPECT_THAT(s.round(), ElementsAre(4));
}

TEST(Dependencies, OneFailedTaskIsTheArraysFailure) {
  Story s = story_of_an_array(DependencyKind::kAfterOk);
  s.end(2, JobState::kFailed);
  s.end(1);
  EXPECT_EQ(s.reason(4), "waits for array 1 to succeed");
  s.end(3);
  EXPECT_EQ(s.reason(4), "dependency can never be met: a task of array 1 failed");
}

TEST(Dependencies, AnArrayHasStartedWhenAllItsTasksHave) {
  Story s = story_of_an_array(DependencyKind::kAfter);
  for (JobId id = 1; id <= 2; ++id) {
    s.jobs[id].state = JobState::kRunning;
    s.tell(id);
  }
  EXPECT_THAT(s.round(), ElementsAre(5));
  EXPECT_EQ(s.reason(4), "waits for array 1 to start");
  s.end(3, JobState::kKilled);  // it never will
  EXPECT_THAT(s.round(), ElementsAre(4));
}

TEST(Dependencies, ATaskThatIsGoneAfterARetakeIsAskedFor) {
  Story s = story_of_an_array(DependencyKind::kAfterAny);
  s.view.begin_retake();
  s.host("h1", 8);
  for (const JobId id : {1, 2, 4, 5}) s.tell(id);
  s.view.end_retake();
  s.end(1);
  s.end(2);
  EXPECT_THAT(s.round(), ElementsAre(5));
  EXPECT_THAT(s.view.take_unasked(), ElementsAre(1));
  Job third = s.jobs[3];
  third.state = JobState::kLost;
  third.modify_index = ++s.revision;
  s.view.put_job(third);
  s.view.set_array_told(1);
  EXPECT_THAT(s.round(), ElementsAre(4));
}

TEST(Dependencies, AFateIsKeptWhileSomebodyWaitsForIt) {
  Story s;
  s.host("h1", 4);
  s.job(1);
  s.job(2).spec.dependencies = {{DependencyKind::kAfterOk, 1}};
  s.jobs[2].state = JobState::kHeld;
  s.tell();
  s.end(1);
  for (JobId id = 10; id < 10 + 2 * EndedJobs::kRing; ++id) {
    s.job(id);
    s.end(id);
  }
  s.jobs[2].state = JobState::kPending;
  s.tell(2);
  EXPECT_THAT(s.round(), ElementsAre(2));
}

}  // namespace
}  // namespace xce::sched
