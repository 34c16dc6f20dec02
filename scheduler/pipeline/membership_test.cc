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

}  // namespace
}  // namespace xce::sched
