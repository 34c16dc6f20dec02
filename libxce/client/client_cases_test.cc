// The stories of testdata/failover through the whole client: real sockets and clock, scripted
// controllers that do what the steps say, in their order. See failover_cases_test.cc for the same
// stories without them.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "libxce/client/testing/client_fixture.h"
#include "libxce/client/testing/failover_case.h"

namespace xce::client {
namespace {

constexpr int64_t kSlackMs = 3000;  // of a loaded machine

int64_t stat_of(xcecli_ctx_t ctx, const std::string& name) {
  char json[1024];
  xcecli_stats_json(ctx, json, sizeof json);
  const char* found = std::strstr(json, ("\"" + name + "\":").c_str());
  return found == nullptr ? -1 : std::strtoll(found + name.size() + 3, nullptr, 10);
}

// The controllers of a story and the one cluster state behind them.
class Cluster {
 public:
  explicit Cluster(const FailoverCase& c) : c_(c) {
    for (int m = 0; m < c.masters; ++m) {
      bool dead = true;
      for (const CaseStep& s : c.steps)
        dead = dead && (s.kind != CaseStep::Kind::kMaster || (s.master != m && s.master != kAny) ||
                        s.word == "refused");
      if (dead) {
        dead_.push_back(std::make_unique<DeadPort>());
        ports_.push_back(dead_.back()->port());
        live_.push_back(nullptr);
        continue;
      }
      live_.push_back(
          std::make_unique<MockMaster>([this, m](const Seen& seen) { return answer(m, seen); }));
      ports_.push_back(live_.back()->port());
    }
    started_ms_ = clock_ms();
  }

  const std::vector<uint16_t>& ports() const { return ports_; }
  bool is_dead(int master) const { return live_[static_cast<size_t>(master)] == nullptr; }
  void drop(int master) { live_[static_cast<size_t>(master)]->drop_connections(); }
  int64_t elapsed_ms() const { return clock_ms() - started_ms_; }

  // The next step that no controller takes by itself, or null at the end.
  const CaseStep* take() {
    std::lock_guard<std::mutex> lock(mu_);
    skip();
    return at_ == c_.steps.size() ? nullptr : &c_.steps[at_++];
  }
  int hook() {
    std::lock_guard<std::mutex> lock(mu_);
    ++hooks;
    if (at_ == c_.steps.size() || c_.steps[at_].kind != CaseStep::Kind::kHook) return 0;
    return c_.steps[at_++].word == "fail" ? -1 : 0;
  }

  std::mutex mu_;
  std::vector<int> endpoints, resent;
  std::set<uint64_t> ops, applied;  // numbers of the writes that came, and that took effect
  int hooks = 0;
  std::string trouble;

 private:
  // Passes what happens without a controller's doing: refusals, and what holds until a time.
  void skip() {
    while (at_ < c_.steps.size() && c_.steps[at_].kind == CaseStep::Kind::kMaster &&
           (c_.steps[at_].word == "refused" ||
            (c_.steps[at_].until_ms > 0 && elapsed_ms() >= c_.steps[at_].until_ms)))
      ++at_;
  }

  Answer answer(int master, const Seen& seen) {
    std::lock_guard<std::mutex> lock(mu_);
    skip();
    if (seen.which == Which::HELLO) endpoints.push_back(master);
    if (seen.which == Which::JOB_SUBMIT) {
      resent.push_back(seen.resent ? 1 : 0);
      ops.insert(seen.op_seq);
    }
    const bool ours = at_ < c_.steps.size() && c_.steps[at_].kind == CaseStep::Kind::kMaster &&
                      (c_.steps[at_].master == kAny || c_.steps[at_].master == master);
    if (!ours) {
      if (trouble.empty())
        trouble = std::string(1, static_cast<char>('a' + master)) +
                  " was asked, but the next step is number " + std::to_string(at_ + 1);
      return act(Answer::Do::kCut);
    }
    const CaseStep& step = c_.steps[at_];
    if (step.until_ms == 0) ++at_;
    return answer_of(step, seen);
  }

  Answer answer_of(const CaseStep& step, const Seen& seen) {
    Answer a;
    if (step.word == "silent") return act(Answer::Do::kNothing);
    if (step.word == "reset") return act(Answer::Do::kCut);
    if (seen.which == Which::JOB_SUBMIT && (step.word == "ok" || step.word == "commit_reset"))
      applied.insert(seen.op_seq);
    if (step.word == "commit_reset") return act(Answer::Do::kCut);
    a.status = status_of_word(step.word);
    a.term = step.term;
    a.cluster_id = step.term == 0 ? 0 : 1;
    a.job_id = 100 + seen.op_seq;  // the first result, however often it is asked for
    if (step.redirect >= 0) {
      a.redirect_host = "127.0.0.1";
      a.redirect_port = ports_[static_cast<size_t>(step.redirect)];
    }
    return a;
  }

