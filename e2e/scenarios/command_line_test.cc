// What a person at a prompt sees: the real xce and xce_test against a whole cluster, with their
// exit codes.

#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"
#include "nlohmann/json.hpp"

namespace xce::e2e {
namespace {

class CommandLine : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    ClusterOptions options;
    options.workers = 1;
    options.schedulers = 1;
    start(options);
  }
  Finished xce(std::vector<std::string> args, const std::string& input = "") {
    return run("cli/xce", args, {"XCE_MASTERS=" + cluster_->masters(), "NO_COLOR=1"}, input);
  }
  std::string write_script(const std::string& name, const std::string& text) {
    const std::string path = cluster_->dir() + "/work/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string work() const { return cluster_->dir() + "/work"; }
};

TEST_F(CommandLine, SubmitWaitLogs) {
  const std::string script = write_script("hello.sh", "#!/bin/sh\necho hello $1\n");
  const Finished submitted = xce({"submit", "--workdir", work(), script, "world"});
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  EXPECT_TRUE(absl::StrContains(submitted.out, "Submitted job 1")) << submitted.out;
  const Finished waited = xce({"wait", "1"});
  EXPECT_EQ(waited.code, 0) << waited.err;
  const Finished logs = xce({"logs", "1"});
  EXPECT_EQ(logs.code, 0) << logs.err;
  EXPECT_EQ(logs.out, "hello world\n");
  const Finished job = xce({"job", "1"});
  EXPECT_EQ(job.code, 0);
  EXPECT_TRUE(absl::StrContains(job.out, "COMPLETED")) << job.out;
  const Finished json = xce({"jobs", "--all", "--output", "json"});
  EXPECT_EQ(json.code, 0);
  EXPECT_TRUE(absl::StrContains(json.out, "\"state\"")) << json.out;
}

TEST_F(CommandLine, ExitCodesOfJobsAndOfFailures) {
  EXPECT_EQ(xce({"run", "--workdir", work(), "--", "/bin/sh", "-c", "echo out; exit 3"}).code, 3);
  EXPECT_EQ(xce({"run", "--workdir", work(), "--", "/bin/sh", "-c", "kill -9 $$"}).code, 137);
  EXPECT_EQ(xce({"wait", "--timeout", "20", "2"}).code, 137);
  EXPECT_EQ(xce({"job", "999"}).code, 3);
  EXPECT_EQ(xce({"wait", "999"}).code, 123) << "120 + 3, not found";
  EXPECT_EQ(xce({"jobs", "--no-such-flag"}).code, 2);
  EXPECT_EQ(xce({"no-such-command"}).code, 2);
  const Finished held = xce({"submit", "--hold", "--workdir", work(), "--", "/bin/true"});
  ASSERT_EQ(held.code, 0) << held.err;
  const Finished late = xce({"wait", "--timeout", "0.2", "3"});
  EXPECT_EQ(late.code, 127) << "120 + 7, wait timeout";
  EXPECT_TRUE(absl::StrContains(late.err, "xce release 3")) << "why it waits: " << late.err;
  EXPECT_EQ(xce({"kill", "3"}).code, 0);
  EXPECT_EQ(xce({"kill", "999"}).code, 3);
}

TEST_F(CommandLine, ACommandUnderAKeyIsDoneOnceAlsoAcrossAFailover) {
  const Finished held = xce({"submit", "--hold", "--workdir", work(), "--", "/bin/true"});
  ASSERT_EQ(held.code, 0) << held.err;
  const auto priority = [&] {
    const Finished job = xce({"job", "1", "--output", "json"});
    return nlohmann::json::parse(job.out, nullptr, false).value("priority", -1);
  };
  const std::vector<std::string> once = {"modify",   "1", "--priority", "5",
                                         "--op-key", "k", "--output",   "json"};
  const Finished first = xce(once);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(priority(), 5);
  EXPECT_EQ(xce({"modify", "1", "--priority", "9"}).code, 0);
  ASSERT_GE(kill_primary(), 0);
  const Finished again = xce(once);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, first.out) << "the first answer";
  EXPECT_EQ(priority(), 9) << "and it was not done a second time";
  const Finished other = xce({"modify", "1", "--priority", "7", "--op-key", "k"});
  EXPECT_NE(other.code, 0);
  EXPECT_TRUE(absl::StrContains(other.err, "another request")) << other.err;
  EXPECT_EQ(xce({"kill", "1", "--op-key", "k2"}).code, 0);
  EXPECT_EQ(xce({"kill", "1", "--op-key", "k2"}).code, 0);
}

