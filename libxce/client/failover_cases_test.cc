// The stories of testdata/failover through the pure decision: virtual clock, seeded randomness, no
// socket. Each runs under many seeds, so that a range of sleeps holds for any jitter.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "libxce/client/failover.h"
#include "libxce/client/testing/failover_case.h"
#include "xce/errnox.h"

namespace xce::client {
namespace {

constexpr int kSeeds = 25;
constexpr int64_t kStaggerMs = 250;  // a silent candidate costs that much, then the next joins

std::string letter(int master) {
  return master < 0 ? "any" : std::string(1, static_cast<char>('a' + master));
}

// One client with one thread, whose masters do what the steps say.
class Story {
 public:
  Story(const FailoverCase& c, uint32_t seed) : c_(c), random_(seed), now_(c.clock_ms) {
    config_.candidates = c.masters;
    config_.max_retries = c.max_retries;
    config_.initial_delay_ms = c.initial_delay_ms;
    config_.max_delay_ms = c.max_delay_ms;
  }

  void run() {
    while (at_ < c_.steps.size() && !testing::Test::HasFatalFailure()) {
      const CaseStep& step = c_.steps[at_++];
      SCOPED_TRACE("step " + std::to_string(at_));
      if (step.kind == CaseStep::Kind::kCall) {
        call(step.word);
      } else if (step.kind == CaseStep::Kind::kLost) {
        ASSERT_TRUE(linked_);
        CallState nobody;
        nobody.deadline_ms = INT64_MAX;
        linked_ = false;
        after(decide(config_, &state_, &nobody, transport(step.master, false), now_, jitter()));
      } else {
        FAIL() << "step " << at_ << " was not reached: the call was over before it";
      }
    }
    check();
  }

 private:
  double jitter() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  Outcome transport(int from, bool delivered) {
    Outcome o;
    o.from = Target{from, "", 0};
    o.delivered = delivered;
    return o;
  }

  // What the master that is asked now does; takes the step, unless it holds until later.
  CaseStep next(int master, bool hello) {
    while (at_ < c_.steps.size() && c_.steps[at_].until_ms > 0 &&
           now_ >= c_.clock_ms + c_.steps[at_].until_ms)
      ++at_;
    if (at_ == c_.steps.size() || c_.steps[at_].kind != CaseStep::Kind::kMaster ||
        (c_.steps[at_].master != kAny && c_.steps[at_].master != master)) {
      ADD_FAILURE() << letter(master) << " was asked " << (hello ? "hello" : "a request") << " at "
                    << now_ - c_.clock_ms << " ms, but step " << at_ + 1 << " is another one";
      broken_ = true;
      return {};
    }
    const CaseStep& step = c_.steps[at_];
    if (step.until_ms == 0) ++at_;
    return step;
  }

  Outcome outcome(const CaseStep& step, int from, bool hello) {
    const int status = status_of_word(step.word);
    if (status < 0) return transport(from, !hello && step.word != "refused");
    Outcome o;
    o.kind = hello ? Outcome::Kind::kHelloReply : Outcome::Kind::kReply;
    o.from = Target{from, "", 0};
    o.status = status;
    o.term = step.term;
    o.cluster_id = step.term == 0 ? 0 : 1;
    o.has_hint = step.redirect >= 0;
    if (o.has_hint) o.hint = Target{step.redirect, "", 0};
    return o;
  }

  void after(const Decision& d) {
    if (d.action == Action::kConnect) sleeps_.push_back(d.delay_ms);
  }

  // Connects once. True when the call is over with *result.
  bool connect(CallState* call, int* result) {
    now_ = std::max(now_, std::min(state_.not_before_ms, call->deadline_ms));
    if (exhausted(config_, *call, now_)) {
      *result = -E_XCE_NOT_READY;
      return true;
    }
    int target = state_.target.candidate;
    endpoints_.push_back(target);
    CaseStep step = next(target, true);
    while (!broken_ && step.word == "silent") {  // the next of the list joins the race
      note_failed(&state_, Target{target, "", 0});
      now_ += kStaggerMs;
      target = (target + 1) % c_.masters;
      endpoints_.push_back(target);
      step = next(target, true);
    }
    if (broken_) return true;
    Decision d = decide(config_, &state_, call, outcome(step, target, true), now_, jitter());
    if (d.action == Action::kProceed) {
      ++generation_;
      ++hooks_;
      linked_ = true;
      if (at_ < c_.steps.size() && c_.steps[at_].kind == CaseStep::Kind::kHook &&
          c_.steps[at_++].word == "fail") {
        linked_ = false;
        Outcome failed = transport(target, false);
        failed.kind = Outcome::Kind::kHookFailed;
        d = decide(config_, &state_, call, failed, now_, jitter());
      }
    }
    after(d);
    *result = d.result;
    return d.action == Action::kReturn || d.action == Action::kGiveUp;
  }

