// The examples against a scripted controller: they compile, link, and do what they say.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "libxce/client/testing/mock_master.h"
#include "xce/client.h"

namespace {

std::string run(const std::string& program, const std::string& arguments, int* status) {
  const std::string command = std::string(std::getenv("TEST_SRCDIR")) + "/" +
                              std::getenv("TEST_WORKSPACE") + "/libxce/examples/" + program + " " +
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
  EXPECT_EQ(run("submit", "127.0.0.1:" + std::to_string(master.port()) + " true", &status),
            "job 42 is in state 0\n");
  EXPECT_EQ(status, 0);
}

TEST(Example, SaysWhatIsWrongWithTheList) {
  int status = 0;
  EXPECT_NE(run("submit", "nowhere true", &status).find("'nowhere'"), std::string::npos);
  EXPECT_NE(status, 0);
}

TEST(Example, WaitsForTheJobOfItsKeyThroughAFailover) {
  using xce::client::Answer;
  using xce::client::MockMaster;
  using xce::client::Seen;
  using Op = xce::wire::Op;
  int asked = 0;
  MockMaster second([&](const Seen& s) {
    Answer a;
    if (s.which == Op::JOB_SUBMIT) {
      a.status = E_XCE_DUP_JOB;  // an earlier run made it
      a.existing = true;
    }
    if (s.which == Op::JOB_INFO && ++asked > 1) a.job_state = XCE_JOB_COMPLETED;
    return a;
  });
  MockMaster first([](const Seen& s) {
    Answer a;
    if (s.which != Op::HELLO) a.action = Answer::Do::kCut;
    return a;
  });
  int status = -1;
  EXPECT_EQ(run("submit_and_wait",
                "127.0.0.1:" + std::to_string(first.port()) +
                    ",127.0.0.1:" + std::to_string(second.port()) + " key true",
                &status),
            "job 42 ended with exit code 0\n");
  EXPECT_EQ(status, 0);
  EXPECT_EQ(asked, 2);
  for (const Seen& s : second.seen()) {
    if (s.which == Op::JOB_SUBMIT) {
      EXPECT_EQ(s.submit_key, "key");
    }
  }
}

}  // namespace
