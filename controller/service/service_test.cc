// The service over a real socket against a fake log: roles, barriers, results, pushes, loss of the
// role.
#include "controller/service/service.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "controller/service/testing/fake_replica.h"
#include "controller/service/testing/test_client.h"
#include "xce/config.h"
#include "xce/errnox.h"

namespace xce::service::testing {
namespace {

using Request = wire::Request::Builder;

void job_list(Request request) { request.initOp().initJobList(); }

// Dispatches a job to a host as the active scheduler.
void dispatch(TestClient* scheduler, uint64_t epoch, uint64_t job, const std::string& host,
              uint64_t op_seq) {
  auto answer = scheduler->call([&](Request r) {
    r.setOpSeq(op_seq);
    auto dispatches = r.initOp().initJobDispatch();
    dispatches.setEpoch(epoch);
    auto item = dispatches.initItems(1)[0];
    item.setJobId(job);
    item.setAttempt(1);
    auto alloc = item.initAllocs(1)[0];
    alloc.setHost(host);
    alloc.setCpus(1);
  });
  ASSERT_NE(answer, nullptr);
  ASSERT_EQ(answer->reply().getStatus(), 0) << answer->reply().getMessage().cStr();
  ASSERT_EQ(answer->reply().getBody().getDispatched().size(), 1u);
  EXPECT_EQ(answer->reply().getBody().getDispatched()[0], 0);
}

TEST(Service, AStandbyNamesThePrimary) {
  Harness harness;
  harness.set_role({NodeRole::kFollower, 6, 2, false});
  TestClient client(harness.port());
  ASSERT_TRUE(client.send_preamble());
  auto hello = client.call([](Request r) { r.initOp().initHello().setRole(wire::Role::USER); });
  ASSERT_NE(hello, nullptr);
  EXPECT_EQ(hello->reply().getStatus(), E_XCE_REDIRECT);
  EXPECT_EQ(std::string(hello->reply().getRedirectHost().cStr()), "primary.example");
  EXPECT_EQ(hello->reply().getRedirectPort(), 4711);
  EXPECT_EQ(hello->reply().getTerm(), 6u);
  EXPECT_EQ(hello->reply().getBody().getHello().getNodeId(), 1u);  // who this is, all the same
  auto write = client.submit("j");
  EXPECT_EQ(write->reply().getStatus(), E_XCE_REDIRECT);
  EXPECT_EQ(write->reply().getOutcome(), 1);
  EXPECT_EQ(harness.replica().proposals, 0u);
}

TEST(Service, EachKindOfNotBeingThePrimaryHasItsStatus) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), 0);
  const auto status = [&](RoleView view) {
    harness.set_role(view);
    return client.call(job_list)->reply().getStatus();
  };
  EXPECT_EQ(status({NodeRole::kFollower, 6, 0, false}), E_XCE_NOMASTER);
  EXPECT_EQ(status({NodeRole::kCandidate, 7, 0, false}), E_XCE_NOT_READY);
  EXPECT_EQ(status({NodeRole::kLeader, 7, 1, false}), E_XCE_NOT_READY);
  EXPECT_EQ(status({NodeRole::kUnavailable, 7, 0, false}), E_XCE_NOT_READY);
  EXPECT_EQ(status({NodeRole::kLeader, 7, 1, true}), 0);
}

TEST(Service, AnyoneTellsTheClustersStatusAndStaleReads) {
  Harness harness;
  harness.set_role({NodeRole::kFollower, 6, 2, false});
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), E_XCE_REDIRECT);
  auto status = client.call([](Request r) { r.initOp().setClusterStatus(); });
  ASSERT_NE(status, nullptr);
  EXPECT_EQ(status->reply().getStatus(), 0);
  auto body = status->reply().getBody().getCluster();
  EXPECT_EQ(std::string(body.getRole().cStr()), "follower");
  EXPECT_EQ(body.getLeaderId(), 2u);
  EXPECT_EQ(std::string(body.getDisk().cStr()), "ok");
  auto stale = client.call([](Request r) {
    r.setStaleOk(true);
    job_list(r);
  });
  EXPECT_EQ(stale->reply().getStatus(), 0);
  EXPECT_EQ(harness.replica().barriers, 0u);
}

