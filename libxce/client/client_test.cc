// The whole client against scripted controllers on real loopback sockets: what a call comes to.
#include "xce/client.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "libxce/client/testing/client_fixture.h"

namespace xce::client {
namespace {

TEST(Client, HelloSubmitList) {
  MockMaster master(serve);
  Client client({master.port()});
  ASSERT_EQ(xcecli_start(client), 0) << error().message;
  EXPECT_EQ(xcecli_generation(client), 1u);
  xce_submitted_t submitted;
  ASSERT_EQ(client.submit(&submitted), 0) << error().message;
  EXPECT_EQ(submitted.job_id, 42u);
  xce_job_page_t* page;
  ASSERT_EQ(xcecli_joblist(client, nullptr, &page), 0);
  ASSERT_EQ(page->njobs, 1u);
  EXPECT_EQ(page->jobs[0].id, 42u);
  EXPECT_STREQ(page->jobs[0].spec.name, "mock");
  EXPECT_STREQ(page->jobs[0].reason, "");
  xce_free_job_page(page);
  const auto seen = master.seen();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].which, Which::HELLO);
  EXPECT_EQ(seen[1].birth, 7u);
  EXPECT_EQ(seen[1].op_seq, 1u);
  EXPECT_EQ(seen[1].lowest, 1u);
  EXPECT_FALSE(seen[1].resent);
  EXPECT_NE(seen[1].body_hash, 0u);
  EXPECT_FALSE(seen[1].submit_key.empty());
  EXPECT_EQ(seen[2].op_seq, 0u);
  char name[300];
  xcecli_current_master(client, name, sizeof name);
  EXPECT_EQ(name, "127.0.0.1:" + std::to_string(master.port()));
  char stats[1024];
  EXPECT_GT(xcecli_stats_json(client, stats, sizeof stats), 0);
  EXPECT_NE(std::strstr(stats, "\"calls\":2"), nullptr) << stats;
}

TEST(Client, RedirectIsOneHopAndSticks) {
  LogLines log;
  MockMaster primary(serve);
  MockMaster standby([&](const Seen&) { return redirect_to(primary.port()); });
  MockMaster other([&](const Seen&) { return redirect_to(primary.port()); });
  Client client({standby.port(), other.port(), primary.port()});
  ASSERT_EQ(xcecli_start(client), 0) << error().message;
  EXPECT_EQ(client.list(), 0);
  EXPECT_EQ(client.list(), 0);
  EXPECT_EQ(standby.seen().size(), 1u);
  EXPECT_EQ(other.seen().size(), 0u);
  EXPECT_EQ(primary.count(Which::JOB_LIST), 2u);
  EXPECT_TRUE(log.has(XCE_LOG_INFO, "to 127.0.0.1:" + std::to_string(primary.port())));
}

TEST(Client, RedirectToANodeOutsideTheList) {
  MockMaster primary(serve);
  MockMaster standby([&](const Seen&) { return redirect_to(primary.port()); });
  Client client({standby.port()});
  ASSERT_EQ(xcecli_start(client), 0) << error().message;
  EXPECT_EQ(client.list(), 0);
}

// The list that the program was started with names none that is still there: hello told who else
// is.
TEST(Client, AClusterThatHasMovedIsFoundAgain) {
  MockMaster moved(serve);
  Answer hello;
  hello.members = {moved.port()};
  auto founder = std::make_unique<MockMaster>(
      [&](const Seen& s) { return s.which == Which::HELLO ? hello : Answer(); });
  hello.members.push_back(founder->port());
  Client client({founder->port()});
  ASSERT_EQ(xcecli_start(client), 0) << error().message;
  EXPECT_EQ(client.list(), 0);
  EXPECT_EQ(moved.seen().size(), 0u);
  founder.reset();
  EXPECT_EQ(client.submit(), 0) << error().message;
  EXPECT_EQ(moved.count(Which::JOB_SUBMIT), 1u);
}

