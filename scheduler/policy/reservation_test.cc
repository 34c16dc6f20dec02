// Reservations: what is kept for some, what others may use of it until then, and what they are
// told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/policy/estimate.h"
#include "scheduler/policy/policy_testutil.h"

namespace xce::sched {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReservationTest : public testing::Test {
 protected:
  // From now on, in seconds.
  void reserve(std::vector<std::string> hosts, int64_t from_s, int64_t until_s, uint32_t cpus = 0) {
    Reservation r;
    r.name = "exam";
    r.hosts = std::move(hosts);
    r.start_ms = s.now_ms + from_s * 1000;
    r.end_ms = s.now_ms + until_s * 1000;
    r.users = {"bob"};
    r.queues = {"lab"};
    r.cpus = cpus;
    r.modify_index = ++s.revision;
    s.view.put_reservation(r);
  }
  Job& job(JobId id, uint32_t limit_s, const std::string& user = "ann", uint32_t cpus = 1) {
    Job& job = s.job(id, cpus);
    job.spec.user = user;
    job.spec.time_limit_s = limit_s;
    return job;
  }
  Story s;
};

TEST_F(ReservationTest, OthersStartThereOnlyWhenTheyEndBefore) {
  s.host("h1", 8);
  reserve({"h1"}, 100, 200);
  job(1, 100);
  job(2, 101);
  job(3, 0);
  job(4, 0, "bob");
  job(5, 0).spec.queue = "lab";
  s.tell();
  EXPECT_THAT(s.round(), testing::UnorderedElementsAre(1, 4, 5));
  EXPECT_THAT(s.reason(2), HasSubstr("(reservation 'exam'): with a time limit that ends before"));
}

TEST_F(ReservationTest, WhileItIsInForceOthersHaveOtherHosts) {
  s.host("h1", 8);
  s.host("h2", 1);
  reserve({"h1"}, 0, 200);
  job(1, 1);
  job(2, 1);
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1));
  EXPECT_EQ(s.host_of(1), "h2");
  EXPECT_EQ(first_startable(s.view, s.now_ms), 0u);  // a standby does not take that for idleness
  EXPECT_THAT(s.reason(2), HasSubstr("free hosts are kept for others until"));
  s.now_ms = 1'000'000 + 200'000;
  EXPECT_THAT(s.round(), ElementsAre(2));
  EXPECT_EQ(s.host_of(2), "h1");
}

TEST_F(ReservationTest, GoesWhenItIsTakenBackAndComesWithTheState) {
  s.host("h1", 8);
  reserve({"h1"}, 0, 200);
  job(1, 1);
  s.tell();
  EXPECT_THAT(s.round(), IsEmpty());
  s.view.begin_retake();
  s.host("h1", 8);
  s.tell();
  s.view.remove_reservation("exam", ++s.revision);
  s.revision -= 2;  // its row was read before that
  reserve({"h1"}, 0, 200);
  s.revision += 2;
  s.view.end_retake();
  EXPECT_THAT(s.round(), ElementsAre(1));
  job(2, 1);
  s.tell(2);
  reserve({"h1"}, 0, 200);
  EXPECT_THAT(s.round(), IsEmpty());
  s.view.begin_retake();
  s.host("h1", 8);
  s.tell();
  s.view.end_retake();  // not among what was told
  EXPECT_THAT(s.round(), ElementsAre(2));
}

TEST_F(ReservationTest, OfCpusLeavesTheRestToOthers) {
  s.host("h1", 8);
  reserve({"h1"}, 0, 200, 5);
  job(1, 0, "ann", 2);
  job(2, 0, "ann", 2);
  job(3, 0, "ann", 1);
  job(4, 200, "bob", 5);
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1, 3, 4));
}

// The head of the line has its place after the reservation; a shorter one goes before it.
TEST_F(ReservationTest, TheHeadOfTheLineIsPlannedAroundIt) {
  for (const Backfill backfill : {Backfill::kEasy, Backfill::kConservative}) {
    s = Story();
    s.host("h1", 4);
    reserve({"h1"}, 100, 200);
    job(1, 150, "ann", 4);
    job(2, 90, "ann", 4);
    s.tell();
    RoundLimits limits;
    limits.backfill = backfill;
    EXPECT_THAT(s.round(limits), ElementsAre(2));
    const auto estimates = estimate_starts(gather_outlook(s.view, s.now_ms, {}), {});
    ASSERT_EQ(estimates.size(), 1u);
    EXPECT_EQ(estimates[0].start_ms, s.now_ms + 200'000);
    s.now_ms += 90'000;
    s.end(2);
    EXPECT_THAT(s.round(limits), IsEmpty());
    s.now_ms += 110'000;
    EXPECT_THAT(s.round(limits), ElementsAre(1));
  }
}

TEST_F(ReservationTest, NobodyIsPushedOutForAJobThatMayNotStartThere) {
  s.host("h1", 1);
  s.queue("default").preemptible = true;
  s.queue("high").priority = 5;
  job(1, 0);
  s.tell();
  EXPECT_THAT(s.round(), ElementsAre(1));
  reserve({"h1"}, 0, 200);
  job(2, 0).spec.queue = "high";
  s.tell(2);
  EXPECT_TRUE(run_round(&s.view, s.now_ms).evictions.empty());
  job(3, 0, "bob").spec.queue = "high";
  s.tell(3);
  EXPECT_EQ(run_round(&s.view, s.now_ms).evictions.size(), 1u);
}

}  // namespace
}  // namespace xce::sched