TEST(Service, AWriteIsAnsweredAfterItIsApplied) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), 0);
  harness.on_loop([&] { harness.replica().automatic = false; });
  const uint64_t seq = client.send([](Request r) {
    r.setOpSeq(1);
    auto spec = r.initOp().initJobSubmit();
    spec.setCpus(1);
    spec.initArgs(1).set(0, "true");
  });
  ASSERT_TRUE(harness.eventually([&] { return harness.replica().waiting() == 1; }));
  EXPECT_EQ(client.reply(seq, 50), nullptr);  // proposed, not applied
  harness.on_loop([&] { harness.replica().commit(); });
  auto answer = client.reply(seq);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->reply().getStatus(), 0) << answer->reply().getMessage().cStr();
  EXPECT_EQ(answer->reply().getIndex(), 1u);
  EXPECT_EQ(answer->reply().getBody().getSubmitted().getJobId(), 1u);
}

TEST(Service, AReadWaitsForItsBarrier) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), 0);
  ASSERT_EQ(client.submit("first")->reply().getStatus(), 0);
  harness.on_loop([&] { harness.replica().automatic = false; });
  const uint64_t seq = client.send(job_list);
  ASSERT_TRUE(harness.eventually([&] { return harness.replica().waiting() == 1; }));
  EXPECT_EQ(client.reply(seq, 50), nullptr);
  harness.on_loop([&] { harness.replica().pass_barriers(true); });
  auto answer = client.reply(seq);
  ASSERT_NE(answer, nullptr);
  ASSERT_EQ(answer->reply().getBody().getJobs().getJobs().size(), 1u);
  EXPECT_EQ(
      std::string(answer->reply().getBody().getJobs().getJobs()[0].getSpec().getName().cStr()),
      "first");
}

TEST(Service, WritesOfOneTurnShareAnEntry) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), 0);
  std::vector<uint64_t> seqs;
  harness.on_loop([&] {  // the loop is held up meanwhile: everything arrives in its next turn
    for (uint64_t i = 1; i <= 100; ++i)
      seqs.push_back(client.send([i](Request r) {
        r.setOpSeq(i);
        auto spec = r.initOp().initJobSubmit();
        spec.setCpus(1);
        spec.initArgs(1).set(0, "true");
      }));
    std::this_thread::sleep_for(
        std::chrono::milliseconds(100));  // for the I/O thread to take them in
  });
  std::set<uint64_t> jobs;
  for (uint64_t seq : seqs) {
    auto answer = client.reply(seq);
    ASSERT_NE(answer, nullptr);
    jobs.insert(answer->reply().getBody().getSubmitted().getJobId());
  }
  EXPECT_EQ(jobs.size(), 100u);
  harness.on_loop([&] { EXPECT_LT(harness.replica().proposals, 20u); });
}

TEST(Service, FatesOfProposals) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), 0);
  harness.on_loop([&] { harness.replica().automatic = false; });
  const auto submit_and_lose = [&](uint64_t op_seq, Proposed::Kind kind) {
    const uint64_t seq = client.send([&](Request r) {
      r.setOpSeq(op_seq);
      auto spec = r.initOp().initJobSubmit();
      spec.initArgs(1).set(0, "true");
    });
    EXPECT_TRUE(harness.eventually([&] { return harness.replica().waiting() == 1; }));
    harness.on_loop([&] { harness.replica().lose(kind); });
    return client.reply(seq);
  };
  auto unknown = submit_and_lose(1, Proposed::kUnknown);
  EXPECT_EQ(unknown->reply().getStatus(), E_XCE_OUTCOME_UNKNOWN);
  EXPECT_EQ(unknown->reply().getOutcome(), 2);
  auto not_applied = submit_and_lose(2, Proposed::kNotApplied);
  EXPECT_EQ(not_applied->reply().getStatus(), E_XCE_NOT_READY);
  EXPECT_EQ(not_applied->reply().getOutcome(), 1);
}