TEST(Client, StandbyAnswerToARequestRotates) {
  MockMaster old_primary(
      [&](const Seen& s) { return s.which == Which::HELLO ? Answer() : status(E_XCE_STANDBY); });
  MockMaster primary(serve);
  Client client({old_primary.port(), primary.port()});
  xcecli_start(client);
  EXPECT_EQ(client.submit(), 0) << error().message;
  const auto seen = primary.seen();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_FALSE(seen[1].resent) << "STANDBY says not applied";
  EXPECT_EQ(seen[1].op_seq, old_primary.seen().back().op_seq);
  EXPECT_EQ(xcecli_generation(client), 2u);
}

TEST(Client, NoMasterThenSuccess) {
  std::atomic<int> refusals{5};
  MockMaster master(
      [&](const Seen&) { return refusals-- > 0 ? status(E_XCE_NOMASTER) : Answer(); });
  Client client({master.port()});
  ASSERT_EQ(xcecli_start(client), 0) << error().message;
  EXPECT_EQ(client.list(), 0);
}

TEST(Client, ExhaustionIsNotReady) {
  LogLines log;
  MockMaster master([&](const Seen&) { return status(E_XCE_NOMASTER); });
  Client client({master.port()}, 5000, 3);
  EXPECT_EQ(xcecli_start(client), -E_XCE_NOT_READY);
  EXPECT_EQ(client.submit(), -E_XCE_NOT_READY);
  EXPECT_EQ(error().attempts, 4);
  EXPECT_EQ(error().outcome, XCE_NOT_APPLIED);
  EXPECT_NE(std::strstr(error().trail, "E_XCE_NOMASTER"), nullptr) << error().trail;
  EXPECT_TRUE(log.has(XCE_LOG_WARN, "4 attempts"));
}

TEST(Client, ClusterStatusNeedsNoPrimary) {  // L1.1; docs/semantics.md
  const auto standby = [](int refusal, uint64_t node) {
    return [=](const Seen& s) {
      Answer a;
      a.node_id = node;
      a.term = 90 + node;  // of a node that does not serve: counts for nothing
      if (s.which != Which::CLUSTER_STATUS && s.which != Which::CLUSTER_CONF) a.status = refusal;
      return a;
    };
  };
  DeadPort gone;
  MockMaster one(standby(E_XCE_NOMASTER, 2)), two(standby(E_XCE_NOT_READY, 3));
  Client client({gone.port(), one.port(), two.port()}, 2000, 0);
  EXPECT_EQ(xcecli_start(client), -E_XCE_NOT_READY);
  xce_cluster_status_t* status = nullptr;
  ASSERT_EQ(xcecli_clusterstatus(client, &status), 0) << error().message;
  EXPECT_STREQ(status->role, "follower");
  EXPECT_TRUE(status->node_id == 2 || status->node_id == 3);
  xce_free_cluster_status(status);
  ASSERT_EQ(xcecli_clusterconf(client, &status), 0) << error().message;
  EXPECT_EQ(status->heartbeat_ms, 30u);
  xce_free_cluster_status(status);
  EXPECT_EQ(client.list(), -E_XCE_NOT_READY) << "all other operations do need one";
  EXPECT_EQ(xcecli_generation(client), 0u) << "a visit is no connection to a primary";
}

TEST(Client, ClusterStatusOfAClusterThatIsGoneIsNotReady) {
  DeadPort a, b;
  Client client({a.port(), b.port()}, 2000, 0);
  xcecli_start(client);
  xce_cluster_status_t* status = nullptr;
  EXPECT_EQ(xcecli_clusterstatus(client, &status), -E_XCE_NOT_READY);
  EXPECT_EQ(status, nullptr);
  EXPECT_NE(std::strstr(error().trail, "ECONNREFUSED"), nullptr) << error().trail;
}

