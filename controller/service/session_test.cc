// Sessions over a real socket against a fake log: who may say what, when answers come, what is
// pushed to whom.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "controller/service/testing/fake_replica.h"
#include "controller/service/testing/test_client.h"
#include "libxce/wire/codec.h"
#include "xce/errnox.h"

namespace xce::service::testing {
namespace {

using Request = wire::Request::Builder;

void job_list(Request request) { request.initOp().initJobList(); }

TEST(Session, AnswersHelloWithWhoItIs) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_TRUE(client.send_preamble());
  auto answer = client.call([](Request r) { r.initOp().initHello().setRole(wire::Role::USER); });
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->reply().getStatus(), 0);
  EXPECT_EQ(answer->reply().getTerm(), 5u);
  EXPECT_EQ(answer->reply().getClusterId(), 99u);
  EXPECT_EQ(answer->reply().getBody().getHello().getNodeId(), 1u);
  EXPECT_FALSE(answer->reply().getBody().getHello().getJoined());
}

TEST(Session, TheFirstRequestMustBeHello) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_TRUE(client.send_preamble());
  auto answer = client.call(job_list);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->reply().getStatus(), E_XCE_AUTH);
  EXPECT_TRUE(client.closed());
}

TEST(Session, AConnectionKeepsItsIdentity) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), 0);
  auto answer =
      client.call([](Request r) { r.initOp().initHello().setRole(wire::Role::SCHEDULER); });
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->reply().getStatus(), E_XCE_AUTH);
  EXPECT_EQ(client.call(job_list)->reply().getStatus(), 0);  // and stays usable
}

TEST(Session, NobodyIsAController) {
  Harness harness;
  TestClient client(harness.port());
  EXPECT_EQ(client.hello(Role::kController), E_XCE_AUTH);
}

TEST(Session, GarbageIsClosedAtOnce) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_TRUE(client.send_raw("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(client.closed());
}

TEST(Session, GarbageAfterThePreambleIsClosed) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_TRUE(client.send_preamble());
  ASSERT_TRUE(client.send_raw(std::string(64, 'x')));
  EXPECT_TRUE(client.closed());
}

TEST(Session, AFrameThatIsNoMessageIsClosed) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_TRUE(client.send_preamble());
  std::string frame;
  net::append_frame(std::string(64, '\xff'), &frame);
  ASSERT_TRUE(client.send_raw(frame));
  EXPECT_TRUE(client.closed());
}

TEST(Session, SilenceHasADeadline) {
  Limits limits;
  limits.preamble_ms = 50;
  limits.hello_ms = 50;
  limits.frame_ms = 50;
  Harness harness({}, limits);
  TestClient silent(harness.port()), no_hello(harness.port()), half(harness.port());
  ASSERT_TRUE(no_hello.send_preamble());
  EXPECT_EQ(half.hello(Role::kUser), 0);
  ASSERT_TRUE(half.send_raw("XCEF"));  // a frame's first bytes, never the rest
  EXPECT_TRUE(silent.closed());
  EXPECT_TRUE(no_hello.closed());
  EXPECT_TRUE(half.closed());
}

TEST(Session, LimitsOfARequestAreNamed) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_TRUE(client.send_preamble());
  const uint64_t seq =
      client.send([](Request r) { r.initOp().initHello().setName(std::string(20000, 'n')); });
  ASSERT_NE(seq, 0u);
  auto answer = client.receive();
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->reply().getStatus(), E_XCE_INVALID);
  EXPECT_NE(std::string(answer->reply().getMessage().cStr()).find("16384"), std::string::npos);
  EXPECT_TRUE(client.closed());
}

TEST(Session, AfterHelloLargerRequestsAreWelcome) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), 0);
  auto answer = client.call([](Request r) {
    r.setOpSeq(1);
    auto spec = r.initOp().initJobSubmit();
    spec.setCpus(1);
    const std::string script = "#!/bin/sh\n" + std::string(200000, '#');
    spec.setScript(
        capnp::Data::Reader(reinterpret_cast<const uint8_t*>(script.data()), script.size()));
  });
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->reply().getStatus(), 0) << answer->reply().getMessage().cStr();
}

