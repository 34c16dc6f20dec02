#include "cli/submit_options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace xce::cli {
namespace {

SubmitOptions parse(std::vector<std::string> words) {
  CLI::App app;
  SubmitOptions options;
  add_submit_options(&app, &options);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return options;
}

std::string refusal(const std::string& script) {
  const auto options = options_of_script("job.sh", script);
  return options.ok() ? "" : std::string(options.status().message());
}

TEST(SubmitOptions, EveryOptionReachesTheSpec) {
  JobSpecHolder holder;
  ASSERT_TRUE(holder
                  .set_options(parse(
                      {"-n",     "sim",         "-q",           "night",     "-c",        "4",
                       "-N",     "2",           "-m",           "2G",        "-t",        "1:00",
                       "--gres", "gpu:2",       "--gres",       "lic",       "--warn",    "USR1@10",
                       "-a",     "1-5%2",       "-p",           "-7",        "-i",        "in",
                       "-o",     "o-%j",        "-e",           "e-%j",      "-D",        "sub",
                       "--hold", "--requeue",   "--exclusive",  "--afterok", "7,8",       "--after",
                       "9[1]",   "--singleton", "--submit-key", "k",         "--comment", "c"}))
                  .ok());
  holder.set_what("#!/bin/sh\n", {"x"});
  holder.set_current_dir("/here");
  const auto made = holder.spec();
  ASSERT_TRUE(made.ok());
  const xce_job_spec_t& spec = **made;
  EXPECT_STREQ(spec.name, "sim");
  EXPECT_STREQ(spec.queue, "night");
  EXPECT_EQ(spec.cpus, 4u);
  EXPECT_EQ(spec.nodes, 2u);
  EXPECT_EQ(spec.memory_mb, 2048u);
  EXPECT_EQ(spec.time_limit_s, 60u);
  ASSERT_EQ(spec.ngres, 2u);
  EXPECT_STREQ(spec.gres[1].name, "lic");
  EXPECT_EQ(spec.warn_signal, 10u);
  EXPECT_EQ(spec.warn_before_s, 10u);
  EXPECT_EQ(spec.narray, 5u);
  EXPECT_EQ(spec.array_limit, 2u);
  EXPECT_EQ(spec.priority, -7);
  EXPECT_STREQ(spec.stdin_path, "in");
  EXPECT_STREQ(spec.stdout_path, "o-%j");
  EXPECT_STREQ(spec.stderr_path, "e-%j");
  EXPECT_STREQ(spec.work_dir, "/here/sub");
  EXPECT_TRUE(spec.hold && spec.requeue && spec.exclusive);
  ASSERT_EQ(spec.ndependencies, 1u);
  EXPECT_EQ(spec.dependencies[0].kind, XCE_DEP_SINGLETON);
  ASSERT_EQ(holder.dependency_refs().size(), 3u);  // found by the cluster before they count
  EXPECT_STREQ(spec.submit_key, "k");
  EXPECT_EQ(spec.nargs, 1u);
  EXPECT_EQ(spec.script_len, 10u);
}

TEST(SubmitOptions, DefaultsAreNotGiven) {
  JobSpecHolder holder;
  ASSERT_TRUE(holder.set_options(parse({})).ok());
  holder.set_what("", {"/bin/ls"});
  holder.set_default_name("/bin/ls");
  const xce_job_spec_t& spec = **holder.spec();
  EXPECT_STREQ(spec.name, "ls");
  EXPECT_EQ(spec.queue, nullptr);
  EXPECT_EQ(spec.stdout_path, nullptr);
  EXPECT_EQ(spec.submit_key, nullptr);
  EXPECT_EQ(spec.script, nullptr);
  EXPECT_EQ(spec.time_limit_s, 0u);
}

TEST(SubmitOptions, TheCommandLineWins) {
  const auto directives = options_of_script(
      "job.sh", "#!/bin/sh\n#XCE --cpus 2 --name a --hold --env A=1\n#XCE -t 10 --gres gpu:1\n");
  ASSERT_TRUE(directives.ok()) << directives.status();
  const SubmitOptions merged =
      merge(parse({"--cpus", "3", "--no-hold", "--env", "A=2"}), *directives);
  EXPECT_EQ(*merged.cpus, "3");
  EXPECT_EQ(*merged.name, "a");
  EXPECT_EQ(*merged.time, "10");
  EXPECT_FALSE(*merged.hold);
  EXPECT_EQ(merged.env, (std::vector<std::string>{"A=1", "A=2"}));
  EXPECT_EQ(merged.gres, (std::vector<std::string>{"gpu:1"}));
}

TEST(SubmitOptions, ABadDirectiveNamesItsLine) {
  EXPECT_NE(refusal("#!/bin/sh\n#XCE --cpus two\n").find("job.sh:2: #XCE --cpus"),
            std::string::npos)
      << refusal("#!/bin/sh\n#XCE --cpus two\n");
  EXPECT_NE(refusal("#!/bin/sh\n\n#XCE --cpu 2\n")
                .find("job.sh:3: #XCE does not know --cpu; did you mean --cpus?"),
            std::string::npos)
      << refusal("#!/bin/sh\n\n#XCE --cpu 2\n");
  EXPECT_NE(refusal("#!/bin/sh\n#XCE --time\n"), "");
}

TEST(SubmitOptions, Environment) {
  const char* here[] = {"A=1", "B=2", "broken", nullptr};
  JobSpecHolder holder;
  ASSERT_TRUE(holder.set_environment(parse({"--env", "B=3", "--env", "C=a b,c"}), here).ok());
  const xce_job_spec_t& spec = **holder.spec();
  ASSERT_EQ(spec.nenv, 3u);
  EXPECT_STREQ(spec.env[0], "A=1");
  EXPECT_STREQ(spec.env[1], "B=3");
  EXPECT_STREQ(spec.env[2], "C=a b,c");
  JobSpecHolder none;
  ASSERT_TRUE(none.set_environment(parse({"--export-none"}), here).ok());
  EXPECT_EQ((*none.spec())->nenv, 0u);
  EXPECT_FALSE(none.set_environment(parse({"--env", "XCE_NOT_THERE"}), here).ok());
}

TEST(SubmitOptions, TooLargeARequestSaysWhatToDo) {
  JobSpecHolder holder;
  holder.set_what("", {"/bin/echo", std::string(5 << 20, 'x')});
  const auto spec = holder.spec();
  ASSERT_FALSE(spec.ok());
  EXPECT_NE(std::string(spec.status().message()).find("--export-none"), std::string::npos);
}

TEST(SubmitOptions, AWarningMustComeWithinTheTimeLimit) {
  JobSpecHolder holder;
  EXPECT_FALSE(holder.set_options(parse({"--time", "10", "--warn", "USR1@30"})).ok());
}

}  // namespace
}  // namespace xce::cli
