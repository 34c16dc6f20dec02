#include "cli/words.h"

#include <gtest/gtest.h>

namespace xce::cli {
namespace {

TEST(Words, RelativeTime) {
  constexpr int64_t kNow = 1000000000;
  EXPECT_EQ(relative_time(kNow, 0), "-");
  EXPECT_EQ(relative_time(kNow, kNow - 500), "now");
  EXPECT_EQ(relative_time(kNow, kNow - 3000), "3s ago");
  EXPECT_EQ(relative_time(kNow, kNow - 180000), "3m ago");
  EXPECT_EQ(relative_time(kNow, kNow - 7200000), "2h ago");
  EXPECT_EQ(relative_time(kNow, kNow - 4 * 86400000LL), "4d ago");
  EXPECT_EQ(relative_time(kNow, kNow + 300000), "in 5m");
}

TEST(Words, IsoTime) {
  EXPECT_EQ(iso_time(0), "");
  EXPECT_EQ(iso_time(1), "1970-01-01T00:00:00.001Z");
  EXPECT_EQ(iso_time(951782400000), "2000-02-29T00:00:00.000Z");
  EXPECT_EQ(iso_time(1796030000123), "2026-11-30T09:13:20.123Z");
  EXPECT_EQ(iso_time(-1), "1969-12-31T23:59:59.999Z");
}

TEST(Words, Durations) {
  EXPECT_EQ(clock_duration(7000), "0:07");
  EXPECT_EQ(clock_duration(725000), "12:05");
  EXPECT_EQ(clock_duration(3723000), "1:02:03");
  EXPECT_EQ(clock_duration(183845000), "2-03:04:05");
  EXPECT_EQ(long_duration(7), "7 ms");
  EXPECT_EQ(long_duration(1200), "1.2 s");
  EXPECT_EQ(long_duration(2000), "2 s");
  EXPECT_EQ(long_duration(185000), "3 min 5 s");
  EXPECT_EQ(long_duration(7200000), "2 h");
  EXPECT_EQ(long_duration(90 * 3600000LL), "3 d 18 h");
}

TEST(Words, Amounts) {
  EXPECT_EQ(memory_words(512), "512M");
  EXPECT_EQ(memory_words(2048), "2G");
  EXPECT_EQ(memory_words(1536), "1.5G");
  EXPECT_EQ(memory_words(2 * 1024 * 1024), "2T");
  EXPECT_EQ(count_words(1, "job", "jobs"), "1 job");
  EXPECT_EQ(count_words(0, "job", "jobs"), "0 jobs");
}

TEST(Words, ExitCodes) {
  EXPECT_EQ(exit_code_words(0, 0), "0");
  EXPECT_EQ(exit_code_words(3, 0), "3");
  EXPECT_EQ(exit_code_words(137, 9), "137 (killed by SIGKILL)");
  EXPECT_EQ(exit_code_words(127, 0), "127 (command not found)");
  EXPECT_EQ(exit_code_words(143, 0), "143 (as after SIGTERM)");
}

TEST(Words, PrintableKeepsTextAndDropsControl) {
  EXPECT_EQ(printable("caf\u00e9 \u2713"), "caf\u00e9 \u2713");
  EXPECT_EQ(printable("a\x1b[2J\x07\x7f"), "a?[2J??");
  EXPECT_EQ(printable("\xff\xc3"), "??");
  EXPECT_EQ(printable("\xc2\x9b"), "??");  // a control character of one byte in older terminals
}

TEST(Words, Ranges) {
  RangeWriter ranges;
  EXPECT_EQ(ranges.str(), "");
  for (uint32_t n : {0, 1, 2, 3, 7, 9, 10}) ranges.add(n);
  EXPECT_EQ(ranges.str(), "0-3,7,9,10");
}

}  // namespace
}  // namespace xce::cli
