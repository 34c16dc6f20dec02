#include "scheduler/pipeline/reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xce/errnox.h>

#include <cerrno>
#include <vector>

namespace xce::sched {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Reach, WaitsUntilAControllerServesAndTellsEachTry) {
  std::vector<int> deadlines;
  std::vector<std::string> lines;
  ReachCalls calls;
  calls.attempt = [&](int ms) {
    deadlines.push_back(ms);
    return deadlines.size() < 6 ? -E_XCE_NOT_READY : 0;
  };
  calls.trail = [] { return std::string("a:1 ECONNREFUSED at 0 ms; b:2 no answer at 1 ms"); };
  const LogFn log = [&](LogLevel, const std::string& line) { lines.push_back(line); };
  EXPECT_EQ(reach_cluster(calls, log), 0);
  EXPECT_THAT(deadlines, ElementsAre(1000, 2000, 4000, 8000, 10'000, 10'000));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[1], HasSubstr("(attempt 2): a:1 ECONNREFUSED; b:2 no answer;"));
}

TEST(Reach, EndsWhenTheSchedulerStops) {
  ReachCalls calls;
  calls.attempt = [](int) { return -ECANCELED; };
  EXPECT_EQ(reach_cluster(calls, nullptr), -ECANCELED);
}

}  // namespace
}  // namespace xce::sched
