#include "scheduler/sim/swf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/sim/generate.h"

namespace xce::sched {
namespace {

using testing::HasSubstr;

TEST(Swf, ReadsJobsHeadersAndMissingValues) {
  const auto trace = parse_swf(
      "; Version: 2\n;MaxProcs:  64 \n; MaxNodes: 16\n\n"
      "2 50 -1 100 4 -1 -1 8 600 -1 1 7 -1 -1 -1 -1 -1 -1\r\n"
      "1\t10 -1 30 4 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
      "  3 50 5 0 1 1.5 -1 0 -1 -1 1 -1 -1 -1 -1 -1 -1 -1",
      "t.swf");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->cpus, 64u);
  ASSERT_EQ(trace->jobs.size(), 3u);
  EXPECT_EQ(trace->jobs[0].number, 1);  // by submission
  EXPECT_EQ(trace->jobs[0].cpus, 4u);
  EXPECT_EQ(trace->jobs[0].estimate_s, 30);
  EXPECT_EQ(trace->jobs[1].cpus, 8u);  // as requested
  EXPECT_EQ(trace->jobs[1].estimate_s, 600);
  EXPECT_EQ(trace->jobs[1].user, 7);
  EXPECT_EQ(trace->jobs[2].run_s, 0);
  EXPECT_EQ(trace->jobs[2].estimate_s, 1);
  EXPECT_EQ(trace->no_estimate, 2u);
}

TEST(Swf, LeavesOutWhatIsNoWholeJobAndCountsIt) {
  const auto trace = parse_swf(
      "1 0 -1 30 4 -1 -1 -1 10 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
      "2 0 -1 -1 4 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
      "3 0 -1 30 -1 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
      "4 0 -1 0 4 -1 -1 -1 -1 -1 5 -1 -1 -1 -1 -1 -1 -1\n"
      "5 0 -1 30 4 -1 -1 -1 -1 -1 3 -1 -1 -1 -1 -1 -1 -1\n",
      "t.swf");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->jobs.size(), 1u);
  EXPECT_EQ(trace->jobs[0].estimate_s, 30);
  EXPECT_EQ(trace->raised, 1u);
  EXPECT_EQ(trace->no_run_time, 3u);
  EXPECT_EQ(trace->partial, 1u);
  EXPECT_EQ(trace->cpus, 0u);
}

TEST(Swf, ErrorsNameFileLineAndField) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "t.swf: no job"},
      {"; only a comment\n;\n;;;", "t.swf: no job"},
      {"; x\n1 2 3\n", "t.swf line 2: 3 fields where a job has 18"},
      {"hello", "t.swf line 1: 1 field where"},
      {"1 0 -1 abc 4 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1",
       "t.swf line 1: field 4 (run time) is not a number: 'abc'"},
      {"1 0 -1 nan 4 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1", "field 4 (run time) is not a number"},
      {"1 0 -1 1e300 4 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1",
       "field 4 (run time) is out of range"},
      {"1 -1 -1 10 4 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1", "line 1: a job needs a submit time"},
      {"1 0 -1 10 9999999999 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1", "9999999999 processors"},
  };
  for (const auto& [text, words] : cases) {
    const auto trace = parse_swf(text, "t.swf");
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_THAT(std::string(trace.status().message()), HasSubstr(words));
  }
}

TEST(Generate, TheSeedDecidesAndTheTraceCanBeRead) {
  GenerateOptions options;
  options.jobs = 500;
  const std::string one = generate_swf(options);
  EXPECT_EQ(one, generate_swf(options));
  options.seed = 2;
  EXPECT_NE(one, generate_swf(options));
  const auto trace = parse_swf(one, "generated");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->jobs.size(), 500u);
  EXPECT_EQ(trace->cpus, 256u);
  EXPECT_EQ(trace->no_estimate + trace->raised + trace->no_run_time, 0u);
}

}  // namespace
}  // namespace xce::sched
