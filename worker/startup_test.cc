// xcecd as a process, with no controller there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "libxce/client/testing/mock_master.h"
#include "libxce/client/testing/program.h"

namespace xce {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using client::DeadPort;

struct Program : client::Program {
  explicit Program(std::vector<std::string> args)
      : client::Program("worker/xcecd", std::move(args)) {}
};

std::string fresh_dir() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string pattern = std::string(base == nullptr ? "/tmp" : base) + "/startup.XXXXXX";
  return mkdtemp(pattern.data()) == nullptr ? "" : pattern;
}

TEST(Startup, WaitsForAClusterAndTellsEachCandidate) {
  DeadPort one, two;
  Program worker({"--peers", "a=" + one.address() + ",b=" + two.address(), "--name", "n1",
                  "--data-dir", fresh_dir(), "--call-deadline-ms", "300", "--hello-interval-ms",
                  "50"});
  ASSERT_TRUE(worker.says("no controller serves yet")) << worker.said();
  ASSERT_TRUE(worker.says("no controller serves yet (attempt 2)")) << worker.said();
  EXPECT_THAT(worker.said(), HasSubstr("waiting for a cluster"));
  EXPECT_THAT(worker.said(), HasSubstr("controller candidate 1 of 2: " + one.address()));
  EXPECT_THAT(worker.said(), HasSubstr(one.address() + " ECONNREFUSED"));
  EXPECT_THAT(worker.said(), HasSubstr(two.address() + " ECONNREFUSED"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST(Startup, OneControllerIsTheListOfOne) {
  DeadPort one;
  Program worker({"--peers", one.address(), "--name", "n1", "--data-dir", fresh_dir(),
                  "--call-deadline-ms", "300"});
  ASSERT_TRUE(worker.says("no controller serves yet")) << worker.said();
  EXPECT_THAT(worker.said(), HasSubstr("controller candidate 1 of 1: " + one.address()));
  EXPECT_THAT(worker.said(), HasSubstr(one.address() + " ECONNREFUSED"));
}

TEST(Startup, GivesUpWhenAskedTo) {
  DeadPort one, two;
  Program worker({"--peers", one.address() + "," + two.address(), "--name", "n1", "--data-dir",
                  fresh_dir(), "--call-deadline-ms", "300", "--exit-if-unreachable"});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.said(), HasSubstr(one.address() + " ECONNREFUSED"));
  EXPECT_THAT(worker.said(), HasSubstr(two.address() + " ECONNREFUSED"));
  EXPECT_THAT(worker.said(), Not(HasSubstr("waiting")));
}

TEST(Startup, ABadEntryIsNamed) {
  Program worker(
      {"--peers", "a=127.0.0.1:1,b=127.0.0.1:none", "--name", "n1", "--data-dir", fresh_dir()});
  EXPECT_EQ(worker.wait(), 2);
  EXPECT_THAT(worker.said(), HasSubstr("b=127.0.0.1:none"));
}

}  // namespace
}  // namespace xce
