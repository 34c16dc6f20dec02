// When a standby stops waiting: only with a majority, only for the same primary and term, and only
// the one with the longest log.
#include "controller/consensus/failover.h"

#include <gtest/gtest.h>

namespace xce::consensus {
namespace {

constexpr LogPosition kShort{3, 10};
constexpr LogPosition kLong{3, 11};
constexpr LogPosition kNewer{4, 5};

Failover standby(uint64_t self) {
  Failover failover(self);
  failover.observe(7, 1);
  return failover;
}

TEST(FailoverTest, OneAloneNeverStands) {
  Failover failover = standby(2);
  EXPECT_FALSE(failover.should_stand(kLong, 3, 0));
  failover.set_suspecting(true);
  EXPECT_TRUE(failover.suspecting());
  EXPECT_FALSE(failover.should_stand(kLong, 3, 0));
}

TEST(FailoverTest, OthersAloneDoNotMakeItStand) {
  Failover failover = standby(2);
  failover.on_suspect(3, 7, 1, kShort, 0);
  failover.on_suspect(4, 7, 1, kShort, 0);
  EXPECT_FALSE(failover.should_stand(kLong, 4, 0));
}

TEST(FailoverTest, TheLongestLogOfAMajorityStands) {
  Failover failover = standby(2);
  failover.set_suspecting(true);
  failover.on_suspect(3, 7, 1, kShort, 0);
  EXPECT_TRUE(failover.should_stand(kLong, 3, 0));
  EXPECT_FALSE(failover.should_stand(kLong, 4, 0)) << "two of four are no majority";
  failover.on_suspect(3, 7, 1, kNewer, 0);
  EXPECT_FALSE(failover.should_stand(kLong, 3, 0));
}

TEST(FailoverTest, EqualLogsAreToldApartByTheId) {
  for (const bool higher : {false, true}) {
    Failover failover = standby(2);
    failover.set_suspecting(true);
    failover.on_suspect(higher ? 3 : 0, 7, 1, kLong, 0);
    EXPECT_EQ(failover.should_stand(kLong, 3, 0), !higher);
  }
}

TEST(FailoverTest, OfEqualLogsTheOneThatHasAppliedMoreStands) {
  constexpr LogPosition kReplaying{3, 11, 2}, kApplied{3, 11, 10};
  for (const uint64_t other : {1, 3}) {
    Failover failover(2);
    failover.observe(7, 4);
    failover.set_suspecting(true);
    failover.on_suspect(other, 7, 4, kReplaying, 0);
    EXPECT_TRUE(failover.should_stand(kApplied, 3, 0));
    failover.on_suspect(other, 7, 4, kApplied, 0);
    EXPECT_FALSE(failover.should_stand(kReplaying, 3, 0));
    failover.on_suspect(other, 7, 4, {3, 10, 10}, 0);
    EXPECT_TRUE(failover.should_stand(kReplaying, 3, 0)) << "only the longer log can win";
  }
}

TEST(FailoverTest, SuspicionsOfAnotherTermOrPrimaryCountForNothing) {
  Failover failover = standby(2);
  failover.set_suspecting(true);
  failover.on_suspect(3, 6, 1, kShort, 0);
  failover.on_suspect(3, 7, 4, kShort, 0);
  failover.on_suspect(1, 7, 1, kShort, 0);  // the primary itself
  failover.on_suspect(2, 7, 1, kShort, 0);  // our own words
  EXPECT_FALSE(failover.should_stand(kLong, 3, 0));
}

TEST(FailoverTest, ANewTermOrPrimaryForgetsAll) {
  Failover failover = standby(2);
  failover.set_suspecting(true);
  failover.on_suspect(3, 7, 1, kShort, 0);
  failover.observe(7, 1);
  EXPECT_TRUE(failover.should_stand(kLong, 3, 0));
  failover.observe(8, 1);
  EXPECT_FALSE(failover.suspecting());
  failover.set_suspecting(true);
  EXPECT_FALSE(failover.should_stand(kLong, 3, 0));
}

TEST(FailoverTest, ASuspicionThatIsNotRepeatedFades) {
  Failover failover = standby(2);
  failover.set_suspecting(true);
  failover.on_suspect(3, 7, 1, kShort, 1000);
  EXPECT_TRUE(failover.should_stand(kLong, 3, 1000 + kSuspicionLifetimeMs));
  EXPECT_FALSE(failover.should_stand(kLong, 3, 1001 + kSuspicionLifetimeMs));
}

TEST(FailoverTest, WithoutAPrimaryOrAsPrimaryThereIsNothingToSuspect) {
  Failover failover(2);
  failover.set_suspecting(true);
  EXPECT_FALSE(failover.suspecting());
  failover.observe(7, 2);
  failover.set_suspecting(true);
  EXPECT_FALSE(failover.suspecting());
}

}  // namespace
}  // namespace xce::consensus