TEST(Client, NotReadyDiffersFromTransportAndValidationErrors) {  // L3.4
  for (const int other : {EINVAL, ECONNREFUSED, ECONNRESET, ETIMEDOUT, EPIPE, EHOSTUNREACH, EPROTO,
                          E_XCE_INVALID, E_XCE_AUTH, E_XCE_PERM, E_XCE_NOENT})
    EXPECT_NE(E_XCE_NOT_READY, other) << xce_errname(other);
  EXPECT_TRUE(xce_is_retriable(-E_XCE_NOT_READY));
  EXPECT_FALSE(xce_is_retriable(-E_XCE_INVALID));
  EXPECT_STREQ(xce_errname(-E_XCE_NOT_READY), "E_XCE_NOT_READY");
}

TEST(Client, ZeroRetriesConfigMeansTheDefaults) {  // L6.2
  xce_client_config_t config;
  xce_client_config_init(&config);
  EXPECT_EQ(config.retry.max_retries, 20);
  EXPECT_EQ(config.retry.initial_delay_ms, 10);
  EXPECT_EQ(config.retry.max_delay_ms, 5000);
  EXPECT_EQ(config.retry.multiplier, 2.0);
  EXPECT_EQ(config.call_deadline_ms, XCE_DEFAULT_CALL_DEADLINE_MS);
  // Not given at all: one refused pass after another, not only one.
  std::atomic<int> asked{0};
  MockMaster master([&](const Seen&) { return ++asked < 4 ? status(E_XCE_NOMASTER) : Answer(); });
  config.retry = {};
  std::strcpy(config.masters[0], "127.0.0.1");
  config.master_ports[0] = master.port();
  xcecli_ctx_t ctx = nullptr;
  ASSERT_EQ(xcecli_ctx_init(&ctx, &config), 0);
  EXPECT_EQ(xcecli_start(ctx), 0) << error().message;
  EXPECT_EQ(asked, 4);
  xcecli_ctx_free(ctx);
}

TEST(Client, AllRefusedIsNotReadyToo) {
  DeadPort a, b;
  Client client({a.port(), b.port()}, 5000, 2);
  EXPECT_EQ(xcecli_start(client), -E_XCE_NOT_READY);
  EXPECT_EQ(client.list(), -E_XCE_NOT_READY);
  EXPECT_EQ(error().attempts, 6);
  EXPECT_NE(std::strstr(error().trail, "ECONNREFUSED"), nullptr) << error().trail;
}

TEST(Client, DeadlineBoundsACallWithoutAnyController) {
  DeadPort a;
  Client client({a.port()});
  xcecli_set_deadline(client, 150);
  const int64_t before = clock_ms();
  EXPECT_EQ(xcecli_start(client), -E_XCE_NOT_READY);
  EXPECT_EQ(client.list(), -E_XCE_NOT_READY);
  EXPECT_LT(clock_ms() - before, 1500);
}

TEST(Client, AnApiserversThreadActsForAPerson) {
  MockMaster master(serve);
  Client person({master.port()});
  EXPECT_EQ(xcecli_act_for(person, "ann", 1000, 100, false), -EPERM) << "it is no apiserver";
  xce_client_config_t config;
  xce_client_config_init(&config);
  config.nmasters = 1;
  std::strcpy(config.masters[0], "127.0.0.1");
  config.master_ports[0] = master.port();
  config.role = HostRole_apiserver;
  xcecli_ctx_t api = nullptr;
  ASSERT_EQ(xcecli_ctx_init(&api, &config), 0);
  ASSERT_EQ(xcecli_start(api), 0);
  EXPECT_EQ(xcecli_act_for(api, std::string(300, 'x').c_str(), 1, 1, false), -ENAMETOOLONG);
  const uint64_t id = 1;
  EXPECT_EQ(xcecli_act_for(api, "ann", 1000, 100, true), 0);
  EXPECT_GE(xcecli_jobctrl(api, &id, 1, XCE_JOBCTRL_HOLD, 0, false), 0);
  std::thread([&] { xcecli_jobctrl(api, &id, 1, XCE_JOBCTRL_RELEASE, 0, false); }).join();
  EXPECT_EQ(xcecli_act_for(api, nullptr, 0, 0, false), 0);
  EXPECT_GE(xcecli_jobctrl(api, &id, 1, XCE_JOBCTRL_KILL, 0, false), 0);
  std::vector<Seen> controls;
  for (const Seen& seen : master.seen())
    if (seen.which == wire::Op::JOB_CTRL) controls.push_back(seen);
  ASSERT_EQ(controls.size(), 3u);
  EXPECT_EQ(controls[0].for_user, "ann");
  EXPECT_EQ(controls[0].for_uid, 1000u);
  EXPECT_TRUE(controls[0].for_administrator);
  EXPECT_EQ(controls[1].for_user, "") << "another thread";
  EXPECT_EQ(controls[2].for_user, "") << "no longer";
  xcecli_ctx_free(api);
}

