#include "controller/service/liveness.h"

#include <gtest/gtest.h>

namespace xce::service {
namespace {

std::map<std::string, Host> hosts(std::initializer_list<const char*> names) {
  std::map<std::string, Host> out;
  for (const char* name : names) out[name].attrs.name = name;
  return out;
}

TEST(Liveness, AHostUnheardForTheGraceTimeIsLostOnce) {
  Liveness liveness(1000);
  const auto all = hosts({"a", "b"});
  liveness.restart(0);
  for (uint64_t now = 100; now < 1000; now += 100) {
    liveness.heard("a", now);
    EXPECT_TRUE(liveness.lost(all, now).empty());
  }
  EXPECT_EQ(liveness.lost(all, 1000), std::vector<std::string>{"b"});
  EXPECT_TRUE(liveness.lost(all, 1100).empty());
}

TEST(Liveness, UnreachableHostsAreNotLostAgain) {
  Liveness liveness(1000);
  auto all = hosts({"a"});
  all["a"].state = HostState::kUnreachable;
  liveness.restart(0);
  for (uint64_t now = 100; now < 5000; now += 100) EXPECT_TRUE(liveness.lost(all, now).empty());
}

TEST(Liveness, AProcessThatWasStoppedCountsAnew) {
  Liveness liveness(1000);
  const auto all = hosts({"a"});
  liveness.restart(0);
  EXPECT_TRUE(liveness.lost(all, 100).empty());
  EXPECT_TRUE(liveness.lost(all, 60000).empty());  // SIGSTOP for a minute: nobody could be heard
}

TEST(Liveness, ANewPrimaryCountsAnew) {
  Liveness liveness(1000);
  const auto all = hosts({"a"});
  liveness.restart(0);
  for (uint64_t now = 100; now < 900; now += 100) liveness.lost(all, now);
  liveness.restart(900);
  for (uint64_t now = 1000; now < 1900; now += 100) EXPECT_TRUE(liveness.lost(all, now).empty());
  EXPECT_EQ(liveness.lost(all, 1900).size(), 1u);
}

}  // namespace
}  // namespace xce::service
