#include "scheduler/policy/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/policy/policy_testutil.h"

namespace xce::sched {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

RoundLimits limits_of(Backfill backfill) {
  RoundLimits limits;
  limits.backfill = backfill;
  return limits;
}

Need cpus(uint32_t n) {
  Need need;
  need.cpus = n;
  return need;
}

TEST(HostProfile, KnowsWhenRoomComesAndGoes) {
  Story s;
  s.host("h1", 8);
  s.job(1, 6).spec.time_limit_s = 100;
  s.tell();
  s.round();
  HostProfile profile(s.view.hosts().hosts().at("h1"), s.now_ms);
  EXPECT_EQ(profile.earliest(cpus(2), s.now_ms, 10'000), s.now_ms);
  EXPECT_EQ(profile.earliest(cpus(3), s.now_ms, 10'000), s.now_ms + 100'000);
  EXPECT_EQ(profile.earliest(cpus(9), s.now_ms, 10'000), kNever);
  profile.reserve(cpus(2), s.now_ms + 5'000, s.now_ms + 20'000);
  EXPECT_EQ(profile.earliest(cpus(2), s.now_ms, 5'000), s.now_ms);
  EXPECT_EQ(profile.earliest(cpus(2), s.now_ms, 5'001), s.now_ms + 20'000);
  EXPECT_EQ(profile.free_at(s.now_ms + 5'000).cpus, 0u);
  EXPECT_EQ(profile.free_at(s.now_ms + 20'000).cpus, 2u);
  Need alone = cpus(1);
  alone.exclusive = true;
  EXPECT_EQ(profile.earliest(alone, s.now_ms, kNever), s.now_ms + 100'000);
}

TEST(Plan, SeveralHostsMustBeFreeAtOneTime) {
  Story s;
  for (const char* name : {"h1", "h2", "h3"}) s.host(name, 4);
  s.job(1, 4).spec.time_limit_s = 100;
  s.job(2, 4).spec.time_limit_s = 200;
  s.tell();
  s.round();
  Plan plan(s.view.hosts(), s.now_ms);
  Plan::Slot slot = plan.find(cpus(4), 2, 50'000);
  EXPECT_EQ(slot.starts_ms, s.now_ms + 100'000);
  ASSERT_EQ(slot.hosts.size(), 2u);
  plan.reserve(slot, cpus(4), 50'000);
  // One host may be used until then by a short job.
  EXPECT_EQ(plan.find(cpus(1), 1, 100'000).starts_ms, s.now_ms);
  EXPECT_EQ(plan.find(cpus(1), 1, 100'001).starts_ms, s.now_ms + 150'000);
  EXPECT_EQ(plan.find(cpus(4), 4, 1).starts_ms, kNever);
}

// Job 3 is the head; job 4 would be delayed by job 5, which delays job 3 not at all.
TEST(Backfill, ConservativeProtectsEveryJobEasyOnlyTheFirst) {
  for (const Backfill backfill : {Backfill::kNone, Backfill::kEasy, Backfill::kConservative}) {
    Story s;
    s.host("h1", 10);
    s.job(1, 6).spec.time_limit_s = 100;
    s.job(3, 8).spec.time_limit_s = 100;
    s.job(4, 10).spec.time_limit_s = 100;
    s.job(5, 2).spec.time_limit_s = 1000;
    s.job(6, 2).spec.time_limit_s = 100;
    s.tell();
    const std::vector<JobId> started = s.round(limits_of(backfill));
    switch (backfill) {
      case Backfill::kNone: EXPECT_THAT(started, ElementsAre(1)); break;
      case Backfill::kEasy: EXPECT_THAT(started, ElementsAre(1, 5, 6)); break;
      case Backfill::kConservative: EXPECT_THAT(started, ElementsAre(1, 6)); break;
    }
  }
}

TEST(Backfill, ConservativeProtectsTheSecondOfAKind) {
  Story s;
  s.host("h1", 12);
  s.job(1, 7).spec.time_limit_s = 100;
  s.job(2, 6).spec.time_limit_s = 100;  // both planned from 100 on, with nothing to spare
  s.job(3, 6).spec.time_limit_s = 100;
  s.job(4, 1).spec.time_limit_s = 1000;
  s.job(5, 1).spec.time_limit_s = 100;
  s.tell();
  EXPECT_THAT(s.round(limits_of(Backfill::kConservative)), ElementsAre(1, 5));
  EXPECT_THAT(s.round(limits_of(Backfill::kConservative)), IsEmpty());
}

TEST(Backfill, NoneIsNotHeldUpByAJobThatCanNeverRun) {
  Story s;
  s.host("h1", 4);
  s.job(1, 64);
  s.job(2, 2);
  s.tell();
  EXPECT_THAT(s.round(limits_of(Backfill::kNone)), ElementsAre(2));
}

TEST(Backfill, ConservativeDrainsForAJobWhoseTimeIsUnknown) {
  Story s;
  s.host("h1", 4);
  s.host("h2", 4);
  s.job(1, 3);  // without time limits
  s.job(2, 3);
  s.job(3, 4);
  s.job(4, 1);
  s.job(5, 1);
  s.tell();
  // One host is kept for job 3, the other is not.
  EXPECT_THAT(s.round(limits_of(Backfill::kConservative)), ElementsAre(1, 2, 4));
}

}  // namespace
}  // namespace xce::sched
