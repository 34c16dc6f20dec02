#include "scheduler/policy/preempt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/policy/policy_testutil.h"

namespace xce::sched {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Preempt : public testing::Test {
 protected:
  Preempt() {
    s.queue("low").priority = -1;
    s.queue("low").preemptible = true;
    s.queue("default");
    s.queue("high").priority = 5;
  }
  void add(JobId id, const std::string& queue, uint32_t cpus = 1) {
    s.job(id, cpus).spec.queue = queue;
  }
  // Who is asked to go in a round in which nobody starts.
  std::vector<JobId> evicted() {
    const RoundResult result = run_round(&s.view, s.now_ms);
    EXPECT_TRUE(result.dispatches.empty());
    std::vector<JobId> ids;
    for (const Eviction& eviction : result.evictions) {
      EXPECT_EQ(eviction.attempt, s.jobs[eviction.job].attempt);
      ids.push_back(eviction.job);
      words = eviction.reason;
    }
    return ids;
  }
  // The evicted job has been stopped.
  void requeued(JobId id) {
    Job& job = s.jobs[id];
    job.state = JobState::kPending;
    job.allocs.clear();
    job.start_ms = 0;
    s.tell(id);
  }

  Story s;
  std::string words;
};

TEST_F(Preempt, TheNewestOfTheLowestGivesWayOnce) {
  s.host("h1", 3);
  add(1, "low");
  s.tell();
  s.round();
  s.now_ms += 1000;
  add(2, "low");
  add(3, "default");
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(3, 2));
  s.now_ms += 1000;
  add(4, "high");
  s.tell(4);
  EXPECT_THAT(evicted(), ElementsAre(2));
  EXPECT_EQ(words, "makes room for job 4 of queue 'high' and waits again");
  EXPECT_THAT(evicted(), IsEmpty());  // it is on its way
  requeued(2);
  EXPECT_THAT(s.round(), ElementsAre(4));
  EXPECT_THAT(evicted(), IsEmpty());  // the evicted one evicts nobody
}

TEST_F(Preempt, NobodyGivesWayToAnEqualNorWithoutPermission) {
  s.host("h1", 2);
  s.queue("low2").priority = -1;
  add(1, "low");
  add(2, "default");
  s.tell();
  s.round();
  add(3, "low2");
  add(4, "high", 2);  // would need the place of job 2, too
  s.tell();
  EXPECT_THAT(evicted(), IsEmpty());
}

TEST_F(Preempt, NoMoreThanIsNeeded) {
  s.host("h1", 4);
  s.host("h2", 4);
  add(1, "low", 1);
  add(2, "low", 3);
  add(3, "low", 4);
  s.tell();
  s.round();
  add(4, "high", 3);
  s.tell();
  EXPECT_THAT(evicted(), ElementsAre(2));
}

TEST_F(Preempt, SeveralWaitingJobsHaveRoomMadeAtOnce) {
  s.host("h1", 4);
  for (JobId id = 1; id <= 4; ++id) add(id, "low");
  s.tell();
  s.round();
  for (JobId id = 5; id <= 7; ++id) add(id, "high");
  s.tell();
  EXPECT_EQ(evicted().size(), 3u);
  EXPECT_THAT(evicted(), IsEmpty());
}

TEST_F(Preempt, SeveralHostsAndHostsForOneselfAlone) {
  for (const char* name : {"h1", "h2", "h3"}) s.host(name, 2);
  for (JobId id = 1; id <= 6; ++id) add(id, "low");
  s.tell();
  s.round();
  add(7, "high");
  s.jobs[7].spec.exclusive = true;
  s.jobs[7].spec.nodes = 2;
  s.tell();
  EXPECT_EQ(evicted().size(), 4u);
}

TEST_F(Preempt, AnEvictionThatWasRefusedIsTriedAnew) {
  s.host("h1", 1);
  add(1, "low");
  s.tell();
  s.round();
  add(2, "high");
  s.tell(2);
  EXPECT_THAT(evicted(), ElementsAre(1));
  s.view.undo_eviction(1, 1);
  EXPECT_THAT(evicted(), ElementsAre(1));
}

}  // namespace
}  // namespace xce::sched
