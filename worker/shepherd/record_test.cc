#include "worker/shepherd/record.h"

#include <gtest/gtest.h>

#include "worker/shepherd/job_files.h"

namespace xce::worker {
namespace {

TEST(Record, ChecksumIsCastagnoli) { EXPECT_EQ(crc32c("123456789"), 0xE3069283u); }

TEST(Record, FieldsSurvive) {
  Record r;
  r.add("name", std::string_view("a\0b\n", 4));
  r.add("n", int64_t{-5});
  r.add("arg", "x");
  r.add("arg", "");
  std::vector<Record> back;
  const std::string bytes = r.encode();
  ASSERT_EQ(decode_records(bytes, &back), bytes.size());
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].text("name"), std::string_view("a\0b\n", 4));
  EXPECT_EQ(back[0].number("n"), -5);
  EXPECT_EQ(back[0].list("arg"), (std::vector<std::string>{"x", ""}));
  EXPECT_EQ(back[0].text("absent"), "");
}

// Whatever a crash leaves of the last record, the earlier ones are read and nothing else is.
TEST(Record, TornTailIsCutAtEveryByte) {
  Record first, second;
  first.add("k", "one");
  second.add("k", "two");
  const std::string one = first.encode(), both = one + second.encode();
  for (size_t n = 0; n < both.size(); ++n) {
    std::vector<Record> back;
    const size_t whole = decode_records(both.substr(0, n), &back);
    EXPECT_EQ(whole, n >= one.size() ? one.size() : 0) << n;
    EXPECT_EQ(back.size(), n >= one.size() ? 1u : 0u) << n;
  }
  std::vector<Record> back;
  EXPECT_EQ(decode_records(both + std::string(4096, '\0'), &back),
            both.size());  // a preallocated file
  EXPECT_EQ(back.size(), 2u);
}

TEST(Record, DamageIsNoticed) {
  Record r;
  r.add("k", "value");
  const std::string good = r.encode();
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 0x20;
    std::vector<Record> back;
    decode_records(bad, &back);
    EXPECT_TRUE(back.empty()) << i;
  }
}

TEST(JobFiles, SpecSurvives) {
  ShepherdSpec spec;
  spec.job = 17;
  spec.attempt = 3;
  spec.array = 15;
  spec.array_index = 2;
  spec.has_script = true;
  spec.args = {"a", "", "c d"};
  spec.env = {"K=v\nw"};
  spec.work_dir = "/tmp";
  spec.time_limit_s = 60;
  ShepherdSpec back;
  ASSERT_TRUE(decode_spec(encode_spec(spec), &back));
  EXPECT_EQ(back.job, 17u);
  EXPECT_EQ(back.attempt, 3u);
  EXPECT_EQ(back.args, spec.args);
  EXPECT_EQ(back.env, spec.env);
  EXPECT_TRUE(back.has_script);
  EXPECT_EQ(back.time_limit_s, 60u);
  EXPECT_FALSE(decode_spec("", &back));
}

TEST(JobFiles, RecordsOfAnotherAttemptAreIgnored) {
  StatusExit exit;
  exit.outcome = "COMPLETED";
  const std::string bytes = encode_change({17, 2}, {true, 5}) + encode_exit({17, 1}, exit);
  EXPECT_FALSE(decode_status({17, 2}, bytes).exit);
  EXPECT_EQ(decode_status({17, 2}, bytes).changes.size(), 1u);
  EXPECT_TRUE(decode_status({17, 1}, bytes).exit);
}

TEST(JobFiles, OutputPatterns) {
  ShepherdSpec spec;
  spec.job = 17;
  spec.name = "a/b";
  spec.user = "ann";
  spec.work_dir = "/w";
  EXPECT_EQ(output_path(spec, ""), "/w/xce-17.out");
  EXPECT_EQ(output_path(spec, "%x.%u.%j.%%.%q%"), "/w/a_b.ann.17.%.%q%");
  EXPECT_EQ(output_path(spec, "/abs/%A_%a"), "/abs/17_0");
  spec.array = 15;
  spec.array_index = 2;
  EXPECT_EQ(output_path(spec, ""), "/w/xce-15_2.out");
}

TEST(JobFiles, DirNames) {
  uint64_t job;
  uint32_t attempt;
  ASSERT_TRUE(parse_dir_name(dir_name(17, 2), &job, &attempt));
  EXPECT_EQ(job, 17u);
  EXPECT_EQ(attempt, 2u);
  for (const char* bad : {"", ".", "17", "17.", ".2", "17.x", "x.2", "17.2.3", "17.-2"}) {
    EXPECT_FALSE(parse_dir_name(bad, &job, &attempt)) << bad;
  }
}

}  // namespace
}  // namespace xce::worker
