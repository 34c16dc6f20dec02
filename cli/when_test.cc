#include "cli/when.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

namespace xce::cli {
namespace {

constexpr int64_t kNow = 1764505868000;       // 2025-11-30 12:31:08 UTC
constexpr int64_t kMidnight = 1764457200000;  // in UTC+1 (23:00 UTC the day before)
constexpr int64_t kHour = 3600 * 1000;

class When : public testing::Test {
 protected:
  When() {
    ::setenv("TZ", "XYZ-1", 1);  // one hour east
    ::tzset();
  }
  int64_t when(const char* text) {
    const auto got = parse_when(text, kNow);
    return got.ok() ? *got : -1;
  }
};

TEST_F(When, Ago) {
  EXPECT_EQ(when("now"), kNow);
  EXPECT_EQ(when("2h"), kNow - 2 * kHour);
  EXPECT_EQ(when("1d"), kNow - 24 * kHour);
  EXPECT_EQ(when("1h30m"), kNow - kHour - kHour / 2);
}

TEST_F(When, InLocalTime) {
  EXPECT_EQ(when("today"), kMidnight);
  EXPECT_EQ(when("yesterday"), kMidnight - 24 * kHour);
  EXPECT_EQ(when("2:30"), kMidnight + 2 * kHour + kHour / 2);
  EXPECT_EQ(when("02:30:05"), kMidnight + 2 * kHour + kHour / 2 + 5000);
  EXPECT_EQ(when("2025-11-30"), kMidnight);
  EXPECT_EQ(when("2025-11-30 01:00"), kMidnight + kHour);
  EXPECT_EQ(when("2025-11-30T01:00:05"), kMidnight + kHour + 5000);
}

TEST_F(When, InUtc) {
  EXPECT_EQ(when("2025-11-30T12:31:08Z"), kNow);
  EXPECT_EQ(when("2025-11-30Z"), kMidnight + kHour);
}

TEST_F(When, WhatIsNoTime) {
  for (const char* text : {"", "soon", "90", "25:00", "12:61", "2025-13-01", "2025-11-30x",
                           "2025-11-30 1", "1:2:3:4", "xd"})
    EXPECT_EQ(when(text), -1) << text;
  EXPECT_EQ(parse_when("soon", kNow).status().message(),
            "'soon' is no time: write 2h (ago), today, yesterday, 14:30, 2026-11-30 or "
            "'2026-11-30 14:30'");
}

}  // namespace
}  // namespace xce::cli
