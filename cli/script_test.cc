#include "cli/script.h"

#include <gtest/gtest.h>

namespace xce::cli {
namespace {

constexpr size_t kLimit = 1024 * 1024;

std::string refusal(std::string_view bytes, size_t limit = kLimit) {
  return std::string(check_script("job.sh", bytes, limit).message());
}

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(CheckScript, AcceptsScripts) {
  EXPECT_TRUE(check_script("job.sh", "#!/bin/sh\necho hi\n", kLimit).ok());
  EXPECT_TRUE(check_script("job.py", "#! /usr/bin/env python3", kLimit).ok());
}

TEST(CheckScript, RefusesWithAdvice) {
  expect_says(refusal(""), "is empty");
  expect_says(refusal("echo hi\n"), "no #! line");
  expect_says(refusal("echo hi\n"), "#!/bin/sh");
  expect_says(refusal(std::string_view("\x7f"
                                       "ELF\2\1\1\0",
                                       8)),
              "xce submit -- job.sh");
  expect_says(refusal(std::string_view("#!/bin/sh\n\0", 11)), "is a program, not a script");
  expect_says(refusal("#!/bin/sh\r\necho\r\n"), "Windows line ends");
  expect_says(refusal("#!\necho\n"), "names no interpreter");
  expect_says(refusal("#!/bin/sh\n" + std::string(100, '#'), 50), "more than 50 bytes, the limit");
}

TEST(Directives, OnlyTheHeadCounts) {
  const auto read = read_directives("job.sh",
                                    "#!/bin/sh\n"
                                    "# a comment\n"
                                    "#XCE --cpus 2 --name 'my job'\n"
                                    "\n"
                                    "#XCEL is another word\n"
                                    "#XCE\n"
                                    "#XCE --hold # not yet\n"
                                    "echo start\n"
                                    "#XCE --time 5\n");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->lines.size(), 2u);
  EXPECT_EQ(read->lines[0].line, 3);
  EXPECT_EQ(read->lines[0].words, (std::vector<std::string>{"--cpus", "2", "--name", "my job"}));
  EXPECT_EQ(read->lines[1].words, (std::vector<std::string>{"--hold"}));
  EXPECT_EQ(read->ignored, (std::vector<int>{9}));
}

TEST(Directives, AnOpenQuoteNamesItsLine) {
  const auto read = read_directives("job.sh", "#!/bin/sh\n#XCE --name 'x\n");
  ASSERT_FALSE(read.ok());
  expect_says(std::string(read.status().message()), "job.sh:2:");
}

}  // namespace
}  // namespace xce::cli