TEST(Client, TerminalStatusesAreToldAtOnce) {
  for (int value : {E_XCE_AUTH, E_XCE_PERM, E_XCE_INVALID, E_XCE_NOENT, E_XCE_STALE, E_XCE_BUSY,
                    E_XCE_DUP_JOB}) {
    MockMaster master(
        [&](const Seen& s) { return s.which == Which::HELLO ? Answer() : status(value); });
    Client client({master.port()});
    ASSERT_EQ(xcecli_start(client), 0);
    EXPECT_EQ(client.submit(), -value);
    EXPECT_EQ(error().attempts, 1);
    EXPECT_STREQ(error().message, "says the mock");
    EXPECT_EQ(error().job_id, value == E_XCE_DUP_JOB ? 42u : 0u);
    EXPECT_EQ(master.count(Which::JOB_SUBMIT), 1u);
  }
}

TEST(Client, CutAfterSendIsResentUnderTheSameSequence) {
  std::atomic<int> cuts{1};
  const auto script = [&](const Seen& s) {
    if (s.which == Which::JOB_SUBMIT && cuts-- > 0) return act(Answer::Do::kCut);
    return Answer();
  };
  MockMaster a(script), b(script);
  Client client({a.port(), b.port()});
  ASSERT_EQ(xcecli_start(client), 0);
  EXPECT_EQ(client.submit(), 0) << error().message;
  ASSERT_EQ(a.count(Which::JOB_SUBMIT), 1u);
  const Seen first = a.seen().back(), second = b.seen().back();
  ASSERT_EQ(second.which, Which::JOB_SUBMIT);
  EXPECT_EQ(first.op_seq, second.op_seq);
  EXPECT_EQ(first.submit_key, second.submit_key);
  EXPECT_EQ(first.birth, second.birth);
  EXPECT_FALSE(first.resent);
  EXPECT_TRUE(second.resent);
}

TEST(Client, DuplicateOfAResentSubmissionIsItsSuccess) {
  for (const bool same_body : {true, false}) {
    std::atomic<int> cuts{1};
    MockMaster master([&](const Seen& s) {
      if (s.which != Which::JOB_SUBMIT) return Answer();
      if (cuts-- > 0) return act(Answer::Do::kCut);
      Answer a = status(E_XCE_DUP_JOB);
      a.existing = same_body;
      return a;
    });
    Client client({master.port()});
    ASSERT_EQ(xcecli_start(client), 0);
    xce_submitted_t out = {};
    EXPECT_EQ(client.submit(&out, "key"), same_body ? 0 : -E_XCE_DUP_JOB);
    EXPECT_EQ(out.job_id, same_body ? 42u : 0u);
    EXPECT_EQ(error().same_body, same_body);
  }
}

