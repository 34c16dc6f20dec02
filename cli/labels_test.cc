#include "cli/labels.h"

#include <gtest/gtest.h>

namespace xce::cli {
namespace {

xce_job_t job_in(xce_job_state_t state) {
  xce_job_t job{};
  job.id = 17;
  job.state = state;
  job.reason = "";
  return job;
}

TEST(Labels, States) {
  EXPECT_STREQ(state_word(XCE_JOB_RUNNING), "RUNNING");
  EXPECT_EQ(*parse_states("running,FAILED"), (1u << XCE_JOB_RUNNING) | (1u << XCE_JOB_FAILED));
  EXPECT_EQ(*parse_states("alive"), kAliveStates);
  EXPECT_EQ(*parse_states("ended"), kEndedStates);
  EXPECT_EQ(kAliveStates | kEndedStates, (1u << (XCE_JOB_LOST + 1)) - 1);
  EXPECT_FALSE(parse_states("asleep").ok());
  EXPECT_FALSE(parse_states("").ok());
}

TEST(Labels, RunTime) {
  xce_job_t job = job_in(XCE_JOB_RUNNING);
  EXPECT_EQ(run_ms(job, 5000), -1);
  job.start_ms = 2000;
  EXPECT_EQ(run_ms(job, 5000), 3000);
  EXPECT_EQ(run_ms(job, 1000), 0);  // clocks of two primaries may differ a little
  job.end_ms = 4000;
  EXPECT_EQ(run_ms(job, 9000), 2000);
}

TEST(Labels, PlaceTellsWhereOrWhy) {
  xce_alloc_t alloc{};
  alloc.host = "n1";
  xce_job_t job = job_in(XCE_JOB_PENDING);
  job.reason = "needs 8 cpus, 2 are free";
  EXPECT_EQ(place_of(job), "(needs 8 cpus, 2 are free)");
  job = job_in(XCE_JOB_RUNNING);
  job.allocs = &alloc;
  job.nallocs = 1;
  EXPECT_EQ(place_of(job), "n1");
  job.desired = XCE_DESIRED_KILL;
  EXPECT_EQ(place_of(job), "n1 (being killed)");
  job.state = XCE_JOB_FAILED;
  job.exit_code = 3;
  EXPECT_EQ(place_of(job), "n1 (exit 3)");
  job.state = XCE_JOB_COMPLETED;
  EXPECT_EQ(place_of(job), "n1");
  job.state = XCE_JOB_TIMEOUT;
  job.reason = "time limit of 1 s";
  EXPECT_EQ(place_of(job), "n1 (time limit of 1 s)");
}

}  // namespace
}  // namespace xce::cli
