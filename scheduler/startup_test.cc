// xce_scheduler as a process, with no controller there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <utility>
#include <vector>

#include "libxce/client/testing/mock_master.h"
#include "libxce/client/testing/program.h"

namespace xce {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using client::DeadPort;

struct Program : client::Program {
  explicit Program(std::vector<std::string> args)
      : client::Program("scheduler/xce_scheduler", std::move(args)) {}
};

TEST(Startup, WaitsForAClusterAndTellsEachCandidate) {
  DeadPort one, two;
  Program scheduler({"--peers", "a=" + one.address() + ",b=" + two.address()});
  ASSERT_TRUE(scheduler.says("no controller serves yet (attempt 2")) << scheduler.said();
  EXPECT_THAT(scheduler.said(), HasSubstr(one.address() + " ECONNREFUSED"));
  EXPECT_THAT(scheduler.said(), HasSubstr(two.address() + " ECONNREFUSED"));
  scheduler.signal(SIGTERM);
  EXPECT_EQ(scheduler.wait(), 0);
  EXPECT_THAT(scheduler.said(), Not(HasSubstr("could not")));
}

// A1.5: one controller is the list of one, shown by the same lines.
TEST(Startup, OneCandidateIsTheSamePath) {
  DeadPort one, two;
  Program single({"--peers", one.address()});
  ASSERT_TRUE(single.says("no controller serves yet")) << single.said();
  EXPECT_THAT(single.said(), HasSubstr("controller candidate 1 of 1: " + one.address()));
  Program both({"--peers", one.address() + "," + two.address()});
  ASSERT_TRUE(both.says("no controller serves yet")) << both.said();
  EXPECT_THAT(both.said(), HasSubstr("controller candidate 1 of 2: " + one.address()));
  EXPECT_THAT(both.said(), HasSubstr("controller candidate 2 of 2: " + two.address()));
}

// A6.2
TEST(Startup, AMalformedCandidateIsNamed) {
  Program scheduler({"--peers", "a=127.0.0.1:9990,b=127.0.0.1:ninety"});
  EXPECT_EQ(scheduler.wait(), 2);
  EXPECT_THAT(scheduler.said(), AllOf(HasSubstr("candidate 2"), HasSubstr("127.0.0.1:ninety")));
}

TEST(Startup, GivesUpWhenAskedTo) {
  DeadPort one, two;
  Program scheduler({"--peers", "a=" + one.address() + ",b=" + two.address(),
                     "--exit-if-unreachable", "--start-timeout-s", "1"});
  EXPECT_EQ(scheduler.wait(), 1);
  EXPECT_THAT(scheduler.said(), HasSubstr("could not join the cluster within 1 s"));
  EXPECT_THAT(scheduler.said(), HasSubstr("a=" + one.address() + ",b=" + two.address()));
}

TEST(Sim, SaysWhatIsWrongWithAFile) {
  Program missing({"--sim", "/nonexistent.swf"});
  EXPECT_EQ(missing.wait(), 1);
  EXPECT_THAT(missing.said(), HasSubstr("cannot read /nonexistent.swf: No such file"));
  Program no_trace({"--sim", "scheduler/xce_scheduler"});
  EXPECT_EQ(no_trace.wait(), 1);
  EXPECT_THAT(no_trace.said(), HasSubstr("scheduler/xce_scheduler line 1:"));
  Program no_policy({"--sim", "x", "--policy", "fifo"});
  EXPECT_EQ(no_policy.wait(), 2);
  EXPECT_THAT(no_policy.said(), HasSubstr("fifo not in {fcfs,easy,conservative}"));
}

}  // namespace
}  // namespace xce