TEST(Session, TooManyRequestsInFlightAreBusy) {
  Limits limits;
  limits.requests_in_flight = 3;
  Harness harness({}, limits);
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), 0);
  harness.on_loop([&] { harness.replica().automatic = false; });
  std::vector<uint64_t> seqs;
  for (int i = 0; i < 4; ++i) seqs.push_back(client.send(job_list));
  auto busy = client.reply(seqs[3]);
  ASSERT_NE(busy, nullptr);
  EXPECT_EQ(busy->reply().getStatus(), E_XCE_BUSY);
  ASSERT_TRUE(harness.eventually([&] { return harness.replica().waiting() > 0; }));
  harness.on_loop([&] {
    harness.replica().automatic = true;
    harness.replica().pass_barriers(true);
  });
  EXPECT_NE(client.reply(seqs[2]), nullptr);
}

TEST(Session, TooManyConnectionsAreRefused) {
  Limits limits;
  limits.connections = 3;
  limits.reserved_for_peers = 1;
  limits.reserved_for_daemons = 0;
  Harness harness({}, limits);
  TestClient one(harness.port()), two(harness.port());
  ASSERT_EQ(one.hello(Role::kUser), 0);
  ASSERT_EQ(two.hello(Role::kUser), 0);
  TestClient three(harness.port());
  EXPECT_NE(three.hello(Role::kUser), 0);
  EXPECT_TRUE(three.closed());
  EXPECT_EQ(one.call(job_list)->reply().getStatus(), 0);
}

bool adopted(Harness* harness, int n) {
  TestClient peer(harness->port());
  return peer.send_raw({net::kPeerPreamble, net::kPreambleSize}) &&
         harness->eventually([&] { return harness->replica().adopted == n; });
}

// Connections that say nothing, and users' programs, as many as you like: controllers and daemons
// get in.
TEST(Session, AFloodKeepsOutNeitherControllersNorDaemons) {
  Limits limits;
  limits.connections = 8;
  limits.reserved_for_peers = 2;
  limits.reserved_for_daemons = 2;
  Harness harness({}, limits);
  std::vector<std::unique_ptr<TestClient>> silent, users;
  for (int i = 0; i < 30; ++i) {
    silent.push_back(std::make_unique<TestClient>(harness.port()));
    ASSERT_TRUE(silent.back()->connected());
  }
  EXPECT_TRUE(adopted(&harness, 1));
  for (int i = 0; i < 4; ++i) {
    users.push_back(std::make_unique<TestClient>(harness.port()));
    EXPECT_EQ(users.back()->hello(Role::kUser), 0);
  }
  TestClient fifth(harness.port());
  EXPECT_EQ(fifth.hello(Role::kUser), E_XCE_BUSY);
  EXPECT_TRUE(fifth.closed());
  TestClient worker(harness.port());
  EXPECT_EQ(worker.hello(Role::kWorker, "h1"), 0);
  EXPECT_TRUE(adopted(&harness, 2));
  EXPECT_EQ(users[0]->call(job_list)->reply().getStatus(), 0) << "who is in stays in";
  users.pop_back();
  int status = E_XCE_BUSY;  // a place that is free again is given
  for (int i = 0; i < 1000 && status == E_XCE_BUSY; ++i)
    status = TestClient(harness.port()).hello(Role::kUser);
  EXPECT_EQ(status, 0);
}

TEST(Session, AnAddressHasAShareOfUsersAndDaemonsOfItGetInAllTheSame) {
  Limits limits;
  limits.limit_loopback = true;
  limits.connections_an_address = 4;
  limits.reserved_an_address = 2;
  Harness harness({}, limits);
  TestClient one(harness.port()), two(harness.port()), three(harness.port());
  EXPECT_EQ(one.hello(Role::kUser), 0);
  EXPECT_EQ(two.hello(Role::kUser), 0);
  EXPECT_EQ(three.hello(Role::kUser), E_XCE_BUSY);
  TestClient worker(harness.port());
  EXPECT_EQ(worker.hello(Role::kWorker, "h1"), 0);
  EXPECT_TRUE(adopted(&harness, 1));
}

