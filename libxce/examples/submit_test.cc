// The C example against a scripted controller: it compiles as C, links, and does what it says.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "libxce/client/testing/mock_master.h"

namespace {

std::string run(const std::string& arguments, int* status) {
  const std::string command = std::string(std::getenv("TEST_SRCDIR")) + "/" +
                              std::getenv("TEST_WORKSPACE") + "/libxce/examples/submit " +
                              arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  std::array<char, 256> buffer;
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) out += buffer.data();
  *status = pclose(pipe);
  return out;
}

TEST(Example, SubmitsAndShows) {
  xce::client::MockMaster master([](const xce::client::Seen&) { return xce::client::Answer(); });
  int status = -1;
  EXPECT_EQ(run("127.0.0.1:" + std::to_string(master.port()) + " true", &status),
            "job 42 is in state 0\n");
  EXPECT_EQ(status, 0);
}

TEST(Example, SaysWhatIsWrongWithTheList) {
  int status = 0;
  EXPECT_NE(run("nowhere true", &status).find("'nowhere'"), std::string::npos);
  EXPECT_NE(status, 0);
}

}  // namespace
