// xcecli_stop from another thread: whatever goes on in the context, every call in it ends within a
// second, with -ECANCELED.
#include <atomic>
#include <cerrno>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "libxce/client/testing/client_fixture.h"
#include "xce/client.h"

namespace xce::client {
namespace {

constexpr int kLongMs = 120000;  // no deadline ends these calls

// Runs calls on threads, waits until `ready`, stops the context: all end in time.
void stop_ends(Client* client, const std::vector<std::function<int()>>& calls,
               const std::function<bool()>& ready) {
  std::vector<std::future<int>> results;
  results.reserve(calls.size());
  for (const auto& call : calls) results.push_back(std::async(std::launch::async, call));
  const int64_t give_up = clock_ms() + 10000;
  while (!ready() && clock_ms() < give_up) std::this_thread::yield();
  ASSERT_TRUE(ready());
  const int64_t before = clock_ms();
  std::thread([&] { xcecli_stop(*client); }).join();
  for (auto& result : results) {
    ASSERT_EQ(result.wait_for(std::chrono::seconds(5)), std::future_status::ready);
    EXPECT_EQ(result.get(), -ECANCELED);
  }
  EXPECT_LT(clock_ms() - before, 1000);
  EXPECT_EQ(client->list(), -ECANCELED) << "and so does a later one";
}

TEST(Stop, WhileAPrimaryOwesAnAnswer) {
  MockMaster master(
      [](const Seen& s) { return s.which == Which::HELLO ? Answer() : act(Answer::Do::kNothing); });
  Client client({master.port()}, kLongMs);
  ASSERT_EQ(xcecli_start(client), 0);
  stop_ends(&client, {[&] { return client.list(); }, [&] { return client.submit(); }},
            [&] { return master.count(Which::JOB_LIST) + master.count(Which::JOB_SUBMIT) == 2; });
}

TEST(Stop, WhileACandidateDoesNotAnswerHello) {
  MockMaster silent([](const Seen&) { return act(Answer::Do::kNothing); });
  Client client({silent.port()}, kLongMs, 1000);
  stop_ends(&client, {[&] { return xcecli_start(client); }},
            [&] { return silent.count(Which::HELLO) > 0; });
}

TEST(Stop, WhileAllBackOff) {
  MockMaster standby([](const Seen&) { return status(E_XCE_NOMASTER); });
  DeadPort nobody;
  Client client({nobody.port(), standby.port()}, kLongMs, 1000000);
  stop_ends(&client,
            {[&] { return xcecli_start(client); },
             [&] {
               while (standby.count(Which::HELLO) < 3) std::this_thread::yield();
               return client.submit();
             }},
            [&] { return standby.count(Which::HELLO) > 6; });
}

TEST(Stop, WhileAnotherThreadIsInTheHook) {
  MockMaster master(serve);
  Client client({master.port()}, kLongMs);
  struct Hook {
    std::promise<void> entered, leave;
    std::atomic<int> calls{0};
  } hook;
  auto entered = hook.entered.get_future();
  ASSERT_EQ(xcecli_start(client), 0);
  xcecli_set_reconnect_handler(
      client,
      [](xcecli_ctx_t, void* arg) {
        auto* const h = static_cast<Hook*>(arg);
        if (h->calls++ == 0) {
          h->entered.set_value();
          h->leave.get_future().wait();
        }
        return 0;
      },
      &hook);
  master.drop_connections();
  auto in_hook = std::async(std::launch::async, [&] {
    while (hook.calls == 0) (void)xcecli_nop(client);
    return 0;
  });
  entered.wait();
  std::atomic<bool> begun{false};
  stop_ends(&client, {[&] {
    begun = true;
    return client.list();
  }},
            [&] { return begun.load(); });
  hook.leave.set_value();  // the program's own code is the program's to end
  in_hook.get();
}

// Calls, losses of the connection, stops from several threads, the end: all at once, again and
// again.
TEST(Stop, InTheMiddleOfAnything) {
  for (int round = 0; round < 20; ++round) {
    MockMaster second(serve);
    auto first = std::make_unique<MockMaster>(serve);
    Client client({first->port(), second.port()}, kLongMs, 1000000);
    xcecli_set_push_handler(
        client, [](xcecli_ctx_t, const xce_event_t*, void*) {}, nullptr);
    ASSERT_EQ(xcecli_start(client), 0);
    std::vector<std::thread> threads;
    threads.reserve(6);
    std::atomic<int> wrong{0}, done{0};
    for (int t = 0; t < 6; ++t)
      threads.emplace_back([&, t] {
        for (;;) {
          const int rc = t % 3 == 0   ? client.submit()
                         : t % 3 == 1 ? client.list()
                                      : xcecli_heartbeat(client);
          ++done;
          if (rc == -ECANCELED) return;
          if (rc < 0 && t % 3 != 2) ++wrong;  // a heartbeat may find no connection
          (void)xcecli_generation(client);
          char stats[1024];
          (void)xcecli_stats_json(client, stats, sizeof stats);
        }
      });
    while (done < 50 + round * 10) std::this_thread::yield();
    if (round % 2 == 0)
      first->kill();
    else
      first->push_removed(9, 1);
    while (done < 100 + round * 20) std::this_thread::yield();
    const int64_t before = clock_ms();
    std::thread other([&] { xcecli_stop(client); });
    xcecli_stop(client);
    other.join();
    for (std::thread& thread : threads) thread.join();
    EXPECT_LT(clock_ms() - before, 1000);
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace xce::client
