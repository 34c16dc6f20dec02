// How worker, scheduler and apiserver look for the controllers shows in the same log lines, with
// one candidate as with many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "libxce/client/testing/mock_master.h"
#include "libxce/client/testing/program.h"

namespace xce::e2e {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Kind {
  const char* name;
  const char* path;
  std::vector<std::string> args;
};

std::vector<std::string> with(std::vector<std::string> args, std::vector<std::string> more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

class StartupLines : public ::testing::TestWithParam<Kind> {
 protected:
  std::vector<std::string> args(const std::string& peers) const {
    std::vector<std::string> all = with({"--peers", peers}, GetParam().args);
    if (std::string(GetParam().name) != "worker") return all;
    std::string dir = std::string(std::getenv("TEST_TMPDIR")) + "/w.XXXXXX";
    EXPECT_NE(mkdtemp(dir.data()), nullptr);
    return with(all, {"--data-dir", dir});
  }
};

std::string refused(const client::DeadPort& port) {
  return port.address() + " ECONNREFUSED( \\([0-9]+ times\\))?";
}

TEST_P(StartupLines, TellEachCandidateAndEachAttempt) {
  client::DeadPort one, two;
  client::Program daemon(GetParam().path, args("a=" + one.address() + ",b=" + two.address()));
  ASSERT_TRUE(daemon.says("no controller serves yet (attempt 2)")) << daemon.said();
  const std::string said = daemon.said();
  EXPECT_THAT(said, HasSubstr("controller candidate 1 of 2: " + one.address()));
  EXPECT_THAT(said, HasSubstr("controller candidate 2 of 2: " + two.address()));
  // (A later attempt may end before the pause after the last one is over: then none was tried.)
  EXPECT_THAT(said, ContainsRegex("no controller serves yet \\(attempt 1\\): (" + refused(one) +
                                  "; " + refused(two) + "|" + refused(two) + "; " + refused(one) +
                                  "); waiting for a cluster"));
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0);
}

TEST_P(StartupLines, OneControllerIsTheListOfOne) {
  client::DeadPort one;
  client::Program daemon(GetParam().path, args(one.address()));
  ASSERT_TRUE(daemon.says("no controller serves yet (attempt 1)")) << daemon.said();
  EXPECT_THAT(daemon.said(), HasSubstr("controller candidate 1 of 1: " + one.address()));
  EXPECT_THAT(daemon.said(),
              ContainsRegex("\\(attempt 1\\): " + refused(one) + "; waiting for a cluster"));
  EXPECT_THAT(daemon.said(), Not(HasSubstr("candidate 2")));
}

INSTANTIATE_TEST_SUITE_P(All, StartupLines,
                         ::testing::Values(Kind{"worker",
                                                "worker/xcecd",
                                                {"--name", "n1", "--call-deadline-ms", "300",
                                                 "--hello-interval-ms", "50"}},
                                           Kind{"scheduler", "scheduler/xce_scheduler", {}},
                                           Kind{
                                               "apiserver",
                                               "apiserver/xce_apiserver",
                                               {"--listen", "127.0.0.1:0", "--timeout-ms", "500"}}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace xce::e2e