TEST(Service, LossOfTheRoleAnswersWaitingReadsAndEndsPushes) {
  Harness harness;
  TestClient reader(harness.port()), subscriber(harness.port());
  ASSERT_EQ(reader.hello(Role::kUser), 0);
  ASSERT_EQ(subscriber.hello(Role::kScheduler, "s"), 0);
  ASSERT_EQ(subscriber.join(Role::kScheduler)->reply().getStatus(), 0);
  harness.on_loop([&] { harness.replica().automatic = false; });
  const uint64_t seq = reader.send(job_list);
  ASSERT_TRUE(harness.eventually([&] { return harness.replica().waiting() == 1; }));
  harness.set_role({NodeRole::kFollower, 6, 2, false});
  harness.on_loop([&] { harness.replica().pass_barriers(false); });
  auto answer = reader.reply(seq);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->reply().getStatus(), E_XCE_STANDBY);
  EXPECT_EQ(std::string(answer->reply().getRedirectHost().cStr()), "primary.example");
  bool gap = false;
  while (auto push = subscriber.push())
    for (auto event : push->push().getEvents()) gap = gap || event.isGap();
  EXPECT_TRUE(gap);
  EXPECT_TRUE(subscriber.closed());
  EXPECT_EQ(reader.call(job_list)->reply().getStatus(), E_XCE_REDIRECT);  // its connection stays
}

TEST(Service, AStateFromASnapshotMeansAGapForWhoeverSubscribed) {
  Harness harness;
  TestClient subscriber(harness.port());
  ASSERT_EQ(subscriber.hello(Role::kScheduler, "s"), 0);
  ASSERT_EQ(subscriber.join(Role::kScheduler)->reply().getStatus(), 0);
  harness.on_loop([&] { harness.service().restored(); });
  bool gap = false;
  while (auto push = subscriber.push())
    for (auto event : push->push().getEvents()) gap = gap || event.isGap();
  EXPECT_TRUE(gap);
  EXPECT_TRUE(subscriber.closed());
}

TEST(Service, AFailedDiskStopsServiceAndIsTold) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), 0);
  harness.on_loop([&] { harness.service().failed("/data/log/7: No space left on device"); });
  auto read = client.call(job_list);
  EXPECT_EQ(read->reply().getStatus(), E_XCE_NOT_READY);
  EXPECT_NE(std::string(read->reply().getMessage().cStr()).find("/data/log/7"), std::string::npos);
  auto status = client.call([](Request r) { r.initOp().setClusterStatus(); });
  EXPECT_NE(std::string(status->reply().getBody().getCluster().getDisk().cStr()).find("No space"),
            std::string::npos);
}

