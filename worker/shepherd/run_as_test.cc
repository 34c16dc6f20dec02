// Jobs as the user who submitted them; only root can.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "worker/shepherd/shepherd_testutil.h"

namespace xce::worker {
namespace {

class RunAs : public ShepherdTest {
 protected:
  // Others must be able to get there.
  std::string base_dir() const override { return "/tmp"; }
  void SetUp() override {
    ShepherdTest::SetUp();
    if (geteuid() != 0 || chown(work_.c_str(), 65534, 65534) != 0)
      GTEST_SKIP() << "only root can become another user, and only where there are others";
    spec_.run_as = true;
    spec_.uid = 65534;
    spec_.gid = 65534;
    spec_.groups = {65534, 4711};
    ASSERT_EQ(chmod(data_.c_str(), 0711), 0);
    ASSERT_EQ(chown(work_.c_str(), 65534, 65534), 0);
    chmod(job_dir_.c_str(), 0711);
  }
  void own_script(const std::string& text) {
    script(text);
    ASSERT_EQ(chown((job_dir_ + "/script").c_str(), 65534, 65534), 0);
  }
};

TEST_F(RunAs, AJobIsItsUserWithItsGroupsAndNothingElse) {
  own_script(
      "#!/bin/sh\nid -u; id -g; id -G; grep -E '^(Uid|Gid|CapEff|CapPrm)' /proc/self/status\n");
  const StatusExit exit = run();
  ASSERT_EQ(exit.outcome, "COMPLETED") << exit.message;
  const std::string said = output("xce-17.out");
  EXPECT_EQ(said.substr(0, said.find("Uid")), "65534\n65534\n65534 4711\n");
  EXPECT_NE(said.find("Uid:\t65534\t65534\t65534\t65534"), std::string::npos) << said;
  EXPECT_NE(said.find("CapEff:\t0000000000000000"), std::string::npos) << said;
  EXPECT_NE(said.find("CapPrm:\t0000000000000000"), std::string::npos) << said;
  struct stat st;
  ASSERT_EQ(stat((work_ + "/xce-17.out").c_str(), &st), 0);
  EXPECT_EQ(st.st_uid, 65534u);
}

TEST_F(RunAs, RootsFilesAreNotOpenToItsInputAndOutput) {
  const std::string closed = data_ + "/closed";
  std::ofstream(closed) << "secret\n";
  chmod(closed.c_str(), 0600);
  spec_.args = {"cat"};
  spec_.stdout_path = closed;
  EXPECT_NE(run().message.find("cannot write " + closed), std::string::npos);
  EXPECT_EQ(read_small_file(closed), "secret\n");
}

TEST_F(RunAs, NorToItsInput) {
  const std::string closed = data_ + "/closed";
  std::ofstream(closed) << "secret\n";
  chmod(closed.c_str(), 0600);
  spec_.args = {"cat"};
  spec_.stdin_path = closed;
  const StatusExit exit = run();
  EXPECT_NE(exit.message.find("cannot read the input " + closed), std::string::npos);
}

TEST_F(RunAs, ItStillDiesWithItsShepherd) {
  own_script("#!/bin/sh\nwhile :; do sleep 0.01; done\n");
  launch();
  const pid_t job = started().pid;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
  EXPECT_TRUE(eventually([&] { return start_ticks(job) == 0; }));
}

TEST_F(RunAs, ItCannotReachIntoItsShepherdsFiles) {
  own_script(
      "#!/bin/sh\ncat \"$XCE_JOB_MARK/spec\" && exit 1\ntrue >> \"$XCE_JOB_MARK/status\" && exit "
      "2\n"
      "kill -0 $PPID && exit 3\nexit 0\n");
  std::ofstream(job_dir_ + "/spec") << "";
  chmod((job_dir_ + "/spec").c_str(), 0600);
  EXPECT_EQ(run().exit_code, 0);
}

}  // namespace
}  // namespace xce::worker
