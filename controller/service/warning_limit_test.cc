#include "controller/service/warning_limit.h"

#include <gtest/gtest.h>

namespace xce::service {
namespace {

TEST(WarningLimit, AFloodIsABurstAndACount) {
  WarningLimit limit;
  uint64_t now = 1000000, written = 0, left_out = 0;
  for (int i = 0; i < 100000; ++i, ++now) {  // one a millisecond, 100 s long
    written += limit.admit(now) ? 1 : 0;
    left_out += limit.take_left_out(now);
  }
  left_out += limit.take_left_out(now + WarningLimit::kWindowMs);
  EXPECT_EQ(written + left_out, 100000u) << "every one is written or counted";
  EXPECT_LE(written, 11 * WarningLimit::kBurst);
  EXPECT_GE(written, 9 * WarningLimit::kBurst) << "each window has its burst";
}

TEST(WarningLimit, FewAreAllWritten) {
  WarningLimit limit;
  for (uint64_t now = 0; now < 1000000; now += WarningLimit::kWindowMs / 5) {
    EXPECT_TRUE(limit.admit(now));
    EXPECT_EQ(limit.take_left_out(now), 0u);
  }
}

}  // namespace
}  // namespace xce::service