TEST(Service, AWorkerHearsOnlyOfItsOwnJobs) {
  Harness harness;
  TestClient one(harness.port()), two(harness.port()), scheduler(harness.port()),
      user(harness.port());
  ASSERT_EQ(one.hello(Role::kWorker, "h1"), 0);
  ASSERT_EQ(two.hello(Role::kWorker, "h2"), 0);
  ASSERT_EQ(one.join(Role::kWorker)->reply().getStatus(), 0);
  ASSERT_EQ(two.join(Role::kWorker)->reply().getStatus(), 0);
  ASSERT_EQ(scheduler.hello(Role::kScheduler, "s"), 0);
  auto joined = scheduler.join(Role::kScheduler);
  ASSERT_EQ(joined->reply().getStatus(), 0) << joined->reply().getMessage().cStr();
  const uint64_t epoch = joined->reply().getBody().getJoined().getEpoch();
  ASSERT_EQ(user.hello(Role::kUser), 0);
  const uint64_t a = user.submit("a")->reply().getBody().getSubmitted().getJobId();
  const uint64_t b = user.submit("b")->reply().getBody().getSubmitted().getJobId();
  dispatch(&scheduler, epoch, b, "h2", 10);
  dispatch(&scheduler, epoch, a, "h1", 11);
  const auto first_job =
      [](TestClient* client) {  // id of the first job pushed; its command must be there
        while (auto push = client->push())
          for (auto event : push->push().getEvents())
            if (event.isJob()) {
              EXPECT_EQ(event.getJob().getSpec().getArgs().size(), 1u);
              return event.getJob().getId();
            }
        return uint64_t{0};
      };
  EXPECT_EQ(first_job(&one), a);
  EXPECT_EQ(first_job(&two), b);
  std::set<uint64_t> seen;  // the scheduler hears of both, without their commands
  while (seen.size() < 2) {
    auto push = scheduler.push();
    ASSERT_NE(push, nullptr);
    for (auto event : push->push().getEvents()) {
      if (!event.isJob()) continue;
      EXPECT_EQ(event.getJob().getSpec().getArgs().size(), 0u);
      seen.insert(event.getJob().getId());
    }
  }
  auto hello = one.call([](Request r) {
    auto hello = r.initOp().initHello();
    hello.setRole(wire::Role::WORKER);
    hello.setName("h1");
    hello.setUser("ann");
    hello.setUid(1000);
  });
  EXPECT_TRUE(hello->reply().getBody().getHello().getJoined());
  EXPECT_TRUE(hello->reply().getBody().getHello().getHostKnown());
}