// An operation id is its caller's own: two people may choose the same, and neither meets the
// other's.
TEST(Session, AnOperationIdIsItsCallersOwn) {
  Harness harness;
  const auto submit = [](TestClient* client, uint64_t hash) {
    return client->call([&](Request r) {
      r.setClientIdHi(7);
      r.setClientIdLo(8);
      r.setOpSeq(1);
      r.setOpHash(hash);
      auto spec = r.initOp().initJobSubmit();
      spec.initArgs(1).set(0, "true");
      spec.setCpus(1);
    });
  };
  TestClient ann(harness.port()), bob(harness.port());
  ASSERT_EQ(ann.hello(Role::kUser, "", "ann", 1000), 0);
  ASSERT_EQ(bob.hello(Role::kUser, "", "bob", 1001), 0);
  auto first = submit(&ann, 5);
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(first->reply().getStatus(), 0) << first->reply().getMessage().cStr();
  const uint64_t job = first->reply().getBody().getSubmitted().getJobId();
  auto again = submit(&ann, 5);
  EXPECT_EQ(again->reply().getBody().getSubmitted().getJobId(), job);
  EXPECT_EQ(submit(&ann, 6)->reply().getStatus(), E_XCE_INVALID);
  auto other = submit(&bob, 6);
  ASSERT_EQ(other->reply().getStatus(), 0) << other->reply().getMessage().cStr();
  EXPECT_NE(other->reply().getBody().getSubmitted().getJobId(), job);
  auto join = ann.call([](Request r) {
    r.setOpSeq(1);
    r.setOpHash(5);
    r.initOp().initJoin().setRole(wire::Role::USER);
  });
  EXPECT_EQ(join->reply().getStatus(), E_XCE_INVALID);
}

TEST(Session, PeersAreHandedOver) {
  Harness harness;
  TestClient peer(harness.port());
  const std::string bytes = std::string(net::kPeerPreamble, net::kPreambleSize) + "more";
  ASSERT_TRUE(peer.send_raw(bytes));
  EXPECT_TRUE(harness.eventually([&] { return harness.replica().adopted == 1; }));
  harness.on_loop([&] { EXPECT_EQ(harness.replica().adopted_bytes, bytes); });
}

TEST(Session, RolesMayDoOnlyWhatTheyNeed) {
  Harness harness;
  TestClient worker(harness.port());
  ASSERT_EQ(worker.hello(Role::kWorker, "h1"), 0);
  EXPECT_EQ(worker.submit("no")->reply().getStatus(), E_XCE_PERM);
  TestClient user(harness.port());
  ASSERT_EQ(user.hello(Role::kUser), 0);
  auto answer = user.call([](Request r) {
    r.setOpSeq(1);
    r.initOp().initJobDispatch();
  });
  EXPECT_EQ(answer->reply().getStatus(), E_XCE_PERM);
  EXPECT_NE(user.join(Role::kWorker)->reply().getStatus(), 0);
}

void on_behalf(Request r, const char* user, uint32_t uid, bool administrator = false) {
  auto person = r.initOnBehalf();
  person.setUser(user);
  person.setUid(uid);
  person.setGid(uid);
  person.setAdministrator(administrator);
}

