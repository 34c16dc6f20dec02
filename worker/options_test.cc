#include "worker/options.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace xce::worker {
namespace {

ParsedOptions parse(std::vector<std::string> args) {
  args.insert(args.begin(), "xcecd");
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

TEST(Options, DefaultsAreTheMachines) {
  unsetenv("XCE_MASTERS");
  const ParsedOptions parsed = parse({});
  ASSERT_TRUE(parsed.run);
  EXPECT_EQ(parsed.options.peers, "localhost:9990");
  EXPECT_EQ(parsed.options.name, own_host_name());
  EXPECT_GE(parsed.options.cpus, 1u);
  EXPECT_GT(parsed.options.memory_mb, 0u);
  EXPECT_FALSE(parsed.options.exit_if_unreachable);
}

TEST(Options, TheEnvironmentNamesControllersAndTheFlagWins) {
  setenv("XCE_MASTERS", "a:1,b:2", 1);
  EXPECT_EQ(parse({}).options.peers, "a:1,b:2");
  EXPECT_EQ(parse({"--peers", "c:3"}).options.peers, "c:3");
  unsetenv("XCE_MASTERS");
}

TEST(Options, Resources) {
  const ParsedOptions parsed =
      parse({"--gres", "gpu:2,license", "--cpus", "8", "--memory-mb", "1000"});
  ASSERT_TRUE(parsed.run);
  EXPECT_EQ(parsed.options.gres, (std::vector<Gres>{{"gpu", 2}, {"license", 1}}));
  EXPECT_EQ(parsed.options.cpus, 8u);
  EXPECT_EQ(parsed.options.memory_mb, 1000u);
}

TEST(Options, MistakesExitWithTwo) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"--nope"},
                                             {"--gres", "gpu:x"},
                                             {"--gres", ":1"},
                                             {"--cpus", "many"},
                                             {"--hello-interval-ms", "1"}}) {
    const ParsedOptions parsed = parse(args);
    EXPECT_FALSE(parsed.run) << args[0];
    EXPECT_EQ(parsed.exit_status, 2) << args[0];
  }
}

TEST(Options, AHostsNameIsOneWord) {
  for (const char* name : {"a b", "a\nb", "a\x7f"}) {
    EXPECT_FALSE(parse({"--name", name}).run);
    EXPECT_EQ(parse({"--name", name}).exit_status, 2);
  }
  EXPECT_TRUE(parse({"--name", "n\xc3\xb6rd-1.example"}).run);
}

TEST(Options, AForeignDirectoryIsKnownByItsEntries) {
  EXPECT_EQ(foreign_entry({}), "");
  EXPECT_EQ(foreign_entry({"lock", "lost+found"}), "");
  EXPECT_EQ(foreign_entry({"spare", "lock", "outbox", "notes"}), "");
  EXPECT_EQ(foreign_entry({"lock", "identity"}), "identity");
  EXPECT_EQ(foreign_entry({"homework"}), "homework");
}

TEST(Options, HelpAndVersionExitWithZero) {
  for (const char* flag : {"--help", "--version"}) {
    const ParsedOptions parsed = parse({flag});
    EXPECT_FALSE(parsed.run);
    EXPECT_EQ(parsed.exit_status, 0);
  }
}

}  // namespace
}  // namespace xce::worker
