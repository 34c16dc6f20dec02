// Sessions and the REPL against a scripted controller: what libxce returns becomes words and codes.
#include "cli/session.h"

#include <gtest/gtest.h>

#include <atomic>

#include "cli/exit_code.h"
#include "cli/repl.h"
#include "cli/terminal.h"
#include "libxce/client/testing/client_fixture.h"

namespace xce::cli {
namespace {

using client::Answer;
using client::DeadPort;
using client::MockMaster;
using client::Seen;
using client::Which;

std::string at(uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

Connection to(const std::string& masters, int deadline_ms = 5000) {
  Connection connection;
  connection.masters = {masters, "the test"};
  connection.deadline_ms = deadline_ms;
  connection.notice = false;
  return connection;
}

// hello is served, everything else gets `status`.
MockMaster::Script all_but_hello(int status) {
  return [status](const Seen& seen) {
    return seen.which == Which::HELLO ? Answer() : client::status(status);
  };
}

TEST(Session, RefusalsBecomeExitCodes) {
  const std::pair<int, int> cases[] = {{E_XCE_PERM, kPermission},
                                       {E_XCE_NOENT, kNotFound},
                                       {E_XCE_INVALID, kFailure},
                                       {E_XCE_OUTCOME_UNKNOWN, kOutcomeUnknown}};
  for (const auto& [status, code] : cases) {
    MockMaster master(all_but_hello(status));
    const auto session = Session::open(to(at(master.port())));
    ASSERT_TRUE(session.ok()) << session.status();
    const uint64_t id = 17;
    const auto rc = (*session)->call("cannot kill job 17", [&](xcecli_ctx_t ctx) {
      return xcecli_jobctrl(ctx, &id, 1, XCE_JOBCTRL_KILL, 0, false);
    });
    ASSERT_FALSE(rc.ok()) << status;
    EXPECT_EQ(exit_code_of(rc.status()), code) << rc.status();
    EXPECT_EQ(std::string(rc.status().message()).rfind("cannot kill job 17: ", 0), 0u)
        << rc.status();
  }
}

TEST(Session, NobodyThereIsNoLeader) {
  DeadPort nobody;
  const auto session = Session::open(to(at(nobody.port()), 500));
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(exit_code_of(session.status()), kNoLeader);
  const std::string text(session.status().message());
  EXPECT_NE(text.find("(from the test)"), std::string::npos) << text;
  EXPECT_NE(text.find("--masters"), std::string::npos) << text;
}

TEST(Session, BadMastersAreNamed) {
  const auto session = Session::open(to("localhost:notaport"));
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(exit_code_of(session.status()), kUsage);
  EXPECT_NE(std::string(session.status().message()).find("localhost:notaport"), std::string::npos);
}

// An outage that lasts longer than the deadline of one call.
TEST(Session, FollowingOutlivesAnOutageAndACallDoesNot) {
  std::atomic<bool> out{true};
  MockMaster master([&](const Seen& seen) {
    return seen.which == Which::HELLO || !out ? Answer() : client::status(E_XCE_NOT_READY);
  });
  const auto session = Session::open(to(at(master.port()), 200));
  ASSERT_TRUE(session.ok()) << session.status();
  int calls = 0;
  const auto op = [&](xcecli_ctx_t ctx) {
    if (++calls == 3) out = false;
    xce_job_page_t* page = nullptr;
    const int rc = xcecli_joblist(ctx, nullptr, &page);
    xce_free_job_page(page);
    return rc;
  };
  const auto once = (*session)->call("cannot list", op);
  ASSERT_FALSE(once.ok());
  EXPECT_EQ(exit_code_of(once.status()), kNoLeader);
  const auto followed = (*session)->follow("cannot follow", 0, op);
  EXPECT_TRUE(followed.ok()) << followed.status();
  EXPECT_EQ(calls, 3);
}

TEST(Session, FollowingEndsWithItsTimeout) {
  MockMaster master(all_but_hello(E_XCE_NOT_READY));
  const auto session = Session::open(to(at(master.port()), 5000));
  ASSERT_TRUE(session.ok()) << session.status();
  const auto rc = (*session)->follow("cannot follow", steady_ms() + 300, [](xcecli_ctx_t ctx) {
    xce_job_page_t* page = nullptr;
    const int result = xcecli_joblist(ctx, nullptr, &page);
    xce_free_job_page(page);
    return result;
  });
  ASSERT_FALSE(rc.ok());
  EXPECT_EQ(exit_code_of(rc.status()), kWaitTimeout) << rc.status();
}

TEST(Repl, OneLineForEachCall) {
  MockMaster master([](const Seen&) { return Answer(); });
  Repl repl(at(master.port()), 5000);
  const auto hello = repl.execute("hello");
  EXPECT_TRUE(hello.ok) << hello.text;
  EXPECT_EQ(hello.text.rfind("ok node=", 0), 0u) << hello.text;
  EXPECT_EQ(repl.execute("jobsub one -- sleep 1").text, "ok job=42 count=1");
  EXPECT_EQ(repl.execute("").text, "");
  EXPECT_TRUE(repl.execute("# a comment").ok);
  EXPECT_TRUE(repl.execute("quit").quit);
}

TEST(Repl, ErrorsHaveTheNameOfWhatLibxceReturned) {
  MockMaster master(all_but_hello(E_XCE_PERM));
  Repl repl(at(master.port()), 5000);
  const auto answer = repl.execute("jobctrl kill 17");
  EXPECT_FALSE(answer.ok);
  EXPECT_EQ(answer.text.rfind("error E_XCE_PERM: ", 0), 0u) << answer.text;
}

TEST(Repl, NonsenseIsEinvalAndReachesNobody) {
  Repl repl("localhost:notaport", 1000);
  for (const char* line :
       {"bogus", "set", "set masters x:y", "set timeout 0", "jobctrl kill", "jobctrl explode 1",
        "jobsub name", "jobinfo x", "joblist asleep", "hello"}) {
    const auto answer = repl.execute(line);
    EXPECT_FALSE(answer.ok) << line;
    EXPECT_EQ(answer.text.rfind("error EINVAL: ", 0), 0u) << line << ": " << answer.text;
  }
}

TEST(Repl, AnotherClusterIsReachedAfterSetMasters) {
  MockMaster first([](const Seen&) { return Answer(); });
  MockMaster second([](const Seen&) { return Answer(); });
  Repl repl(at(first.port()), 5000);
  EXPECT_TRUE(repl.execute("joblist").ok);
  EXPECT_EQ(repl.execute("set masters " + at(second.port())).text, "ok masters=1");
  EXPECT_TRUE(repl.execute("joblist").ok);
  EXPECT_EQ(first.count(Which::JOB_LIST), 1u);
  EXPECT_EQ(second.count(Which::JOB_LIST), 1u);
}

TEST(Repl, FailsOverByItself) {
  MockMaster standby(all_but_hello(E_XCE_STANDBY));
  MockMaster primary([](const Seen&) { return Answer(); });
  Repl repl(at(standby.port()) + "," + at(primary.port()), 5000);
  const auto answer = repl.execute("joblist");
  EXPECT_TRUE(answer.ok) << answer.text;
  EXPECT_EQ(primary.count(Which::JOB_LIST), 1u);
}

}  // namespace
}  // namespace xce::cli
