#include "libxce/base/trail.h"

#include <gtest/gtest.h>

namespace xce {
namespace {

TEST(Outcomes, AreToldByCandidate) {
  EXPECT_EQ(outcomes_by_candidate("a:1 ECONNREFUSED at 0 ms; b:2 no answer at 9 ms; a:1 "
                                  "ECONNREFUSED at 12 ms; a:1 E_XCE_NOMASTER at 30 ms"),
            "a:1 ECONNREFUSED (2 times), E_XCE_NOMASTER; b:2 no answer");
  EXPECT_EQ(outcomes_by_candidate(""), "");
  EXPECT_EQ(outcomes_by_candidate("a:1 ECONNREFUSED at 0 ms; b:"), "a:1 ECONNREFUSED");
}

TEST(Lines, OfTheSearchForTheControllers) {
  EXPECT_EQ(candidate_line(1, 3, "c2", 9990), "controller candidate 2 of 3: c2:9990");
  EXPECT_EQ(candidate_line(0, 1, "::1", 9990), "controller candidate 1 of 1: [::1]:9990");
  EXPECT_EQ(unreached_line(4, "a:1 ECONNREFUSED at 0 ms; a:1 ECONNREFUSED at 9 ms", true),
            "no controller serves yet (attempt 4): a:1 ECONNREFUSED (2 times); waiting for a "
            "cluster");
  EXPECT_EQ(unreached_line(1, "", false),
            "no controller serves yet (attempt 1): none was tried in time");
}

}  // namespace
}  // namespace xce
