#include "cli/parse.h"

#include <gtest/gtest.h>

namespace xce::cli {
namespace {

using Words = std::vector<std::string>;

std::string message(const absl::Status& status) { return std::string(status.message()); }

TEST(Duration, EveryForm) {
  const std::pair<const char*, uint32_t> cases[] = {
      {"90", 90},         {"1:30", 90},          {"1:02:03", 3723}, {"10:00", 600}, {"2-3", 183600},
      {"2-3:04", 183840}, {"1-00:00:01", 86401}, {"90s", 90},       {"10m", 600},   {"2h", 7200},
      {"1d", 86400},      {"1h30m", 5400},       {"2H", 7200},
  };
  for (const auto& [text, seconds] : cases) {
    const auto parsed = parse_duration_s(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(*parsed, seconds) << text;
  }
}

TEST(Duration, RefusesNonsenseAndSaysWhatIsRight) {
  for (const char* text : {"", "abc", "1:2:3:4", "10x", "m", "-5", "1-", "1:", ":1", "1.5h", "1h30",
                           "99999999999", " 5"}) {
    EXPECT_FALSE(parse_duration_s(text).ok()) << text;
  }
  EXPECT_NE(message(parse_duration_s("soon").status()).find("10m, 2h"), std::string::npos);
  EXPECT_NE(message(parse_duration_s("0").status()).find("at least one second"), std::string::npos);
  EXPECT_FALSE(parse_duration_s("60000d").ok());
}

TEST(Duration, Milliseconds) {
  EXPECT_EQ(*parse_duration_ms("500ms"), 500);
  EXPECT_EQ(*parse_duration_ms("2"), 2000);
  EXPECT_EQ(*parse_duration_ms("2m"), 120000);
  EXPECT_EQ(*parse_duration_ms("0.2"), 200);
  EXPECT_EQ(*parse_duration_ms("1.25s"), 1250);
  for (const char* text : {"0.0", ".5", "1.", "1.2345", "1.5m", "-1.5"})
    EXPECT_FALSE(parse_duration_ms(text).ok()) << text;
  EXPECT_FALSE(parse_duration_ms("0ms").ok());
  EXPECT_FALSE(parse_duration_ms("ms").ok());
}

TEST(Memory, EveryUnitRoundedUp) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"512", 512},   {"512M", 512}, {"2G", 2048}, {"2g", 2048},    {"2GB", 2048}, {"2GiB", 2048},
      {"1.5G", 1536}, {"300K", 1},   {"1025K", 2}, {"1T", 1048576}, {"0.5G", 512}, {"1500KB", 2},
  };
  for (const auto& [text, mb] : cases) {
    const auto parsed = parse_memory_mb(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(*parsed, mb) << text;
  }
  for (const char* text :
       {"", "G", "0", "-1", "2X", "1.2345G", "512b", "1..5G", "1e3", "999999999999T"}) {
    EXPECT_FALSE(parse_memory_mb(text).ok()) << text;
  }
}

TEST(Array, RangesListsStepsAndLimits) {
  EXPECT_EQ(parse_array("0-3")->indices, (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(parse_array("1,3,5")->indices, (std::vector<uint32_t>{1, 3, 5}));
  EXPECT_EQ(parse_array("0-9:2")->indices, (std::vector<uint32_t>{0, 2, 4, 6, 8}));
  EXPECT_EQ(parse_array("7,0-1")->indices, (std::vector<uint32_t>{0, 1, 7}));
  EXPECT_EQ(parse_array("5")->limit, 0u);
  EXPECT_EQ(parse_array("0-99%4")->limit, 4u);
  EXPECT_EQ(parse_array("0-99%4")->indices.size(), 100u);
  EXPECT_EQ(parse_array("0-99999")->indices.size(), kMaxArrayTasks);
}

TEST(Array, Refusals) {
  for (const char* text : {"", ",", "1,", "a", "3-1", "1-", "-3", "1:2", "0-9:0", "0-9%0", "0-9%",
                           "1,1", "0-5,3", "0-100000", "0-4294967295", "99999999999"}) {
    EXPECT_FALSE(parse_array(text).ok()) << text;
  }
  EXPECT_NE(message(parse_array("3-1").status()).find("ends before it begins"), std::string::npos);
  EXPECT_NE(message(parse_array("0-200000").status()).find("more than 100000 tasks"),
            std::string::npos);
}

TEST(JobRef, JobsAndTasks) {
  EXPECT_EQ(parse_job_ref("17")->id, 17u);
  EXPECT_FALSE(parse_job_ref("17")->indices.has_value());
  EXPECT_EQ(*parse_job_ref("17[3]")->indices, (std::vector<uint32_t>{3}));
  EXPECT_EQ(*parse_job_ref("17_3")->indices, (std::vector<uint32_t>{3}));
  EXPECT_EQ(*parse_job_ref("17[0-2]")->indices, (std::vector<uint32_t>{0, 1, 2}));
  for (const char* text : {"", "0", "x", "17[", "17[]", "17[3", "17_", "-1", "17[1%2]", "1e5",
                           "99999999999999999999"}) {
    EXPECT_FALSE(parse_job_ref(text).ok()) << text;
  }
  EXPECT_EQ(format_job_id(17, 0, 0), "17");
  EXPECT_EQ(format_job_id(20, 17, 3), "17[3]");
}

TEST(Gres, NamesAndCounts) {
  const auto parsed = parse_gres("gpu:2,license");
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ((*parsed)[0], (std::pair<std::string, uint32_t>("gpu", 2)));
  EXPECT_EQ((*parsed)[1], (std::pair<std::string, uint32_t>("license", 1)));
  for (const char* text : {"", ":1", "gpu:0", "gpu:x", "gpu,gpu:2", "a b:1"})
    EXPECT_FALSE(parse_gres(text).ok()) << text;
}

TEST(Signal, NamesAndNumbers) {
  EXPECT_EQ(*parse_signal("TERM"), 15u);
  EXPECT_EQ(*parse_signal("sigusr1"), 10u);
  EXPECT_EQ(*parse_signal("9"), 9u);
  EXPECT_FALSE(parse_signal("0").ok());
  EXPECT_FALSE(parse_signal("65").ok());
  EXPECT_FALSE(parse_signal("FOO").ok());
  EXPECT_EQ(signal_name(9), "SIGKILL");
  EXPECT_EQ(signal_name(44), "signal 44");
  EXPECT_EQ(parse_warning("USR1@30")->before_s, 30u);
  EXPECT_EQ(parse_warning("USR1")->before_s, 60u);
  EXPECT_FALSE(parse_warning("USR1@").ok());
}

TEST(SplitWords, AsAShellWould) {
  EXPECT_EQ(*split_words("  --cpus 2\t--name 'a b' \r"), (Words{"--cpus", "2", "--name", "a b"}));
  EXPECT_EQ(*split_words("a\"b \\\" c\"d e\\ f"), (Words{"ab \" cd", "e f"}));
  EXPECT_EQ(*split_words("--hold # a comment"), (Words{"--hold"}));
  EXPECT_EQ(*split_words("a#b ''"), (Words{"a#b", ""}));
  EXPECT_FALSE(split_words("--name 'oops").ok());
}

TEST(Nearest, ATypoFindsItsWordAndNonsenseFindsNone) {
  const Words known{"--cpus", "--queue", "--memory", "--name"};
  EXPECT_EQ(nearest("--cpu", known), "--cpus");
  EXPECT_EQ(nearest("--quque", known), "--queue");
  EXPECT_EQ(nearest("--frobnicate", known), "");
}

}  // namespace
}  // namespace xce::cli