TEST(Client, ForgottenSessionGetsANewBirth) {
  std::atomic<uint64_t> applied{7};
  MockMaster master([&](const Seen& s) {
    Answer a;
    a.applied = applied;
    if (s.which == Which::JOB_SUBMIT && s.birth < 100) {
      applied = 100;
      a.status = E_XCE_OUTCOME_UNKNOWN;
    }
    return a;
  });
  Client client({master.port()});
  ASSERT_EQ(xcecli_start(client), 0);
  EXPECT_EQ(client.submit(), 0) << error().message;
  EXPECT_EQ(master.seen().back().birth, 100u);
}

TEST(Client, UnknownOutcomeOfAResentWriteIsTold) {
  std::atomic<int> cuts{1};
  MockMaster master([&](const Seen& s) {
    if (s.which != Which::JOB_SUBMIT) return Answer();
    return cuts-- > 0 ? act(Answer::Do::kCut) : status(E_XCE_OUTCOME_UNKNOWN);
  });
  Client client({master.port()});
  ASSERT_EQ(xcecli_start(client), 0);
  EXPECT_EQ(client.submit(), -E_XCE_OUTCOME_UNKNOWN);
  EXPECT_EQ(error().outcome, XCE_OUTCOME_MAYBE);
  EXPECT_EQ(master.seen().back().birth, 7u) << "a resent write must keep its birth";
}

TEST(Client, PrimaryOfAnOldTermIsNotBelieved) {
  MockMaster fresh([](const Seen& s) {
    Answer a;
    a.term = 5;
    if (s.which == Which::JOB_LIST) a.action = Answer::Do::kCut;
    return a;
  });
  MockMaster stale([](const Seen&) {
    Answer a;
    a.term = 4;
    return a;
  });
  Client client({fresh.port(), stale.port()}, 3000, 2);
  ASSERT_EQ(xcecli_start(client), 0);
  EXPECT_EQ(client.list(), -E_XCE_NOT_READY);
  EXPECT_EQ(stale.count(Which::JOB_LIST), 0u);
  EXPECT_NE(std::strstr(error().trail, "old term"), nullptr) << error().trail;
}

struct HookProbe {
  std::atomic<int> calls{0};
  std::atomic<int> inner{1};
  std::atomic<int> fail{0};
  uint64_t generation = 0;
  MockMaster* master = nullptr;
  size_t listed_before = 99;

  static int run(xcecli_ctx_t ctx, void* arg) {
    auto* self = static_cast<HookProbe*>(arg);
    ++self->calls;
    self->generation = xcecli_generation(ctx);
    self->inner = xcecli_heartbeat(ctx);
    if (xcecli_hello(ctx, nullptr) != -EDEADLK) self->inner = 0;
    if (self->master != nullptr) self->listed_before = self->master->count(Which::JOB_LIST);
    return self->fail-- > 0 ? -1 : 0;
  }
};

TEST(Client, HookRunsAfterHelloAndBeforeTheRequest) {
  MockMaster first(
      [](const Seen& s) { return s.which == Which::HELLO ? Answer() : act(Answer::Do::kCut); });
  MockMaster second(serve);
  Client client({first.port(), second.port()});
  HookProbe hook;
  hook.master = &second;
  xcecli_set_reconnect_handler(client, &HookProbe::run, &hook);
  ASSERT_EQ(xcecli_start(client), 0);
  EXPECT_EQ(hook.calls, 1);
  EXPECT_EQ(hook.inner, -EDEADLK);
  EXPECT_EQ(client.list(), 0) << error().message;
  EXPECT_EQ(hook.calls, 2);
  EXPECT_EQ(hook.generation, 2u);
  EXPECT_EQ(hook.listed_before, 0u);
  EXPECT_EQ(second.seen().front().which, Which::HELLO);
}

TEST(Client, FailedHookCountsAsAFailedRepair) {
  MockMaster master(serve);
  Client client({master.port()});
  HookProbe hook;
  hook.fail = 2;
  xcecli_set_reconnect_handler(client, &HookProbe::run, &hook);
  EXPECT_EQ(xcecli_start(client), 0) << error().message;
  EXPECT_EQ(hook.calls, 3);
}

