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

TEST(Liveness, GoneAreUnreachableHostsOnceTheirLeasesHaveSurelyRunOut) {
  Liveness liveness(1000);
  auto all = hosts({"a", "b", "c"});
  all["a"].state = all["b"].state = HostState::kUnreachable;
  all["a"].lease_ms = all["c"].lease_ms = 5000;
  const uint64_t silence_ms = 5000 + 500 + kFenceMs;
  liveness.restart(0);
  const auto look = [&](uint64_t now) {
    liveness.lost(all, now);
    return liveness.gone(all, now);
  };
  uint64_t now = 100;
  for (; now < silence_ms; now += 100) EXPECT_TRUE(look(now).empty()) << now;
  EXPECT_EQ(look(now), std::vector<std::string>{"a"}) << "b gives no leases, c is up";
  EXPECT_TRUE(look(now + 500).empty()) << "it was just named";
  EXPECT_EQ(look(now + 1000), std::vector<std::string>{"a"}) << "perhaps the proposal was lost";
  const uint64_t heard = now + 1100;
  liveness.heard("a", heard);
  for (now = heard; now < heard + silence_ms; now += 100) EXPECT_TRUE(look(now).empty()) << now;
  EXPECT_EQ(look(now), std::vector<std::string>{"a"});
  // Another primary, or this one after it was stopped, counts anew.
  liveness.restart(now + 100);
  EXPECT_TRUE(look(now + 200).empty());
  EXPECT_TRUE(look(now + 200 + silence_ms).empty()) << "it was stopped";
}

}  // namespace
}  // namespace xce::service
