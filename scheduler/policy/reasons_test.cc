#include "scheduler/policy/reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "scheduler/policy/policy_testutil.h"

namespace xce::sched {
namespace {

using testing::HasSubstr;

TEST(Reasons, NoHost) {
  Story s;
  s.job(1);
  s.tell();
  EXPECT_EQ(s.reason(1), "no host has joined yet");
  s.host_state("h1", 4, HostState::kDrained);
  EXPECT_EQ(s.reason(1), "no host takes jobs now: 1 host drained");
}

TEST(Reasons, Impossible) {
  Story s;
  s.host("h1", 8, 1000);
  s.job(1, 64);
  s.job(2).spec.memory_mb = 5000;
  s.job(3).spec.gres = {{"gpu", 2}};
  s.job(4).spec.nodes = 3;
  s.tell();
  EXPECT_EQ(s.reason(1), "no host has 64 cpus (the largest has 8)");
  EXPECT_EQ(s.reason(2), "no host has 5000 MB of memory (the largest has 1000)");
  EXPECT_EQ(s.reason(3), "no host has 2 gpu (the most that one has is 0)");
  EXPECT_EQ(s.reason(4), "needs 3 hosts with 1 cpu: only 1 is there");
}

TEST(Reasons, BusyAndInLine) {
  Story s;
  s.host("h1", 8);
  s.job(1, 6);
  s.job(2, 4);
  s.job(3, 1);
  s.tell();
  s.round();
  EXPECT_EQ(s.reason(2), "waiting for 4 free cpus: the largest free host has 2");
  EXPECT_EQ(s.reason(3),
            "waits its turn: free hosts are kept for job 2, which is before it in line");
}

TEST(Reasons, TheFirstInLineIsToldWhenItStartsAtTheLatest) {
  Story s;
  s.now_ms = 1'796'034'840'000;  // 2026-11-30 10:34 UTC
  s.host("h1", 8);
  s.job(1, 6).spec.time_limit_s = 1000;
  s.job(2, 4).spec.time_limit_s = 60;
  s.job(3, 4).spec.time_limit_s = 60;  // of the same kind, and not the first
  s.tell();
  s.round();
  EXPECT_EQ(s.reason(2),
            "waiting for 4 free cpus: the largest free host has 2; next in line, starts by 10:51 "
            "UTC at the latest");
  EXPECT_EQ(s.reason(3), "waiting for 4 free cpus: the largest free host has 2");
}

TEST(Reasons, TimesInWords) {
  const int64_t now_ms = 1'796'034'840'000;
  EXPECT_EQ(utc_words(now_ms, now_ms), "10:34 UTC");
  EXPECT_EQ(utc_words(now_ms + 1, now_ms), "10:35 UTC");
  EXPECT_EQ(utc_words(now_ms + 86'399'000, now_ms), "10:34 UTC");
  EXPECT_EQ(utc_words(now_ms + 86'400'000, now_ms), "2026-12-01 10:34 UTC");
  EXPECT_EQ(utc_words(1'835'438'340'000, now_ms), "2028-02-29 11:59 UTC");
}

TEST(Reasons, HeldStoppedAndLimits) {
  Story s;
  s.host("h1", 8);
  s.queue("x").active = false;
  s.queue("default").max_running = 1;
  s.job(1).state = JobState::kHeld;
  s.job(2).spec.queue = "x";
  s.job(3);
  s.job(4);
  s.tell();
  s.round();
  EXPECT_EQ(explain_unready(s.view, *s.view.find(1)).words, "held by its owner");
  EXPECT_EQ(s.reason(1), "");  // the controller says it itself, and who did it
  EXPECT_EQ(s.reason(2), "queue 'x' is stopped");
  EXPECT_EQ(s.reason(4), "queue 'default' runs as many jobs as it may (1)");
}

TEST(Reasons, ToldOnceAndRarelyRepeated) {
  Story s;
  s.host("h1", 8);
  s.job(1, 6);
  s.job(2, 4);
  s.tell();
  s.round();
  EXPECT_EQ(collect_reasons(&s.view, s.now_ms, {}, nullptr).size(), 1u);
  EXPECT_EQ(collect_reasons(&s.view, s.now_ms, {}, nullptr).size(), 0u);
  s.host("h2", 8);  // the number changes, the kind does not
  s.job(9, 5).state = JobState::kRunning;
  s.jobs[9].allocs = {{"h2", 5, 0, {}}};
  s.tell(9);
  EXPECT_EQ(collect_reasons(&s.view, s.now_ms + 1000, {}, nullptr).size(), 0u);
  EXPECT_EQ(collect_reasons(&s.view, s.now_ms + 20'000, {}, nullptr).size(), 1u);
}

TEST(Reasons, AMillionJobsCostNoMoreThanTheFirstThousand) {
  Story s;
  s.host("h1", 1);
  for (JobId id = 1; id <= 5000; ++id) s.job(id);
  s.tell();
  s.round();
  s.now_ms += 10'000;
  size_t told = 0, passes = 0;
  bool far = false;
  bool more = true;
  while (more && passes++ < 100) {
    const auto items = collect_reasons(&s.view, s.now_ms, {}, &more);
    EXPECT_LE(items.size(), 256u);
    told += items.size();
    for (const PendReason& item : items)
      far |= item.reason == "behind more than 250 other jobs in queue 'default'";
  }
  EXPECT_EQ(told, 4999u);  // everybody is told something, once
  EXPECT_TRUE(far);
}

// Not only the first ones, however many wait and however alike they are.
TEST(Reasons, EveryWaitingJobIsToldOne) {
  for (const JobId waiting : {300, 700, 3000}) {
    Story s;
    s.host("h1", 1);
    for (JobId id = 1; id <= waiting + 1; ++id) s.job(id).spec.priority = id % 7 == 0 ? 1 : 0;
    s.tell();
    ASSERT_EQ(s.round().size(), 1u);
    std::set<JobId> told;
    for (int pass = 0; pass < 30; ++pass)
      for (const PendReason& item : collect_reasons(&s.view, s.now_ms += 3000, {}, nullptr))
        if (!item.reason.empty()) told.insert(item.job);
    EXPECT_EQ(told.size(), waiting);
  }
}

}  // namespace
}  // namespace xce::sched
