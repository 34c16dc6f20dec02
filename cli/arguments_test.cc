#include "cli/arguments.h"

#include <gtest/gtest.h>

namespace xce::cli {
namespace {

using Words = std::vector<std::string>;

class ArgumentsTest : public testing::Test {
 protected:
  ArgumentsTest() : registry_(&app_) {
    register_submit(&registry_);
    register_jobs(&registry_);
    register_wait(&registry_);
    register_queues(&registry_);
    app_.add_option("--masters", masters_);
  }

  CLI::App app_{"test", "xce"};
  std::string masters_;
  Registry registry_;
};

TEST_F(ArgumentsTest, AScriptKeepsItsOwnOptions) {
  const auto split =
      split_arguments({"submit", "-c", "2", "--hold", "job.sh", "-c", "3", "--", "x"}, &registry_);
  EXPECT_EQ(split.own, (Words{"submit", "-c", "2", "--hold"}));
  EXPECT_EQ(split.tail.words, (Words{"job.sh", "-c", "3", "--", "x"}));
  EXPECT_FALSE(split.tail.after_dashes);
}

TEST_F(ArgumentsTest, ACommandFollowsDashes) {
  const auto split =
      split_arguments({"--masters", "a:1", "run", "-c2", "--name=x", "--", "ls", "-l"}, &registry_);
  EXPECT_EQ(split.own, (Words{"--masters", "a:1", "run", "-c2", "--name=x"}));
  EXPECT_TRUE(split.tail.after_dashes);
  EXPECT_EQ(split.tail.words, (Words{"ls", "-l"}));
}

TEST_F(ArgumentsTest, GlobalOptionsMayFollowTheCommand) {
  const auto split = split_arguments({"submit", "--masters", "a:1", "job.sh"}, &registry_);
  EXPECT_EQ(split.own, (Words{"submit", "--masters", "a:1"}));
  EXPECT_EQ(split.tail.words, (Words{"job.sh"}));
}

TEST_F(ArgumentsTest, OutputJsonIsAFormatAndOtherOutputsArePaths) {
  auto split = split_arguments({"submit", "--output", "json", "job.sh"}, &registry_);
  EXPECT_TRUE(split.json);
  EXPECT_EQ(split.own, (Words{"submit"}));
  split =
      split_arguments({"submit", "--output", "out.txt", "job.sh", "--output", "json"}, &registry_);
  EXPECT_FALSE(split.json);
  EXPECT_EQ(split.own, (Words{"submit", "--output", "out.txt"}));
}

TEST_F(ArgumentsTest, OtherCommandsTakeEverything) {
  const auto split = split_arguments({"wait", "17", "--timeout", "5"}, &registry_);
  EXPECT_EQ(split.own, (Words{"wait", "17", "--timeout", "5"}));
  EXPECT_TRUE(split.tail.words.empty());
}

TEST_F(ArgumentsTest, UnknownWordsGetAdvice) {
  const auto split = split_arguments({"submit", "--cpu", "2", "job.sh"}, &registry_);
  EXPECT_EQ(unknown_words({"--cpu"}, split.command, &registry_),
            "'xce submit' has no option --cpu; did you mean --cpus?; see 'xce submit --help'");
  EXPECT_EQ(unknown_words({"sumbit"}, nullptr, &registry_),
            "there is no command 'sumbit'; did you mean submit?; see 'xce --help'");
  EXPECT_EQ(unknown_words({}, nullptr, &registry_), "");
}

TEST_F(ArgumentsTest, TheInnermostCommandIsNamed) {
  EXPECT_THROW(app_.parse(Words{"add", "queue"}), CLI::RequiredError);  // from the back: queue add
  EXPECT_EQ(name_of_parsed(&app_), "xce queue add");
  EXPECT_THROW(app_.parse(Words{"ad", "queue"}), CLI::RequiredError);
  EXPECT_EQ(name_of_parsed(&app_), "xce queue");
  EXPECT_EQ(unknown_words({"ad"}, split_arguments({"queue", "ad"}, &registry_).command, &registry_),
            "'xce queue' has no command 'ad'; did you mean add?; see 'xce queue --help'");
}

}  // namespace
}  // namespace xce::cli
