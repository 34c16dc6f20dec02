// The whole client against scripted controllers on real loopback sockets: silence, losses, pushes.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "gtest/gtest.h"
#include "libxce/client/testing/client_fixture.h"
#include "xce/client.h"

namespace xce::client {
namespace {

TEST(Watch, SilentPrimaryIsLeftForOneThatServes) {
  std::atomic<bool> taken_over{false};
  MockMaster second([&](const Seen&) { return taken_over ? Answer() : status(E_XCE_NOMASTER); });
  MockMaster first(serve);
  Client client({first.port(), second.port()}, 10000);
  ASSERT_EQ(xcecli_start(client), 0);
  first.freeze();
  taken_over = true;
  const int64_t before = clock_ms();
  EXPECT_EQ(client.submit(), 0) << error().message;
  EXPECT_LT(clock_ms() - before, 2500) << "expected about 300 ms";
  EXPECT_GE(second.count(Which::JOB_SUBMIT), 1u);
  EXPECT_TRUE(second.seen().back().resent);
  first.thaw();
}

TEST(Watch, SlowPrimaryIsKeptWhileNoOtherServes) {
  MockMaster standby([](const Seen&) { return status(E_XCE_NOMASTER); });
  MockMaster slow(serve);
  Client client({slow.port(), standby.port()}, 10000);
  ASSERT_EQ(xcecli_start(client), 0);
  slow.freeze();
  std::thread thaw([&] {
    standby.wait_for(Which::HELLO, 2);  // it has been probed twice
    slow.thaw();
  });
  EXPECT_EQ(client.submit(), 0) << error().message;
  thaw.join();
  EXPECT_EQ(xcecli_generation(client), 1u);
}

TEST(Watch, SilentCandidateDoesNotEatTheBudget) {
  MockMaster silent(serve);
  silent.freeze();
  MockMaster primary(serve);
  Client client({silent.port(), primary.port()}, 10000);
  const int64_t before = clock_ms();
  EXPECT_EQ(xcecli_start(client), 0) << error().message;
  EXPECT_LT(clock_ms() - before, 1800) << "expected about 250 ms";
  EXPECT_EQ(client.list(), 0);
  silent.thaw();
}

TEST(Watch, FireAndForgetReconnectsADeadConnectionAndRaisesTheGeneration) {
  MockMaster second(serve);
  auto first = std::make_unique<MockMaster>(serve);
  Client client({first->port(), second.port()});
  ASSERT_EQ(xcecli_start(client), 0);
  EXPECT_EQ(xcecli_heartbeat(client), 0);
  ASSERT_TRUE(first->wait_for(Which::HEARTBEAT, 1));
  first->kill();
  const int64_t deadline = clock_ms() + 5000;
  while (xcecli_generation(client) == 1 && clock_ms() < deadline) xcecli_wakeup(client);
  EXPECT_EQ(xcecli_generation(client), 2u);
  EXPECT_TRUE(second.wait_for(Which::WAKEUP, 1));
  second.kill();
  int rc = 0;
  while (rc == 0 && clock_ms() < deadline) rc = xcecli_heartbeat(client);
  EXPECT_EQ(rc, -E_XCE_NOT_READY);
}

TEST(Watch, FireAndForgetDiesWithItsConnectionAndIsCounted) {
  auto master = std::make_unique<MockMaster>(serve);
  Client client({master->port()});
  ASSERT_EQ(xcecli_start(client), 0);
  ASSERT_EQ(xcecli_heartbeat(client), 0);
  ASSERT_TRUE(master->wait_for(Which::HEARTBEAT, 1));
  master->kill();
  const int64_t deadline = clock_ms() + 5000;
  int rc = 0;
  while (rc == 0 && clock_ms() < deadline) rc = xcecli_wakeup(client);
  EXPECT_EQ(rc, -E_XCE_NOT_READY);
  const int64_t before = clock_ms();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(xcecli_heartbeat(client), -E_XCE_NOT_READY);
  EXPECT_LT(clock_ms() - before, 3000) << "it must not wait for a primary";
  char stats[1024];
  xcecli_stats_json(client, stats, sizeof stats);
  EXPECT_NE(std::strstr(stats, "\"ff_dropped\":101"), nullptr) << stats;
}

TEST(Watch, ALateErrorOfAnOldConnectionLeavesTheNewOneAlone) {
  std::atomic<bool> taken_over{false};
  MockMaster second([&](const Seen&) { return taken_over ? Answer() : status(E_XCE_NOMASTER); });
  MockMaster first(serve);
  Client client({first.port(), second.port()}, 10000);
  ASSERT_EQ(xcecli_start(client), 0);
  first.freeze();
  taken_over = true;
  std::thread other([&] { EXPECT_EQ(client.list(), 0) << error().message; });
  EXPECT_EQ(client.submit(), 0) << error().message;
  other.join();
  EXPECT_EQ(xcecli_generation(client), 2u);
  first.thaw();  // its answers come now, for calls that are over
  first.kill();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.list(), 0) << error().message;
  EXPECT_EQ(xcecli_generation(client), 2u) << "the connection to the second was left";
}

struct PushProbe {
  std::mutex mu;
  std::condition_variable cv;
  uint64_t revision = 0, id = 0;
  int inner = 0;
  static void take(xcecli_ctx_t ctx, const xce_event_t* event, void* arg) {
    auto* self = static_cast<PushProbe*>(arg);
    std::lock_guard<std::mutex> lock(self->mu);
    self->inner = xcecli_hello(ctx, nullptr);
    self->revision = event->revision;
    self->id = event->kind == XCE_EVENT_JOB_REMOVED ? event->id : 0;
    self->cv.notify_all();
  }
};

TEST(Watch, PushesReachTheHandler) {
  MockMaster master(serve);
  Client client({master.port()});
  PushProbe probe;
  xcecli_set_push_handler(client, &PushProbe::take, &probe);
  ASSERT_EQ(xcecli_start(client), 0);
  ASSERT_EQ(xcecli_subscribe(client, 0), 0);
  master.push_removed(9, 17);
  std::unique_lock<std::mutex> lock(probe.mu);
  ASSERT_TRUE(
      probe.cv.wait_for(lock, std::chrono::seconds(5), [&] { return probe.revision == 9; }));
  EXPECT_EQ(probe.id, 17u);
  EXPECT_EQ(probe.inner, -EDEADLK);
}

struct LossProbe {
  std::mutex mu;
  std::condition_variable cv;
  int losses = 0;
  static void take(xcecli_ctx_t, void* arg) {
    auto* self = static_cast<LossProbe*>(arg);
    std::lock_guard<std::mutex> lock(self->mu);
    ++self->losses;
    self->cv.notify_all();
  }
};

TEST(Watch, AnIdleContextLearnsOfTheLossOfItsConnection) {
  MockMaster first(serve), second(serve);
  Client client({first.port(), second.port()});
  LossProbe probe;
  xcecli_set_disconnect_handler(client, &LossProbe::take, &probe);
  ASSERT_EQ(xcecli_start(client), 0);
  first.kill();
  {
    std::unique_lock<std::mutex> lock(probe.mu);
    ASSERT_TRUE(
        probe.cv.wait_for(lock, std::chrono::seconds(5), [&] { return probe.losses == 1; }));
  }
  EXPECT_EQ(xcecli_hello(client, nullptr), 0);
  EXPECT_EQ(xcecli_generation(client), 2u);
}

// A context that takes pushes, and learns from its handler that the connection is lost.
class Subscriber {
 public:
  explicit Subscriber(std::vector<uint16_t> ports) : client_(std::move(ports)) {
    xcecli_set_push_handler(
        client_, [](xcecli_ctx_t, const xce_event_t*, void*) {}, nullptr);
    xcecli_set_disconnect_handler(
        client_, [](xcecli_ctx_t, void* arg) { static_cast<Subscriber*>(arg)->lost(); }, this);
  }
  ~Subscriber() { xcecli_stop(client_); }
  operator xcecli_ctx_t() const { return client_; }  // NOLINT: reads as the C API does
  // Whether the connection is lost within `ms`, with no call in flight.
  bool loses_it_within(int ms) {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, std::chrono::milliseconds(ms), [&] { return lost_; });
  }

