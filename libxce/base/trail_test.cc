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

}  // namespace
}  // namespace xce