TEST_F(CommandLine, WhoWaitsIsToldOfTheEndAcrossAFailover) {
  const Finished submitted =
      xce({"submit", "--workdir", work(), "--", "/bin/sh", "-c",
           "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo over; exit 3"});
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  const Finished array = xce({"submit", "--array", "0-2", "--workdir", work(), "--", "/bin/sh",
                              "-c", "while [ ! -e go ]; do sleep 0.02; done"});
  ASSERT_EQ(array.code, 0) << array.err;
  Finished waited, followed, several;
  std::thread waits([&] { waited = xce({"wait", "1"}); });
  std::thread follows([&] { followed = xce({"logs", "-f", "1"}); });
  std::thread waits_for_array([&] { several = xce({"wait", "1", "2"}); });
  const int old = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_TRUE(wait_until([&] { return xce({"logs", "1"}).out == "begun\n"; }, milliseconds(10000)));
  cluster_->controller(old).kill9();
  EXPECT_GE(cluster_->wait_primary(old, milliseconds(10000)), 0);
  std::ofstream(work() + "/go") << "";
  waits.join();
  follows.join();
  waits_for_array.join();
  EXPECT_EQ(waited.code, 3) << waited.err;
  EXPECT_TRUE(absl::StrContains(waited.out, "Job 1 FAILED with exit code 3")) << waited.out;
  EXPECT_EQ(followed.code, 0) << followed.err;
  EXPECT_EQ(followed.out, "begun\nover\n");
  EXPECT_EQ(several.code, 3) << several.err;
  EXPECT_TRUE(absl::StrContains(several.out, "Job 2[2] COMPLETED")) << several.out;
}

TEST_F(CommandLine, BadScriptsAreRefusedWithAWayOut) {
  const std::string cases[] = {
      work() + "/missing.sh",
      write_script("empty.sh", ""),
      work(),
      write_script("binary", std::string("\x7f"
                                         "ELF\0\0\0\1",
                                         8)),
      write_script("plain", "echo no shebang\n"),
      write_script("large.sh", "#!/bin/sh\n" + std::string(2 * 1024 * 1024, '#'))};
  for (const std::string& path : cases) {
    const Finished refused = xce({"submit", path});
    EXPECT_NE(refused.code, 0) << path;
    EXPECT_TRUE(absl::StrContains(refused.err, "xce: ")) << path << ": " << refused.err;
  }
  EXPECT_EQ(xce({"jobs", "--all", "--output", "json"}).code, 0);
}

TEST_F(CommandLine, NoLeaderIsSaidAsSuch) {
  cluster_->controller(0).kill9();
  cluster_->controller(1).kill9();
  const Finished refused = xce({"--deadline", "1", "jobs"});
  EXPECT_EQ(refused.code, 5) << refused.err;
  EXPECT_TRUE(absl::StrContains(refused.err, "primary")) << refused.err;
  const Finished status = xce({"--deadline", "2", "cluster", "status"});
  // Each controller by its address and condition, as none serves.
  for (int node = 0; node < 3; ++node)
    EXPECT_TRUE(absl::StrContains(status.out, cluster_->address(node))) << status.out << status.err;
  EXPECT_TRUE(absl::StrContains(status.out, "is electing a primary")) << status.out;
}

TEST_F(CommandLine, ReplTakesCommandsFromStdin) {  // the specs' reproduction case
  const std::string masters = cluster_->masters();
  const Finished before = run(
      "cli/xce_test", {}, {},
      "set masters " + masters + "\nhello\njobsub one -- /bin/true\njoblist\nclusterconf\nhelp\n");
  EXPECT_EQ(before.code, 0) << before.out << before.err;
  ASSERT_GE(kill_primary(), 0);
  const Finished after = run("cli/xce_test", {}, {}, "set masters " + masters + "\njoblist\n");
  EXPECT_EQ(after.code, 0) << after.out << after.err;
  const Finished bad = run("cli/xce_test", {}, {}, "set masters localhost:notaport\n");
  EXPECT_NE(bad.code, 0);
  EXPECT_TRUE(absl::StrContains(bad.out + bad.err, "localhost:notaport")) << bad.out << bad.err;
}

}  // namespace
}  // namespace xce::e2e