// A job of `user`'s, as the state has it, submitted by an apiserver that names another user in it.
TEST(Session, AnApiserverAsksOnBehalfOfPeopleWithTheirRights) {
  Harness harness;
  TestClient api(harness.port());
  ASSERT_EQ(api.hello(Role::kApiserver, "api", "www", 33), 0);
  uint64_t op = 0;
  const auto submit = [&](const char* user, uint32_t uid, const char* claimed) {
    return api.call([&](Request r) {
      r.setOpSeq(++op);
      r.setLowestUnanswered(op);
      on_behalf(r, user, uid);
      auto spec = r.initOp().initJobSubmit();
      spec.setUser(claimed);
      spec.setCpus(1);
      spec.initArgs(1).set(0, "true");
      spec.initEnv(1).set(0, "SECRET=1");
    });
  };
  const auto kill = [&](const char* user, uint32_t uid, bool administrator, uint64_t job) {
    return api
        .call([&](Request r) {
          r.setOpSeq(++op);
          r.setLowestUnanswered(op);
          on_behalf(r, user, uid, administrator);
          auto control = r.initOp().initJobCtrl();
          control.initIds(1).set(0, job);
        })
        ->reply()
        .getStatus();
  };
  const auto info = [&](const char* user, uint32_t uid, uint64_t job) {
    return api.call([&](Request r) {
      on_behalf(r, user, uid);
      r.initOp().setJobInfo(job);
    });
  };
  auto made = submit("ann", 1000, "root");
  ASSERT_EQ(made->reply().getStatus(), 0) << made->reply().getMessage().cStr();
  const uint64_t job = made->reply().getBody().getSubmitted().getJobId();
  auto own = info("ann", 1000, job);
  const auto spec = own->reply().getBody().getJobs().getJobs()[0].getSpec();
  EXPECT_EQ(std::string(spec.getUser().cStr()), "ann") << "whatever the request claims";
  EXPECT_EQ(spec.getUid(), 1000u);
  EXPECT_EQ(spec.getEnv().size(), 1u);
  auto other = info("bob", 1001, job);
  EXPECT_EQ(other->reply().getBody().getJobs().getJobs()[0].getSpec().getEnv().size(), 0u);
  EXPECT_EQ(kill("bob", 1001, false, job), E_XCE_PERM);
  EXPECT_EQ(kill("eve", 1002, true, job), 0);
  auto killed = info("ann", 1000, job);
  EXPECT_NE(std::string(killed->reply().getBody().getJobs().getJobs()[0].getReason().cStr())
                .find("killed by eve"),
            std::string::npos);
}

TEST(Session, NobodyElseAsksOnBehalfOfOthers) {
  Harness harness;
  TestClient user(harness.port());
  ASSERT_EQ(user.hello(Role::kUser), 0);
  auto refused = user.call([](Request r) {
    on_behalf(r, "root", 0);
    job_list(r);
  });
  EXPECT_EQ(refused->reply().getStatus(), E_XCE_PERM);
  TestClient api(harness.port());
  ASSERT_EQ(api.hello(Role::kApiserver, "api"), 0);
  EXPECT_EQ(api.call([](Request r) {
                 on_behalf(r, "", 5);
                 job_list(r);
               })
                ->reply()
                .getStatus(),
            E_XCE_PERM);
}

// Requests with random bytes changed: whatever becomes of their connections, the controller goes
// on.
TEST(Session, DamagedRequestsHurtOnlyTheirConnection) {
  Harness harness;
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    TestClient client(harness.port());
    ASSERT_TRUE(client.connected());
    ASSERT_EQ(client.hello(Role::kUser), 0);
    capnp::MallocMessageBuilder message;
    auto request = message.initRoot<wire::Request>();
    request.setSeq(9);
    request.setOpSeq(9);
    if (round % 3 == 0) {
      auto spec = request.initOp().initJobSubmit();
      spec.setName("damaged");
      spec.setCpus(1);
      spec.initArgs(3).set(0, "true");
      spec.initArray(5).set(1, 4);
    } else if (round % 3 == 1) {
      request.initOp().initJobList().initIds(4).set(0, 1);
    } else {
      request.initOp().initQueueCtrl().initQueue().setName("q");
    }
    std::string payload = wire::flatten(message);
    for (unsigned changes = 1 + random() % 6; changes > 0; --changes)
      payload[random() % payload.size()] ^= 1 << random() % 8;
    std::string frame;
    net::append_frame(payload, &frame);
    ASSERT_TRUE(client.send_raw(frame));
  }
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), 0);
  EXPECT_EQ(client.submit("well")->reply().getStatus(), 0);
}

