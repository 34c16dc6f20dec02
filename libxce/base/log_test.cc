// The daemons' log lines as a collector and as a person get them.
#include "libxce/base/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "spdlog/spdlog.h"

namespace xce::log {
namespace {

std::string logged(const std::string& format, const std::string& words) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(init("xce_test", "info", format), "");
  spdlog::info("{}", words);
  spdlog::debug("not this one");
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, JsonLinesAreJsonWhateverTheMessageHolds) {
  std::string words = "he said \"no\\yes\"\n\ttab \x01 \x7f gr\xC3\xBC\xC3\x9F bad \xFF\xC3(";
  words += '\0';
  const std::string line = logged("json", words);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["level"], "info");
  EXPECT_EQ(json["daemon"], "xce_test");
  EXPECT_TRUE(json["pid"].is_number());
  EXPECT_EQ(json["time"].get<std::string>().size(), std::string("2026-11-30T09:31:10.123Z").size());
  const std::string read = json["message"];
  EXPECT_EQ(read.rfind("he said \"no\\yes\"\n\ttab \x01 \x7f gr\xC3\xBC\xC3\x9F bad ", 0), 0u)
      << read;
  EXPECT_EQ(read.back(), '\0');
}

TEST(Log, TextIsForPeople) {
  const std::string line = logged("text", "ready on \"here\"");
  EXPECT_NE(line.find("Z info xce_test: ready on \"here\"\n"), std::string::npos) << line;
}

TEST(Log, AutoIsJsonWhereNoTerminalIs) { EXPECT_EQ(logged("auto", "x").front(), '{'); }

TEST(Log, WrongWordsNameTheirFlag) {
  EXPECT_NE(init("x", "loud", "text").find("--log-level 'loud'"), std::string::npos);
  EXPECT_NE(init("x", "info", "xml").find("--log-format 'xml'"), std::string::npos);
}

}  // namespace
}  // namespace xce::log
