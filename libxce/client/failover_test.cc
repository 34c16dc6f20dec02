// Stories of the failover decision, as data: each step is an outcome and what must follow from it.
#include "libxce/client/failover.h"

#include <climits>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "xce/errnox.h"

namespace xce::client {
namespace {

constexpr int kStranger = -1;  // a node that is not in the list: host "x", port 1
constexpr int kNoHint = -2;

using K = Outcome::Kind;
using A = Action;

struct Step {
  K kind;
  int from;
  int status;      // of replies
  int hint;        // candidate that is named, kStranger or kNoHint
  A action;        // expected
  int target;      // expected, of kConnect
  int delay_ms;    // expected, of kConnect; random is 0.5
  int result = 0;  // expected, of kReturn and kGiveUp
  uint64_t term = 0;
  bool delivered = false;
};

struct Story {
  const char* name;
  int candidates;
  int max_retries;
  bool write;
  int sends;  // before each step
  std::vector<Step> steps;
  bool maybe_applied = false;  // expected at the end
};

Target target(int candidate) {
  return candidate == kStranger ? Target{-1, "x", 1} : Target{candidate, "", 0};
}

const Story kStories[] = {
    {"a primary serves",
     3,
     20,
     false,
     1,
     {{K::kHelloReply, 0, 0, kNoHint, A::kProceed, 0, 0},
      {K::kReply, 0, 0, kNoHint, A::kReturn, 0, 0, 0}}},
    {"refused, refused, served: no sleep within a pass",
     3,
     20,
     false,
     0,
     {{K::kTransport, 0, 0, kNoHint, A::kConnect, 1, 0},
      {K::kTransport, 1, 0, kNoHint, A::kConnect, 2, 0},
      {K::kHelloReply, 2, 0, kNoHint, A::kProceed, 2, 0}}},
    {"all refused: backoff after each pass, doubling, until the budget is used up",
     2,
     2,
     false,
     0,
     {{K::kTransport, 0, 0, kNoHint, A::kConnect, 1, 0},
      {K::kTransport, 1, 0, kNoHint, A::kConnect, 0, 50},
      {K::kTransport, 0, 0, kNoHint, A::kConnect, 1, 0},
      {K::kTransport, 1, 0, kNoHint, A::kConnect, 0, 100},
      {K::kTransport, 0, 0, kNoHint, A::kConnect, 1, 0},
      {K::kTransport, 1, 0, kNoHint, A::kGiveUp, 0, 0, -E_XCE_NOT_READY}}},
    {"the hint comes first and costs no sleep",
     3,
     20,
     false,
     1,
     {{K::kHelloReply, 0, E_XCE_REDIRECT, 2, A::kConnect, 2, 0},
      {K::kHelloReply, 2, 0, kNoHint, A::kProceed, 2, 0}}},
    {"a redirect without an address rotates at once",
     3,
     20,
     false,
     1,
     {{K::kReply, 1, E_XCE_REDIRECT, kNoHint, A::kConnect, 2, 0}}},
    {"a hint out of the list is followed; when it fails, the list goes on",
     3,
     20,
     false,
     0,
     {{K::kHelloReply, 0, E_XCE_REDIRECT, kStranger, A::kConnect, kStranger, 0},
      {K::kTransport, kStranger, 0, kNoHint, A::kConnect, 1, 0},
      {K::kHelloReply, 1, E_XCE_REDIRECT, kStranger, A::kConnect, 2, 0}}},
    {"a hint to the node that just failed is not followed",
     3,
     20,
     false,
     0,
     {{K::kTransport, 0, 0, kNoHint, A::kConnect, 1, 0},
      {K::kHelloReply, 1, E_XCE_REDIRECT, 0, A::kConnect, 2, 0},
      {K::kHelloReply, 2, E_XCE_REDIRECT, 0, A::kConnect, 0, 50}}},
    {"a redirect loop falls into backoff",
     2,
     20,
     false,
     0,
     {{K::kHelloReply, 0, E_XCE_REDIRECT, 1, A::kConnect, 1, 0},
      {K::kHelloReply, 1, E_XCE_REDIRECT, 0, A::kConnect, 0, 50},
      {K::kHelloReply, 0, E_XCE_REDIRECT, 1, A::kConnect, 1, 0},
      {K::kHelloReply, 1, E_XCE_REDIRECT, 0, A::kConnect, 0, 100}}},
    {"a node that redirects to itself falls into backoff",
     1,
     20,
     false,
     0,
     {{K::kHelloReply, 0, E_XCE_REDIRECT, 0, A::kConnect, 0, 50}}},
    {"standby rotates without sleep",
     3,
     20,
     true,
     1,
     {{K::kReply, 2, E_XCE_STANDBY, kNoHint, A::kConnect, 0, 0}}},
    {"no primary: a share of the backoff at each node, doubling from pass to pass",
     2,
     20,
     false,
     0,
     {{K::kHelloReply, 0, E_XCE_NOMASTER, kNoHint, A::kConnect, 1, 25},
      {K::kHelloReply, 1, E_XCE_NOT_READY, kNoHint, A::kConnect, 0, 25},
      {K::kHelloReply, 0, E_XCE_NOT_READY, kNoHint, A::kConnect, 1, 50},
      {K::kHelloReply, 1, 0, kNoHint, A::kProceed, 1, 0},
      {K::kTransport, 1, 0, kNoHint, A::kConnect, 0, 0},
      {K::kHelloReply, 0, E_XCE_NOMASTER, kNoHint, A::kConnect, 1, 25}}},
    {"one candidate: the plain exponential backoff up to its ceiling",
     1,
     20,
     false,
     0,
     {{K::kReply, 0, E_XCE_NOT_READY, kNoHint, A::kConnect, 0, 50},
      {K::kReply, 0, E_XCE_NOT_READY, kNoHint, A::kConnect, 0, 100},
      {K::kReply, 0, E_XCE_NOT_READY, kNoHint, A::kConnect, 0, 200},
      {K::kReply, 0, E_XCE_NOT_READY, kNoHint, A::kConnect, 0, 400},
      {K::kReply, 0, E_XCE_NOT_READY, kNoHint, A::kConnect, 0, 500},
      {K::kReply, 0, E_XCE_NOT_READY, kNoHint, A::kConnect, 0, 500}}},
    {"retries of zero: one pass, then the distinct error",
     1,
     0,
     true,
     0,
     {{K::kHelloReply, 0, E_XCE_NOMASTER, kNoHint, A::kGiveUp, 0, 0, -E_XCE_NOT_READY}}},
    {"a busy controller at hello is like one that is not ready",
     1,
     20,
     false,
     0,
     {{K::kHelloReply, 0, E_XCE_BUSY, kNoHint, A::kConnect, 0, 50}}},
    {"terminal: auth",
     2,
     20,
     true,
     1,
     {{K::kReply, 0, E_XCE_AUTH, kNoHint, A::kReturn, 0, 0, -E_XCE_AUTH}}},
    {"terminal: perm",
     2,
     20,
     true,
     1,
     {{K::kReply, 0, E_XCE_PERM, kNoHint, A::kReturn, 0, 0, -E_XCE_PERM}}},
    {"terminal: invalid",
     2,
     20,
     true,
     1,
     {{K::kReply, 0, E_XCE_INVALID, kNoHint, A::kReturn, 0, 0, -E_XCE_INVALID}}},
    {"terminal: noent",
     2,
     20,
     true,
     1,
     {{K::kReply, 0, E_XCE_NOENT, kNoHint, A::kReturn, 0, 0, -E_XCE_NOENT}}},
    {"terminal: stale",
     2,
     20,
     true,
     1,
     {{K::kReply, 0, E_XCE_STALE, kNoHint, A::kReturn, 0, 0, -E_XCE_STALE}}},
    {"terminal: duplicate",
     2,
     20,
     true,
     1,
     {{K::kReply, 0, E_XCE_DUP_JOB, kNoHint, A::kReturn, 0, 0, -E_XCE_DUP_JOB}}},
    {"terminal: auth at hello",
     2,
     20,
     true,
     0,
     {{K::kHelloReply, 0, E_XCE_AUTH, kNoHint, A::kReturn, 0, 0, -E_XCE_AUTH}}},
    {"a write cut off before it was sent was not applied",
     2,
     20,
     true,
     0,
     {{K::kTransport, 0, 0, kNoHint, A::kConnect, 1, 0}},
     false},
    {"a write cut off after it was sent may have been applied",
     2,
     20,
     true,
     1,
     {{K::kTransport, 0, 0, kNoHint, A::kConnect, 1, 0, 0, 0, true}},
     true},
    {"a read never may have been applied",
     2,
     20,
     false,
     1,
     {{K::kTransport, 0, 0, kNoHint, A::kConnect, 1, 0, 0, 0, true}},
     false},
    {"a write refused by a standby was not applied",
     2,
     20,
     true,
     1,
     {{K::kReply, 0, E_XCE_STANDBY, kNoHint, A::kConnect, 1, 0}},
     false},
    {"unknown outcome of a write sent once: same node, new birth",
     2,
     20,
     true,
     1,
     {{K::kReply, 0, E_XCE_OUTCOME_UNKNOWN, kNoHint, A::kConnect, 0, 0}},
     true},
    {"unknown outcome of a write sent twice: asked again elsewhere, then told",
     2,
     20,
     true,
     2,
     {{K::kReply, 0, E_XCE_OUTCOME_UNKNOWN, kNoHint, A::kConnect, 1, 0},
      {K::kReply, 1, E_XCE_OUTCOME_UNKNOWN, kNoHint, A::kConnect, 0, 50},
      {K::kReply, 0, E_XCE_OUTCOME_UNKNOWN, kNoHint, A::kReturn, 0, 0, -E_XCE_OUTCOME_UNKNOWN}},
     true},
    {"a primary of a lower term is not believed",
     2,
     20,
     true,
     1,
     {{K::kHelloReply, 0, 0, kNoHint, A::kProceed, 0, 0, 0, 7},
      {K::kTransport, 0, 0, kNoHint, A::kConnect, 1, 0},
      {K::kHelloReply, 1, 0, kNoHint, A::kConnect, 0, 50, 0, 6},
      {K::kHelloReply, 0, 0, kNoHint, A::kProceed, 0, 0, 0, 7}}},
    {"the term of a node that did not serve counts for nothing",
     2,
     20,
     false,
     1,
     {{K::kHelloReply, 0, E_XCE_NOMASTER, kNoHint, A::kConnect, 1, 25, 0, 99},
      {K::kHelloReply, 1, 0, kNoHint, A::kProceed, 1, 0, 0, 3}}},
    {"a write answered in an old term may have been applied",
     2,
     20,
     true,
     1,
     {{K::kHelloReply, 0, 0, kNoHint, A::kProceed, 0, 0, 0, 7},
      {K::kReply, 0, 0, kNoHint, A::kConnect, 1, 0, 0, 6}},
     true},
    {"a failed rejoin backs off",
     1,
     20,
     false,
     0,
     {{K::kHelloReply, 0, 0, kNoHint, A::kProceed, 0, 0},
      {K::kHookFailed, 0, 0, kNoHint, A::kConnect, 0, 50}}},
    {"a probe's finding is followed at once",
     3,
     20,
     true,
     1,
     {{K::kHelloReply, 0, 0, kNoHint, A::kProceed, 0, 0},
      {K::kTransport, 0, 0, 2, A::kConnect, 2, 0, 0, 0, true}},
     true},
};

class Stories : public testing::TestWithParam<Story> {};

TEST_P(Stories, Hold) {
  const Story& story = GetParam();
  FailoverConfig config;
  config.candidates = story.candidates;
  config.max_retries = story.max_retries;
  config.initial_delay_ms = 100;
  config.max_delay_ms = 1000;
  FailoverState state;
  CallState call;
  call.write = story.write;
  call.deadline_ms = INT64_MAX;
  int64_t now = 1000;
  for (size_t i = 0; i < story.steps.size(); ++i) {
    const Step& step = story.steps[i];
    SCOPED_TRACE(std::string(story.name) + ", step " + std::to_string(i + 1));
    Outcome o;
    o.kind = step.kind;
    o.from = target(step.from);
    o.status = step.status;
    o.term = step.term;
    o.delivered = step.delivered;
    o.has_hint = step.hint != kNoHint;
    if (o.has_hint) o.hint = target(step.hint);
    call.sends = story.sends;
    const Decision d = decide(config, &state, &call, o, now, 0.5);
    ASSERT_EQ(static_cast<int>(d.action), static_cast<int>(step.action));
    if (step.action == A::kConnect) {
      EXPECT_EQ(state.target, target(step.target));
      EXPECT_EQ(d.delay_ms, step.delay_ms);
      EXPECT_EQ(state.not_before_ms, now + step.delay_ms);
    } else if (step.action != A::kProceed) {
      EXPECT_EQ(d.result, step.result);
    } else {
      EXPECT_TRUE(state.serving);
    }
    now += step.delay_ms;
  }
  EXPECT_EQ(call.maybe_applied, story.maybe_applied);
}

INSTANTIATE_TEST_SUITE_P(Failover, Stories, testing::ValuesIn(kStories),
                         [](const testing::TestParamInfo<Story>& info) {
                           return "story" + std::to_string(info.index);
                         });

Outcome refused(int from) {
  Outcome o;
  o.from = target(from);
  return o;
}

TEST(Failover, DeadlineEndsACallWhoseNextAttemptComesTooLate) {
  FailoverConfig config;
  FailoverState state;
  CallState call;
  call.deadline_ms = 1004;
  EXPECT_EQ(decide(config, &state, &call, refused(0), 1000, 0.3).action,
            Action::kConnect);  // in 3 ms
  EXPECT_EQ(decide(config, &state, &call, refused(0), 1003, 0.3).action,
            Action::kGiveUp);  // in 6 ms
  EXPECT_EQ(state.not_before_ms, 1009) << "the next call waits for it";
}

TEST(Failover, BackoffSurvivesACallAndEndsWithAPrimary) {
  FailoverConfig config;
  FailoverState state;
  for (int i = 0; i < 5; ++i) {
    CallState call;
    call.deadline_ms = INT64_MAX;
    const Decision d = decide(config, &state, &call, refused(0), 0, 0.5);
    EXPECT_EQ(d.delay_ms, 5 << i);
  }
  CallState call;
  call.deadline_ms = INT64_MAX;
  Outcome hello;
  hello.kind = K::kHelloReply;
  decide(config, &state, &call, hello, 0, 0.5);
  EXPECT_EQ(decide(config, &state, &call, refused(0), 0, 0.5).delay_ms, 5);
}

TEST(Failover, JitterStaggersClients) {
  FailoverConfig config;
  std::set<int> delays;
  for (int client = 0; client < 50; ++client) {
    FailoverState state;
    state.round = 7;
    CallState call;
    call.deadline_ms = INT64_MAX;
    delays.insert(decide(config, &state, &call, refused(0), 0, client / 50.0).delay_ms);
  }
  EXPECT_GE(delays.size(), 45u);
  EXPECT_LT(*delays.rbegin(), 1280);
}

TEST(Failover, ExhaustedByPassesOrTime) {
  FailoverConfig config;
  config.max_retries = 2;
  CallState call;
  call.deadline_ms = 100;
  EXPECT_FALSE(exhausted(config, call, 99));
  EXPECT_TRUE(exhausted(config, call, 100));
  call.retries = 2;
  EXPECT_FALSE(exhausted(config, call, 0));
  call.retries = 3;
  EXPECT_TRUE(exhausted(config, call, 0));
}

TEST(Failover, AnotherClusterResetsTheFence) {
  FailoverConfig config;
  FailoverState state;
  CallState call;
  call.deadline_ms = INT64_MAX;
  Outcome hello;
  hello.kind = K::kHelloReply;
  hello.term = 9;
  hello.cluster_id = 1;
  EXPECT_EQ(decide(config, &state, &call, hello, 0, 0).action, Action::kProceed);
  hello.term = 1;
  EXPECT_EQ(decide(config, &state, &call, hello, 0, 0).action, Action::kConnect);
  hello.cluster_id = 2;
  EXPECT_EQ(decide(config, &state, &call, hello, 0, 0).action, Action::kProceed);
  EXPECT_EQ(state.term, 1u);
}

}  // namespace
}  // namespace xce::client
