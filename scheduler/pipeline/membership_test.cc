#include "scheduler/pipeline/membership.h"

#include <gtest/gtest.h>

#include "scheduler/pipeline/controller_port.h"

namespace xce::sched {
namespace {

// The connection is lost while the state is taken, and the state is taken again before the join:
// events flow from the join only, so that state misses what happened in between.
TEST(Membership, TheStateIsTakenAfterEveryJoin) {
  Membership membership;
  membership.want_join();
  const uint64_t early = membership.begin();
  membership.state_taken(early);
  ASSERT_TRUE(membership.needs_join());
  JoinAnswer answer;
  answer.epoch = 1;
  answer.active = true;
  membership.joined(membership.begin(), answer);
  EXPECT_FALSE(membership.needs_join());
  EXPECT_TRUE(membership.needs_state());
  EXPECT_FALSE(membership.deciding_epoch().has_value());
  membership.state_taken(membership.begin());
  EXPECT_FALSE(membership.needs_state());
  EXPECT_EQ(membership.deciding_epoch(), 1u);
}

// One that was stopped for a while hears first that nobody is active, which was said of itself,
// then who took over: it stands by, and does not fight for the place.
TEST(Membership, WhatWasSaidOfItselfMakesNobodyJoinAgain) {
  Membership membership;
  membership.joined(membership.begin(), JoinAnswer{1, 4, true});
  membership.state_taken(membership.begin());
  membership.scheduler_is(4, "");
  EXPECT_FALSE(membership.needs_join());
  EXPECT_TRUE(membership.active());
  membership.scheduler_is(5, "other");
  EXPECT_FALSE(membership.active());
  membership.scheduler_is(4, "");  // old news
  EXPECT_FALSE(membership.needs_join());
  membership.scheduler_is(5, "");
  EXPECT_TRUE(membership.needs_join());
}

// As above, but it was stopped before it had read the answer to its join.
TEST(Membership, APlaceThatIsTakenAgainIsNotJoinedFor) {
  Membership membership;
  const uint64_t join = membership.begin();
  membership.scheduler_is(4, "");
  EXPECT_TRUE(membership.needs_join());
  membership.scheduler_is(5, "other");
  membership.joined(join, JoinAnswer{1, 4, true});
  EXPECT_FALSE(membership.needs_join());
  EXPECT_FALSE(membership.active());
  // A join for another reason stays wanted.
  membership.want_join();
  membership.scheduler_is(6, "third");
  EXPECT_TRUE(membership.needs_join());
}

}  // namespace
}  // namespace xce::sched