 private:
  void lost() {
    std::lock_guard<std::mutex> lock(mu_);
    lost_ = true;
    changed_.notify_all();
  }
  std::mutex mu_;
  std::condition_variable changed_;
  bool lost_ = false;
  Client client_;
};

TEST(Watch, AnIdleSubscriberLearnsThatItsPrimaryIsSilent) {
  MockMaster alone(serve);
  Subscriber subscriber({alone.port()});
  ASSERT_EQ(xcecli_start(subscriber), 0);
  EXPECT_FALSE(subscriber.loses_it_within(1500)) << "it answers pings";
  alone.freeze();
  EXPECT_TRUE(subscriber.loses_it_within(10000)) << "expected about 5 s";
  alone.thaw();
}

TEST(Watch, AnIdleSubscriberMovesSoonerWhenAnotherServes) {
  std::atomic<bool> taken_over{false};
  MockMaster second([&](const Seen&) { return taken_over ? Answer() : status(E_XCE_NOMASTER); });
  MockMaster first(serve);
  Subscriber subscriber({first.port(), second.port()});
  ASSERT_EQ(xcecli_start(subscriber), 0);
  first.freeze();
  taken_over = true;
  const int64_t before = clock_ms();
  EXPECT_TRUE(subscriber.loses_it_within(10000));
  EXPECT_LT(clock_ms() - before, 3800) << "expected about 2 s: before it would be given up anyway";
  EXPECT_EQ(xcecli_hello(subscriber, nullptr), 0) << "and the next call is at the other";
  EXPECT_EQ(xcecli_generation(subscriber), 2u);
  first.thaw();
}

}  // namespace
}  // namespace xce::client