// A message may point to one large text many times over: what it unfolds to counts, not what it
// weighs.
TEST(Session, AMessageThatUnfoldsToTooMuchIsRefused) {
  Harness harness;
  TestClient client(harness.port());
  ASSERT_EQ(client.hello(Role::kUser), 0);
  for (const unsigned times :
       {5u, 50u}) {  // over the limit of a write; over the limit of what is read of a message
    capnp::MallocMessageBuilder message(1 << 20);  // one segment
    auto request = message.initRoot<wire::Request>();
    request.setSeq(times);
    request.setOpSeq(times);
    auto spec = request.initOp().initJobSubmit();
    spec.setCpus(1);
    const std::string text = "A=" + std::string(700000, 'a');
    spec.initEnv(times).set(0, text);
    const std::string payload = wire::flatten(message);
    std::vector<uint64_t> words(payload.size() / 8);
    std::memcpy(words.data(), payload.data(), payload.size());
    const uint32_t high =
        static_cast<uint32_t>((text.size() + 1) << 3 | 2);  // a list pointer to that many bytes
    size_t first = 0;
    while (first < words.size() && words[first] >> 32 != high) ++first;
    ASSERT_LT(first + times, words.size());
    for (unsigned i = 1; i < times; ++i)
      words[first + i] = words[first] - (uint64_t{i} << 2);  // nearer by i words
    std::string frame;
    net::append_frame({reinterpret_cast<const char*>(words.data()), words.size() * 8}, &frame);
    ASSERT_TRUE(client.send_raw(frame));
    auto answer = client.reply(times);
    ASSERT_NE(answer, nullptr);
    EXPECT_EQ(answer->reply().getStatus(), E_XCE_INVALID) << times;
  }
  EXPECT_EQ(client.submit("well")->reply().getStatus(), 0);
  harness.on_loop([&] { EXPECT_EQ(harness.replica().proposals, 1u); });
}

// ---- workers: leases and signs of life

uint32_t lease_in_hello(TestClient* worker, const std::string& host) {
  auto answer = worker->call([&](Request r) {
    auto hello = r.initOp().initHello();
    hello.setRole(wire::Role::WORKER);
    hello.setName(host);
    hello.setUser("ann");
    hello.setUid(1000);
  });
  return answer == nullptr ? 0 : answer->reply().getBody().getHello().getLeaseMs();
}

TEST(WorkerSession, ALeaseIsGivenToWhoHasJoinedOnly) {
  ServiceOptions options;
  options.lease_ms = 4321;
  Harness harness(options);
  TestClient worker(harness.port()), namesake(harness.port());
  ASSERT_EQ(worker.hello(Role::kWorker, "h1"), 0);
  EXPECT_EQ(lease_in_hello(&worker, "h1"), 0u);
  ASSERT_EQ(worker.join(Role::kWorker)->reply().getStatus(), 0);
  EXPECT_EQ(lease_in_hello(&worker, "h1"), 4321u);
  ASSERT_EQ(namesake.hello(Role::kWorker, "h1"), 0);
  EXPECT_EQ(lease_in_hello(&namesake, "h1"), 0u);
}

TEST(WorkerSession, HellosOfWhoHasNotJoinedDoNotKeepAHostUp) {
  ServiceOptions options;
  options.host_grace_ms = 600;
  Harness harness(options);
  TestClient namesake(harness.port());
  ASSERT_EQ(namesake.hello(Role::kWorker, "h1"), 0);
  {
    TestClient worker(harness.port());
    ASSERT_EQ(worker.hello(Role::kWorker, "h1"), 0);
    ASSERT_EQ(worker.join(Role::kWorker)->reply().getStatus(), 0);
  }
  bool unreachable = false;
  for (int i = 0; i < 500 && !unreachable; ++i) {
    lease_in_hello(&namesake, "h1");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    harness.on_loop(
        [&] { unreachable = harness.state().hosts().at("h1").state == HostState::kUnreachable; });
  }
  EXPECT_TRUE(unreachable);
}

}  // namespace
}  // namespace xce::service::testing