TEST(Client, StopEndsCallsInFlight) {
  MockMaster master(
      [](const Seen& s) { return s.which == Which::HELLO ? Answer() : act(Answer::Do::kNothing); });
  DeadPort nobody;
  Client waiting({master.port()}), retrying({nobody.port()}, 60000, 1000);
  ASSERT_EQ(xcecli_start(waiting), 0);
  std::atomic<int> first{0}, second{0};
  std::thread a([&] { first = waiting.list(); });
  std::thread b([&] {
    xcecli_start(retrying);
    second = retrying.list();
  });
  ASSERT_TRUE(master.wait_for(Which::JOB_LIST, 1));
  const int64_t before = clock_ms();
  xcecli_stop(waiting);
  xcecli_stop(retrying);
  a.join();
  b.join();
  EXPECT_LT(clock_ms() - before, 1000);
  EXPECT_EQ(first, -ECANCELED);
  EXPECT_EQ(second, -ECANCELED);
  EXPECT_EQ(waiting.list(), -ECANCELED);
}

TEST(Client, ManyThreadsOneContextAcrossAKill) {
  constexpr int kThreads = 8, kEach = 40;
  MockMaster second(serve);
  auto first = std::make_unique<MockMaster>(serve);
  Client client({first->port(), second.port()});
  ASSERT_EQ(xcecli_start(client), 0);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i)
        if (client.submit() != 0) ++failures;
    });
  EXPECT_TRUE(first->wait_for(Which::JOB_SUBMIT, 50));
  first->kill();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(second.count(Which::HELLO), 1u) << "one repair for all";
  std::set<uint64_t> ops;
  for (MockMaster* m : {first.get(), &second})
    for (const Seen& s : m->seen())
      if (s.which == Which::JOB_SUBMIT) {
        ops.insert(s.op_seq);
        EXPECT_LE(s.lowest, s.op_seq);
        EXPECT_LT(s.op_seq - s.lowest, uint64_t{XCE_DEDUP_WINDOW});
      }
  EXPECT_EQ(ops.size(), size_t{kThreads * kEach});
}

TEST(Client, ForkedChildIsRefused) {
  MockMaster master(serve);
  Client client({master.port()});
  ASSERT_EQ(xcecli_start(client), 0);
  const pid_t child = fork();
  if (child == 0)
    _exit(client.list() == -E_XCE_FORKED && xcecli_nop(client) == -E_XCE_FORKED ? 0 : 1);
  int how = -1;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  EXPECT_EQ(client.list(), 0);
}

TEST(Client, RefusesUnusableConfigsAndOversizedRequests) {
  xce_client_config_t config;
  xcecli_ctx_t ctx;
  xce_client_config_init(&config);
  config.nmasters = 0;
  EXPECT_EQ(xcecli_ctx_init(&ctx, &config), -EINVAL);
  config.nmasters = N_MAX_MASTERS + 1;
  EXPECT_EQ(xcecli_ctx_init(&ctx, &config), -EINVAL);
  EXPECT_EQ(xcecli_ctx_init(&ctx, nullptr), -EINVAL);
  EXPECT_EQ(xcecli_start(nullptr), -EINVAL);
  MockMaster master(serve);
  Client client({master.port()});
  EXPECT_EQ(client.list(), -EINVAL) << "not started";
  ASSERT_EQ(xcecli_start(client), 0);
  const std::string large(5 * 1024 * 1024, 'x');
  xce_job_filter_t filter = {};
  filter.name = large.c_str();
  xce_job_page_t* page;
  EXPECT_EQ(xcecli_joblist(client, &filter, &page), -E_XCE_INVALID);
  EXPECT_EQ(page, nullptr);
}

}  // namespace
}  // namespace xce::client