  bool request(CallState* call, int* result) {
    const int target = state_.target.candidate;
    ++call->sends;
    if (call->write) resent_.push_back(call->maybe_applied);
    const CaseStep step = next(target, false);
    if (broken_) return true;
    const Decision d = decide(config_, &state_, call, outcome(step, target, false), now_, jitter());
    after(d);
    linked_ = d.action == Action::kReturn;
    *result = d.result;
    return d.action != Action::kConnect;
  }

  void call(const std::string& word) {
    CallState call;
    call.write = word == "submit";
    call.deadline_ms = now_ + c_.deadline_ms;
    int result = 0;
    for (bool over = false; !over && !broken_;) {
      if (!linked_)
        over = connect(&call, &result);
      else if (word == "start")
        over = true;
      else
        over = request(&call, &result);
    }
    ASSERT_FALSE(broken_);
    while (at_ < c_.steps.size() && c_.steps[at_].until_ms > 0) ++at_;
    ASSERT_LT(at_, c_.steps.size());
    const CaseStep& expected = c_.steps[at_++];
    ASSERT_EQ(expected.kind, CaseStep::Kind::kResult) << "the call is over before step " << at_;
    EXPECT_EQ(-result, status_of_word(expected.word)) << expected.word;
    if (result != 0) {
      EXPECT_EQ(call.maybe_applied, expected.maybe);
    }
  }

  void check() {
    if (!c_.endpoints.empty()) {
      EXPECT_EQ(endpoints_, c_.endpoints);
    }
    if (!c_.resent.empty()) {
      EXPECT_EQ(resent_, c_.resent);
    }
    if (!c_.hooks.empty()) {
      EXPECT_EQ(hooks_, c_.hooks[0]);
    }
    if (!c_.generation.empty()) {
      EXPECT_EQ(generation_, c_.generation[0]);
    }
    int64_t slept = 0;
    for (const int64_t s : sleeps_) slept += s;
    if (!c_.sleeps.empty()) {
      ASSERT_EQ(sleeps_.size(), c_.sleeps.size());
      for (size_t i = 0; i < sleeps_.size(); ++i) {
        EXPECT_GE(sleeps_[i], c_.sleeps[i].first) << "sleep " << i + 1;
        EXPECT_LE(sleeps_[i], c_.sleeps[i].second) << "sleep " << i + 1;
      }
    }
    for (const Range& r : c_.slept) {
      EXPECT_GE(slept, r.first);
      EXPECT_LE(slept, r.second);
    }
    for (const Range& r : c_.elapsed) {
      EXPECT_GE(now_ - c_.clock_ms, r.first);
      EXPECT_LE(now_ - c_.clock_ms, r.second);
    }
  }

  const FailoverCase& c_;
  std::mt19937 random_;
  int64_t now_;
  FailoverConfig config_;
  FailoverState state_;
  bool linked_ = false, broken_ = false;
  size_t at_ = 0;
  std::vector<int> endpoints_, resent_;
  std::vector<int64_t> sleeps_;
  int hooks_ = 0, generation_ = 0;
};

class FailoverCases : public testing::TestWithParam<FailoverCase> {};

TEST_P(FailoverCases, Hold) {
  const FailoverCase& c = GetParam();
  for (uint32_t seed = c.seed; seed < c.seed + kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Story(c, seed).run();
  }
}

INSTANTIATE_TEST_SUITE_P(Decision, FailoverCases, testing::ValuesIn(all_failover_cases()),
                         [](const testing::TestParamInfo<FailoverCase>& info) {
                           return test_name(info.param);
                         });

}  // namespace
}  // namespace xce::client
