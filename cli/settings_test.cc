#include "cli/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace xce::cli {
namespace {

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override { ::unsetenv("XCE_MASTERS"); }
  void TearDown() override { ::unsetenv("XCE_MASTERS"); }

  std::string file(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(SettingsTest, FlagThenEnvironmentThenFilesThenDefault) {
  const std::string absent = testing::TempDir() + "/absent.toml";
  const std::string silent = file("silent.toml", "other = 1\n");
  const std::string says = file("says.toml", "masters = \"f:1\"\n");
  EXPECT_EQ(find_masters("", {absent, silent})->text, "localhost:9990");
  EXPECT_EQ(find_masters("", {absent, silent})->origin, "the default");
  EXPECT_EQ(find_masters("", {absent, silent, says})->text, "f:1");
  EXPECT_EQ(find_masters("", {absent, says})->origin, says);
  ::setenv("XCE_MASTERS", "e:1", 1);
  EXPECT_EQ(find_masters("", {says})->text, "e:1");
  EXPECT_EQ(find_masters("g:1", {says})->text, "g:1");
}

TEST_F(SettingsTest, ABrokenFileNamesItsLine) {
  const std::string path = file("broken.toml", "a = 1\nmasters = \n");
  const auto found = find_masters("", {path});
  ASSERT_FALSE(found.ok());
  EXPECT_NE(std::string(found.status().message()).find(path + ":2:"), std::string::npos)
      << found.status();
  EXPECT_FALSE(find_masters("", {file("number.toml", "masters = 3\n")}).ok());
}

TEST_F(SettingsTest, FilesFollowXdg) {
  ::setenv("XDG_CONFIG_HOME", "/x", 1);
  EXPECT_EQ(config_files(), (std::vector<std::string>{"/x/xce/config.toml", "/etc/xce/xce.toml"}));
  ::unsetenv("XDG_CONFIG_HOME");
}

}  // namespace
}  // namespace xce::cli