  const FailoverCase& c_;
  int64_t started_ms_ = 0;
  size_t at_ = 0;
  std::vector<uint16_t> ports_;
  std::vector<std::unique_ptr<DeadPort>> dead_;
  std::vector<std::unique_ptr<MockMaster>> live_;
};

int on_reconnect(xcecli_ctx_t, void* arg) { return static_cast<Cluster*>(arg)->hook(); }

xcecli_ctx_t context_of(const FailoverCase& c, const Cluster& cluster) {
  xce_client_config_t config;
  xce_client_config_init(&config);
  config.nmasters = c.masters;
  for (size_t i = 0; i < cluster.ports().size(); ++i) {
    std::strcpy(config.masters[i], "127.0.0.1");
    config.master_ports[i] = cluster.ports()[i];
  }
  config.call_deadline_ms = c.deadline_ms;
  config.retry = {c.max_retries, c.initial_delay_ms, c.max_delay_ms, 2.0};
  xcecli_ctx_t ctx = nullptr;
  EXPECT_EQ(xcecli_ctx_init(&ctx, &config), 0);
  return ctx;
}

int call(xcecli_ctx_t ctx, const std::string& word) {
  if (word == "start") return xcecli_start(ctx);
  if (word == "list") {
    xce_job_page_t* page = nullptr;
    const int rc = xcecli_joblist(ctx, nullptr, &page);
    xce_free_job_page(page);
    return rc;
  }
  const char* args[] = {"true"};
  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  spec.args = args;
  spec.nargs = 1;
  xce_submitted_t made = {};
  const int rc = xcecli_jobsub(ctx, &spec, &made);
  if (rc == 0) {
    EXPECT_GT(made.job_id, 100u);
  }
  return rc;
}

void check(const FailoverCase& c, xcecli_ctx_t ctx, Cluster* cluster) {
  std::lock_guard<std::mutex> lock(cluster->mu_);
  EXPECT_EQ(cluster->trouble, "");
  std::vector<int> endpoints;  // those that can be seen
  for (const int e : c.endpoints)
    if (!cluster->is_dead(e)) endpoints.push_back(e);
  if (!c.endpoints.empty()) {
    EXPECT_EQ(cluster->endpoints, endpoints);
  }
  if (!c.resent.empty()) {
    EXPECT_EQ(cluster->resent, c.resent);
  }
  if (!c.applied.empty()) {
    EXPECT_EQ(cluster->applied.size(), static_cast<size_t>(c.applied[0]));
  }
  if (!c.hooks.empty()) {
    EXPECT_EQ(cluster->hooks, c.hooks[0]);
  }
  if (!c.generation.empty()) {
    EXPECT_EQ(xcecli_generation(ctx), static_cast<uint64_t>(c.generation[0]));
  }
  for (const auto& [name, value] : c.stats) EXPECT_EQ(stat_of(ctx, name), value) << name;
  Range slept{0, 0};
  for (const Range& r : c.sleeps) slept = {slept.first + r.first, slept.second + r.second};
  if (!c.slept.empty()) slept = c.slept[0];
  if (!c.sleeps.empty() || !c.slept.empty()) {
    EXPECT_GE(stat_of(ctx, "backoff_ms"), slept.first);
    EXPECT_LE(stat_of(ctx, "backoff_ms"), slept.second);
  }
  for (const Range& r : c.elapsed) {
    EXPECT_GE(cluster->elapsed_ms(), r.first - 50);
    EXPECT_LE(cluster->elapsed_ms(), r.second + kSlackMs);
  }
}

class ClientCases : public testing::TestWithParam<FailoverCase> {};

TEST_P(ClientCases, Hold) {
  const FailoverCase& c = GetParam();
  if (c.decision_only) GTEST_SKIP() << "only the decision is tested";
  Cluster cluster(c);
  const xcecli_ctx_t ctx = context_of(c, cluster);
  xcecli_set_reconnect_handler(ctx, on_reconnect, &cluster);
  size_t ops_before = 0;
  int result = 0;
  while (const CaseStep* step = cluster.take()) {
    switch (step->kind) {
      case CaseStep::Kind::kCall:
        result = call(ctx, step->word);
        EXPECT_LE(cluster.ops.size(), ops_before + 1) << "a call has one operation number";
        ops_before = cluster.ops.size();
        break;
      case CaseStep::Kind::kResult:
        EXPECT_EQ(-result, status_of_word(step->word)) << error().message << error().trail;
        if (result != 0) {
          EXPECT_EQ(error().outcome == XCE_OUTCOME_MAYBE, step->maybe);
        }
        break;
      case CaseStep::Kind::kLost: {
        cluster.drop(step->master);
        char name[64] = "?";
        const int64_t limit = clock_ms() + 5000;
        while (name[0] != '\0' && clock_ms() < limit) {
          xcecli_current_master(ctx, name, sizeof name);
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        EXPECT_STREQ(name, "");
        break;
      }
      default: ADD_FAILURE() << "nobody came for a step: the call was over before it"; break;
    }
    if (HasFailure()) break;
  }
  check(c, ctx, &cluster);
  xcecli_ctx_free(ctx);
}

INSTANTIATE_TEST_SUITE_P(Client, ClientCases, testing::ValuesIn(all_failover_cases()),
                         [](const testing::TestParamInfo<FailoverCase>& info) {
                           return test_name(info.param);
                         });

}  // namespace
}  // namespace xce::client
