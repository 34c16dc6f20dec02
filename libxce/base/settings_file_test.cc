#include "libxce/base/settings_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>
#include <vector>

namespace xce {
namespace {

class SettingsFileTest : public testing::Test {
 protected:
  SettingsFileTest() : app_("", "xcecd") {
    app_.add_option("--peers", peers_)->envname("XCE_TEST_MASTERS");
    app_.add_option("--data-dir", data_dir_);
    app_.add_option("--cpus", cpus_);
    app_.add_option("--dial", dial_);
    app_.add_flag("--limit-cpus", limit_cpus_);
    use_settings_file(&app_, "worker", Masters::kArePeers);
  }
  ~SettingsFileTest() override { ::unsetenv("XCE_TEST_MASTERS"); }
  // Parses the flags with such a file; what is wrong, or "".
  std::string parse(const std::string& file, std::vector<std::string> flags = {}) {
    const std::string path = testing::TempDir() + "/xce-" + std::to_string(::getpid()) + ".toml";
    std::ofstream(path) << file;
    flags.push_back("--config=" + path);
    try {
      app_.parse(flags);
    } catch (const CLI::ParseError& error) {
      ::unlink(path.c_str());
      return error.what();
    }
    ::unlink(path.c_str());
    return "";
  }

  CLI::App app_;
  std::string peers_, data_dir_;
  int cpus_ = 0;
  std::vector<std::string> dial_;
  bool limit_cpus_ = false;
};

TEST_F(SettingsFileTest, ItsTableGivesFlags) {
  EXPECT_EQ(parse("masters = 'a:1,b:2'\n[controller]\nid = 3\n[worker]\ndata_dir = '/d'\ncpus = 4\n"
                  "limit-cpus = true\ndial = ['1=a:1', '2=b:2']\n"),
            "");
  EXPECT_EQ(peers_, "a:1,b:2");
  EXPECT_EQ(data_dir_, "/d");
  EXPECT_EQ(cpus_, 4);
  EXPECT_TRUE(limit_cpus_);
  EXPECT_EQ(dial_, (std::vector<std::string>{"1=a:1", "2=b:2"}));
}

TEST_F(SettingsFileTest, FlagsGoFirstThenTheEnvironmentThenTheTableThenMasters) {
  ::setenv("XCE_TEST_MASTERS", "env:1", 1);
  EXPECT_EQ(parse("masters = 'top:1'\n[worker]\npeers = 'table:1'\ncpus = 4\n", {"--cpus=8"}), "");
  EXPECT_EQ(peers_, "env:1");
  EXPECT_EQ(cpus_, 8);
}

TEST_F(SettingsFileTest, TheTableGoesBeforeMasters) {
  EXPECT_EQ(parse("masters = 'top:1'\n[worker]\npeers = 'table:1'\n"), "");
  EXPECT_EQ(peers_, "table:1");
}

TEST_F(SettingsFileTest, MistakesAreNamedWithTheFileAndTheWayOut) {
  using testing::HasSubstr;
  EXPECT_THAT(parse("[worker]\ncpu = 4\n"),
              HasSubstr("[worker] has no setting 'cpu' (xcecd --help lists its flags)"));
  EXPECT_THAT(parse("[worker]\n\ncpus = \n"), HasSubstr(".toml: line 3: "));
  EXPECT_THAT(parse("worker = 1\n"), HasSubstr("worker must be a table"));
  EXPECT_THAT(parse("[worker]\ncpus = {}\n"), HasSubstr("cpus must be a text, a number"));
  EXPECT_THAT(parse("[worker]\ncpus = 'many'\n"), HasSubstr("many"));
}

TEST_F(SettingsFileTest, AFileThatWasNamedMustBeThere) {
  EXPECT_THROW(app_.parse(std::vector<std::string>{"--config=/nowhere/xce.toml"}), CLI::ParseError);
}

}  // namespace
}  // namespace xce
