// Listing jobs: filters, pages, totals.
#include "controller/state/state_testutil.h"

namespace xce::state {
namespace {

std::string ids(const State::JobPage& page) {
  std::string line;
  for (const Job* job : page.jobs) line += std::to_string(job->id) + " ";
  return line + "of " + std::to_string(page.total) + " next " + std::to_string(page.next_after_id);
}

uint32_t bit(JobState state) { return 1u << static_cast<unsigned>(state); }

// 1 alice RUNNING on n1; 2..6 an array of alice's, 4 of it HELD; 7, 8 bob's, 8 KILLED; 9 alice
// COMPLETED on n1.
class Listing : public testing::Test {
 protected:
  Listing() {
    c.running();
    JobSpec array = a_job({"./sim"});
    array.array = {1, 2, 3, 4, 5};
    c.run(alice(), array);
    c.control(alice(), JobAction::kHold, {4});
    c.run(bob(), a_job());
    c.run(bob(), a_job());
    c.control(bob(), JobAction::kKill, {8});
    c.running();
    c.notify("n1", {c.report("n1", NotifyKind::kFinish, 9)});
  }
  std::string list(const JobFilter& filter, size_t max_rows = 100) {
    return ids(c.state.jobs(filter, max_rows));
  }
  Cluster c;
};

TEST_F(Listing, AllInPagesEitherWay) {
  JobFilter filter;
  EXPECT_EQ(list(filter), "1 2 3 4 5 6 7 8 9 of 9 next 0");
  EXPECT_EQ(list(filter, 4), "1 2 3 4 of 9 next 4");
  filter.after_id = 4;
  EXPECT_EQ(list(filter, 4), "5 6 7 8 of 9 next 8");
  filter.after_id = 8;
  EXPECT_EQ(list(filter, 4), "9 of 9 next 0");
  filter.after_id = 0;
  filter.descending = true;
  EXPECT_EQ(list(filter, 4), "9 8 7 6 of 9 next 6");
  filter.after_id = 6;
  filter.limit = 2;
  EXPECT_EQ(list(filter, 4), "5 4 of 9 next 4");
  filter.after_id = 2;
  EXPECT_EQ(list(filter, 4), "1 of 9 next 0");
}

TEST_F(Listing, ByOneThing) {
  JobFilter by_state;
  by_state.states = bit(JobState::kHeld) | bit(JobState::kKilled) | bit(JobState::kRunning);
  EXPECT_EQ(list(by_state), "1 4 8 of 3 next 0");
  by_state.descending = true;
  EXPECT_EQ(list(by_state, 2), "8 4 of 3 next 4");
  by_state.states = 1u << 31;
  EXPECT_EQ(list(by_state), "of 0 next 0");
  JobFilter by_user;
  by_user.user = "bob";
  EXPECT_EQ(list(by_user), "7 8 of 2 next 0");
  by_user.user = "carol";
  EXPECT_EQ(list(by_user), "of 0 next 0");
  JobFilter by_host;
  by_host.host = "n1";
  EXPECT_EQ(list(by_host), "1 9 of 2 next 0");
  JobFilter by_array;
  by_array.array_id = 2;
  EXPECT_EQ(list(by_array), "2 3 4 5 6 of 5 next 0");
  by_array.descending = true;
  EXPECT_EQ(list(by_array, 3), "6 5 4 of 5 next 4");
  by_array.after_id = 4;
  EXPECT_EQ(list(by_array, 3), "3 2 of 5 next 0");
  JobFilter by_queue;
  by_queue.queue = "default";
  EXPECT_EQ(list(by_queue, 1), "1 of 9 next 1");
  JobFilter by_name;
  by_name.name = "sim";
  EXPECT_EQ(list(by_name, 2), "2 3 of 5 next 3");
}

TEST_F(Listing, BySeveralThings) {
  JobFilter filter;
  filter.user = "alice";
  filter.states = bit(JobState::kPending);
  EXPECT_EQ(list(filter, 2), "2 3 of 4 next 3");
  filter.host = "n1";
  filter.states = bit(JobState::kStarting) | bit(JobState::kRunning) | bit(JobState::kSuspended);
  EXPECT_EQ(list(filter), "1 of 1 next 0");
  JobFilter array;
  array.array_id = 2;
  array.states = bit(JobState::kHeld);
  EXPECT_EQ(list(array), "4 of 1 next 0");
}

TEST_F(Listing, ByIds) {
  JobFilter filter;
  filter.ids = {7, 3, 99, 3, 1};
  EXPECT_EQ(list(filter), "1 3 7 of 3 next 0");
  EXPECT_EQ(list(filter, 2), "1 3 of 3 next 3");
  filter.after_id = 3;
  EXPECT_EQ(list(filter, 2), "7 of 3 next 0");
  filter.user = "bob";
  filter.after_id = 0;
  EXPECT_EQ(list(filter, 2), "7 of 1 next 0");
}

TEST_F(Listing, ByTheTimeOfTheirEnd) {
  const int64_t first = c.state.job(8)->end_ms;
  c.time_ms += 1000;
  c.control(bob(), JobAction::kKill, {7});
  JobFilter filter;
  filter.since_ms = first + 1;
  EXPECT_EQ(list(filter), "7 of 1 next 0");
  filter.since_ms = first;
  EXPECT_EQ(list(filter), "7 8 9 of 3 next 0");
  filter.until_ms = c.state.job(7)->end_ms;  // which is not within
  EXPECT_EQ(list(filter), "8 9 of 2 next 0");
  filter.since_ms = 0;
  EXPECT_EQ(list(filter), "8 9 of 2 next 0");  // and none of those that have not ended
  filter.until_ms = first;
  EXPECT_EQ(list(filter), "of 0 next 0");
}

TEST(LongListing, AVisitIsBounded) {
  Cluster c;
  JobSpec array = a_job();
  for (uint32_t i = 0; i < 60000; ++i) array.array.push_back(i);
  c.run(alice(), array);
  c.run(alice(), array);
  JobSpec last = a_job();
  last.name = "needle";
  c.run(alice(), last);
  JobFilter filter;
  filter.name = "needle";
  EXPECT_EQ(ids(c.state.jobs(filter, 10)), "of 0 next 20000");  // nothing so far, more to look at
  std::string found;
  int calls = 0;
  do {
    const State::JobPage page = c.state.jobs(filter, 10);
    for (const Job* job : page.jobs) found += std::to_string(job->id);
    filter.after_id = page.next_after_id;
  } while (++calls < 10 && filter.after_id != 0);
  EXPECT_EQ(found, "120001");
  EXPECT_EQ(calls, 7);
}

}  // namespace
}  // namespace xce::state
