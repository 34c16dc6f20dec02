// A request is written or withdrawn, never both: what its caller is told of it stays true.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "libxce/client/endpoint.h"

namespace xce::client {
namespace {

TEST(Waiter, AWithdrawnRequestIsNotWritten) {
  Waiter waiter;
  EXPECT_FALSE(waiter.wait_until(Clock::now()));
  EXPECT_FALSE(waiter.withdraw());
  EXPECT_FALSE(waiter.set_written());
  EXPECT_FALSE(waiter.written());
}

TEST(Waiter, AWrittenRequestCannotBeWithdrawn) {
  Waiter waiter;
  EXPECT_TRUE(waiter.set_written());
  EXPECT_TRUE(waiter.withdraw());
  EXPECT_TRUE(waiter.written());
}

TEST(Waiter, BothSidesAlwaysAgree) {
  for (int i = 0; i < 2000; i++) {
    Waiter waiter;
    std::atomic<bool> sent{false};
    std::thread loop([&] { sent = waiter.set_written(); });
    const bool may_be_applied = waiter.withdraw();
    loop.join();
    EXPECT_EQ(sent, may_be_applied);
  }
}

// Whether a request that its caller has withdrawn still reaches a node: see also
// e2e/checker:linearizability_test, which found that it did.
TEST(Endpoint, DoesNotSendToAConnectionThatIsGone) {
  Endpoint endpoint({}, nullptr, {[](const Words&) {}, [](uint64_t, int, int) {}});
  ASSERT_EQ(endpoint.start("", ""), 0);
  const auto waiter = std::make_shared<Waiter>();
  endpoint.send(7, 1, "x", waiter);
  ASSERT_TRUE(waiter->wait_until(Clock::now() + std::chrono::seconds(10)));
  EXPECT_EQ(waiter->error(), ECONNRESET);
  EXPECT_FALSE(waiter->written());
}

}  // namespace
}  // namespace xce::client