// Joins as a worker until it succeeds.
bool joins(TestClient* worker) {
  for (int i = 0; i < 500; ++i) {
    auto answer = worker->join(Role::kWorker);
    if (answer == nullptr) return false;
    if (answer->reply().getStatus() == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(Service, AHostHasOneWorker) {
  Harness harness;
  std::optional<TestClient> first(std::in_place, harness.port());
  TestClient second(harness.port());
  ASSERT_EQ(first->hello(Role::kWorker, "h1"), 0);
  ASSERT_EQ(first->join(Role::kWorker)->reply().getStatus(), 0);
  ASSERT_EQ(second.hello(Role::kWorker, "h1"), 0);
  auto refused = second.join(Role::kWorker);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->reply().getStatus(), E_XCE_BUSY);
  EXPECT_NE(std::string(refused->reply().getMessage().cStr()).find("h1"), std::string::npos);
  first.reset();  // the name is free once the first one's connection is gone
  EXPECT_TRUE(joins(&second));
}

TEST(Service, AWorkersOwnReconnectIsNoRival) {
  Harness harness;
  TestClient before(harness.port()), after(harness.port());
  after.client_hi = before.client_hi;
  after.client_lo = before.client_lo;
  ASSERT_EQ(before.hello(Role::kWorker, "h1"), 0);
  ASSERT_EQ(before.join(Role::kWorker)->reply().getStatus(), 0);
  ASSERT_EQ(after.hello(Role::kWorker, "h1"), 0);
  // Another op id, as the process goes on counting.
  auto joined = after.call([](Request r) {
    r.setOpSeq(1000);
    auto join = r.initOp().initJoin();
    join.setRole(wire::Role::WORKER);
    join.initHost().setCpus(1);
  });
  EXPECT_EQ(joined->reply().getStatus(), 0) << joined->reply().getMessage().cStr();
}

TEST(Service, AHostsNameHasNoControlCharacters) {
  Harness harness;
  TestClient worker(harness.port());
  ASSERT_EQ(worker.hello(Role::kWorker, "h1\nforged line"), 0);
  EXPECT_EQ(worker.join(Role::kWorker)->reply().getStatus(), E_XCE_INVALID);
  EXPECT_TRUE(harness.state().hosts().empty());
}

TEST(Service, ASilentWorkerGivesWay) {
  ServiceOptions options;
  options.host_grace_ms = 100;
  Harness harness(options);
  TestClient silent(harness.port()), next(harness.port());
  ASSERT_EQ(silent.hello(Role::kWorker, "h1"), 0);
  ASSERT_EQ(silent.join(Role::kWorker)->reply().getStatus(), 0);
  ASSERT_EQ(next.hello(Role::kWorker, "h1"), 0);
  EXPECT_TRUE(joins(&next));
  EXPECT_TRUE(silent.closed());
}

TEST(Service, JobLogAsksTheWorkerOfTheJobsHost) {
  Harness harness;
  TestClient worker(harness.port()), scheduler(harness.port()), user(harness.port());
  ASSERT_EQ(worker.hello(Role::kWorker, "h1"), 0);
  ASSERT_EQ(worker.join(Role::kWorker)->reply().getStatus(), 0);
  ASSERT_EQ(scheduler.hello(Role::kScheduler, "s"), 0);
  const uint64_t epoch = scheduler.join(Role::kScheduler)->reply().getBody().getJoined().getEpoch();
  ASSERT_EQ(user.hello(Role::kUser), 0);
  const uint64_t job = user.submit("a")->reply().getBody().getSubmitted().getJobId();
  const auto ask = [job](Request r) {
    auto log = r.initOp().initJobLog();
    log.setId(job);
    log.setWaitMs(3 * XCE_MAX_LOG_WAIT_MS);
  };
  EXPECT_EQ(user.call(ask)->reply().getStatus(), E_XCE_NOENT);  // it has not run yet
  dispatch(&scheduler, epoch, job, "h1", 10);
  const uint64_t seq = user.send(ask);
  uint64_t query = 0;
  while (query == 0) {
    auto push = worker.push();
    ASSERT_NE(push, nullptr);
    for (auto event : push->push().getEvents())
      if (event.isLogQuery()) {
        query = event.getLogQuery().getQueryId();
        EXPECT_EQ(event.getLogQuery().getWaitMs(), XCE_MAX_LOG_WAIT_MS);  // bounded
      }
  }
  worker.send([query](Request r) {
    auto chunk = r.initOp().initJobLogData();
    chunk.setQueryId(query);
    chunk.setData(capnp::Data::Reader(reinterpret_cast<const uint8_t*>("hello"), 5));
    chunk.setEof(true);
  });
  auto answer = user.reply(seq);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->reply().getStatus(), 0);
  EXPECT_EQ(answer->reply().getBody().getLog().getData().size(), 5u);
}

TEST(Service, ASilentHostIsGivenUpAndMustJoinAgain) {
  ServiceOptions options;
  options.host_grace_ms = 600;
  Harness harness(options);
  TestClient worker(harness.port());
  ASSERT_EQ(worker.hello(Role::kWorker, "h1"), 0);
  ASSERT_EQ(worker.join(Role::kWorker)->reply().getStatus(), 0);
  ASSERT_TRUE(harness.eventually(
      [&] { return harness.state().hosts().at("h1").state == HostState::kUnreachable; }));
  EXPECT_TRUE(worker.closed());
}

TEST(Service, AStandbySchedulerHearsThatTheActiveOneIsGone) {
  ServiceOptions options;
  options.scheduler_grace_ms = 60'000;  // one that leaves a serving primary is missed at once
  Harness harness(options);
  TestClient standby(harness.port()), user(harness.port());
  ASSERT_EQ(standby.hello(Role::kScheduler, "old"), 0);
  ASSERT_EQ(standby.join(Role::kScheduler)->reply().getStatus(), 0);
  ASSERT_EQ(user.hello(Role::kUser), 0);
  const auto active = [&] {
    auto status = user.call([](Request r) { r.initOp().setClusterStatus(); });
    return std::string(status->reply().getBody().getCluster().getSchedulerName().cStr());
  };
  {
    TestClient newer(harness.port());
    ASSERT_EQ(newer.hello(Role::kScheduler, "new"), 0);
    ASSERT_EQ(newer.join(Role::kScheduler)->reply().getStatus(), 0);
    EXPECT_EQ(active(), "new");
  }
  std::string last = "?";
  while (!last.empty()) {
    auto push = standby.push();
    ASSERT_NE(push, nullptr);
    for (auto event : push->push().getEvents())
      if (event.isScheduler()) last = event.getScheduler().getName().cStr();
  }
  EXPECT_EQ(active(), "");
  EXPECT_EQ(standby
                .call([](Request r) {  // joins again, as a new operation
                  r.setOpSeq(50);
                  r.initOp().initJoin().setRole(wire::Role::SCHEDULER);
                })
                ->reply()
                .getStatus(),
            0);
  EXPECT_TRUE(harness.eventually([&] { return harness.state().scheduler().name == "old"; }));
}

// A stopped process keeps its connection.
TEST(Service, AStandbySchedulerHearsThatTheActiveOneIsSilent) {
  ServiceOptions options;
  options.scheduler_grace_ms = options.scheduler_silence_ms = 300;
  Harness harness(options);
  TestClient standby(harness.port()), silent(harness.port());
  ASSERT_EQ(standby.hello(Role::kScheduler, "old"), 0);
  ASSERT_EQ(standby.join(Role::kScheduler)->reply().getStatus(), 0);
  ASSERT_EQ(silent.hello(Role::kScheduler, "new"), 0);
  ASSERT_EQ(silent.join(Role::kScheduler)->reply().getStatus(), 0);
  std::string last = "?";
  while (!last.empty()) {
    auto push = standby.push();
    ASSERT_NE(push, nullptr);
    for (auto event : push->push().getEvents())
      if (event.isScheduler()) last = event.getScheduler().getName().cStr();
  }
}

TEST(Service, EstimatesOfTheActiveSchedulerAreShownUntilTheJobStarts) {
  Harness harness;
  TestClient scheduler(harness.port()), user(harness.port());
  ASSERT_EQ(user.hello(Role::kUser), 0);
  ASSERT_EQ(scheduler.hello(Role::kScheduler, "s"), 0);
  const uint64_t epoch = scheduler.join(Role::kScheduler)->reply().getBody().getJoined().getEpoch();
  const uint64_t job = user.submit("a")->reply().getBody().getSubmitted().getJobId();
  const auto estimate = [&](uint64_t in_epoch, int64_t start_ms) {
    EXPECT_NE(scheduler.send([&](Request r) {
      auto estimates = r.initOp().initEstimates();
      estimates.setEpoch(in_epoch);
      auto item = estimates.initItems(1)[0];
      item.setJobId(job);
      item.setStartMs(start_ms);
    }),
              0u);
    // Its next answer comes after that was taken.
    EXPECT_NE(scheduler.call([](Request r) { r.initOp().setNop(); }), nullptr);
  };
  const auto shown = [&] {
    auto answer = user.call([&](Request r) { r.initOp().setJobInfo(job); });
    return answer->reply().getBody().getJobs().getJobs()[0].getEstimatedStartMs();
  };
  EXPECT_EQ(shown(), 0);
  estimate(epoch, 4711);
  EXPECT_EQ(shown(), 4711);
  EXPECT_EQ(user.call(job_list)->reply().getBody().getJobs().getJobs()[0].getEstimatedStartMs(),
            4711);
  estimate(epoch + 1, 1);  // of nobody
  EXPECT_EQ(shown(), 4711);
  estimate(epoch, 0);
  EXPECT_EQ(shown(), 0);
  estimate(epoch, 5000);
  auto refused = user.call([&](Request r) { r.initOp().initEstimates().setEpoch(epoch); });
  EXPECT_EQ(refused->reply().getStatus(), E_XCE_PERM);
  ASSERT_EQ(user.call([&](Request r) {
                  r.setOpSeq(77);
                  auto control = r.initOp().initJobCtrl();
                  control.initIds(1).set(0, job);
                  control.setAction(wire::JobAction::HOLD);
                })
                ->reply()
                .getStatus(),
            0);
  EXPECT_EQ(shown(), 0);
}

TEST(Service, ASlowReaderIsDropped) {
  ServiceOptions options;
  options.hub.ring_events = options.hub.lag_events = 1500;
  options.hub.high_water_bytes = 64 * 1024;
  Harness harness(options);
  TestClient slow(harness.port(), 4096), user(harness.port());
  ASSERT_EQ(slow.hello(Role::kScheduler, "s"), 0);
  ASSERT_EQ(slow.join(Role::kScheduler)->reply().getStatus(), 0);
  ASSERT_EQ(user.hello(Role::kUser), 0);
  // More than the socket's buffers and the ring hold: arrays of 1,000 tasks of 4 KiB each.
  for (int i = 0; i < 30; ++i) {
    auto answer = user.call([i](Request r) {
      r.setOpSeq(100 + i);
      auto spec = r.initOp().initJobSubmit();
      spec.setCpus(1);
      spec.setComment(std::string(4000, 'c'));
      spec.initArgs(1).set(0, "true");
      auto array = spec.initArray(1000);
      for (unsigned task = 0; task < 1000; ++task) array.set(task, task);
    });
    ASSERT_NE(answer, nullptr);
    ASSERT_EQ(answer->reply().getStatus(), 0) << answer->reply().getMessage().cStr();
  }
  EXPECT_TRUE(slow.closed());
}

TEST(Service, SingleJobsAreWatched) {
  Harness harness;
  TestClient user(harness.port()), watcher(harness.port()), worker(harness.port());
  ASSERT_EQ(user.hello(Role::kUser), 0);
  ASSERT_EQ(watcher.hello(Role::kUser), 0);
  ASSERT_EQ(worker.hello(Role::kWorker, "h1"), 0);
  const auto watch = [](TestClient* client, uint64_t id, unsigned n) {
    return client
        ->call([=](Request r) {
          auto jobs = r.initOp().initSubscribe().initJobs(n);
          for (unsigned i = 0; i < n; ++i) jobs.set(i, id + i);
        })
        ->reply()
        .getStatus();
  };
  const uint64_t first = user.submit("a")->reply().getBody().getSubmitted().getJobId();
  const uint64_t second = user.submit("b")->reply().getBody().getSubmitted().getJobId();
  ASSERT_EQ(watch(&watcher, second, 1), 0);
  for (uint64_t id : {first, second}) {
    const auto held = user.call([id](Request r) {
      auto control = r.initOp().initJobCtrl();
      control.initIds(1).set(0, id);
      control.setAction(wire::JobAction::HOLD);
    });
    ASSERT_EQ(held->reply().getStatus(), 0) << held->reply().getMessage().cStr();
  }
  auto push = watcher.push();
  ASSERT_NE(push, nullptr);
  ASSERT_EQ(push->push().getEvents().size(), 1u);
  EXPECT_EQ(push->push().getEvents()[0].getJob().getId(), second);
  EXPECT_EQ(watch(&worker, first, 1), E_XCE_INVALID);
  EXPECT_EQ(watch(&watcher, 1, XCE_MAX_WATCHED_JOBS), 0);
  EXPECT_EQ(watch(&watcher, 1, XCE_MAX_WATCHED_JOBS + 1), E_XCE_INVALID);
}

TEST(Service, SubscriptionsResumeOrTellOfTheGap) {
  ServiceOptions options;
  options.hub.ring_events = 4;
  Harness harness(options);
  TestClient user(harness.port());
  ASSERT_EQ(user.hello(Role::kUser), 0);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(user.submit("j")->reply().getStatus(), 0);
  const auto first = [&](uint64_t from, TestClient* client) {
    EXPECT_EQ(client->hello(Role::kApiserver, "api"), 0);
    EXPECT_EQ(client->call([from](Request r) { r.initOp().initSubscribe().setFromRevision(from); })
                  ->reply()
                  .getStatus(),
              0);
    return client->push();
  };
  TestClient near(harness.port()), far(harness.port());
  auto resumed = first(7, &near);
  ASSERT_NE(resumed, nullptr);
  EXPECT_FALSE(resumed->push().getEvents()[0].isGap());
  EXPECT_EQ(resumed->push().getRevision(), 8u);
  auto gap = first(1, &far);
  ASSERT_NE(gap, nullptr);
  EXPECT_TRUE(gap->push().getEvents()[0].isGap());
}

}  // namespace
}  // namespace xce::service::testing
