// Real shepherds running real scripts: how jobs start, end, and are told to.
#include "worker/shepherd/shepherd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "worker/shepherd/shepherd_testutil.h"

namespace xce::worker {
namespace {

TEST_F(ShepherdTest, RunsAScriptWithArgumentsAndEnvironment) {
  script(
      "#!/bin/sh\necho \"$1 $FRUIT $XCE_JOB_ID $XCE_JOB_NAME $XCE_HOST $XCE_CPUS $XCE_ATTEMPT "
      "$XCE_NODELIST\"\npwd\necho no >&2\n");
  spec_.args = {"one two"};
  spec_.env = {"FRUIT=fig", "XCE_JOB_ID=9"};
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "COMPLETED");
  EXPECT_EQ(exit.exit_code, 0);
  EXPECT_EQ(output("xce-17.out"), "one two fig 17 test n1 1 1 n1\n" + work_ + "\nno\n");
  const StatusStarted start = *status().started;
  EXPECT_EQ(start.stdout_file, work_ + "/xce-17.out");
  EXPECT_EQ(start.boot_id, boot_id());
  EXPECT_GT(start.shepherd_start_ticks, 0u);
}

TEST_F(ShepherdTest, RunsACommandFoundOnThePath) {
  spec_.args = {"sh", "-c", "exit 7"};
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "FAILED");
  EXPECT_EQ(exit.exit_code, 7);
  EXPECT_EQ(exit.exit_signal, 0u);
}

TEST_F(ShepherdTest, SeparateOutputFilesAndInput) {
  std::ofstream(work_ + "/in") << "hello\n";
  script("#!/bin/sh\ncat\necho bad >&2\n");
  spec_.stdin_path = "in";
  spec_.stdout_path = "%x-%j.o";
  spec_.stderr_path = work_ + "/%u.e";
  run();
  EXPECT_EQ(output("test-17.o"), "hello\n");
  EXPECT_EQ(output("ann.e"), "bad\n");
}

TEST_F(ShepherdTest, ALaterAttemptKeepsTheOutputOfTheEarlier) {
  std::ofstream(work_ + "/xce-17.out") << "first\n";
  spec_.attempt = 2;
  spec_.args = {"echo", "second"};
  run();
  EXPECT_EQ(output("xce-17.out"), "first\nsecond\n");
}

TEST_F(ShepherdTest, EndedBySignal) {
  script("#!/bin/sh\nkill -SEGV $$\n");
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "FAILED");
  EXPECT_EQ(exit.exit_code, 128 + SIGSEGV);
  EXPECT_EQ(exit.exit_signal, static_cast<uint32_t>(SIGSEGV));
}

TEST_F(ShepherdTest, UsageIsMeasured) {
  script("#!/bin/sh\ni=0; while [ $i -lt 200000 ]; do i=$((i+1)); done\n");
  const StatusExit exit = run();
  EXPECT_GT(exit.cpu_ms, 0u);
  EXPECT_GT(exit.wall_ms, 0u);
  EXPECT_GT(exit.peak_memory_kb, 100u);
}

TEST_F(ShepherdTest, TimeLimitTermThenKill) {
  script("#!/bin/sh\ntrap 'echo got term' TERM\necho up\nwhile :; do sleep 0.05; done\n");
  spec_.time_limit_s = 1;
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "TIMEOUT");
  EXPECT_EQ(exit.exit_signal, static_cast<uint32_t>(SIGKILL));
  EXPECT_GE(exit.wall_ms, 1200u);
  EXPECT_NE(output("xce-17.out").find("got term"), std::string::npos);
  EXPECT_NE(exit.message.find("1 s"), std::string::npos);
}

TEST_F(ShepherdTest, TheTimeLimitCanBeChanged) {
  script("#!/bin/sh\nwhile :; do sleep 0.01; done\n");
  spec_.time_limit_s = 1000;
  launch();
  started();
  order("limit 1");
  EXPECT_EQ(ended().outcome, "TIMEOUT");
}

TEST_F(ShepherdTest, WarningSignalBeforeTheLimit) {
  script("#!/bin/sh\ntrap 'echo warned; exit 3' USR1\nwhile :; do sleep 0.05; done\n");
  spec_.time_limit_s = 60;
  spec_.warn_signal = SIGUSR1;
  spec_.warn_before_s = 59;
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "FAILED");
  EXPECT_EQ(exit.exit_code, 3);
  EXPECT_NE(output("xce-17.out").find("warned\n"), std::string::npos);
}

TEST_F(ShepherdTest, KillReachesDaemonizedGrandchildren) {
  script(
      "#!/bin/sh\nsetsid sh -c 'trap \"\" TERM; echo $$ > deep; while :; do sleep 0.05; done' "
      ">/dev/null 2>&1 &\n"
      "while :; do sleep 0.05; done\n");
  launch();
  ASSERT_TRUE(eventually([&] { return pid_in("deep") > 0; }));
  const pid_t deep = pid_in("deep");
  order("kill 0");
  const StatusExit exit = ended();
  EXPECT_EQ(exit.outcome, "KILLED");
  EXPECT_EQ(start_ticks(deep), 0u);
}

TEST_F(ShepherdTest, WhatAJobLeavesRunningEndsWithIt) {
  script(
      "#!/bin/sh\nsetsid sh -c 'echo $$ > deep; exec sleep 1000' >/dev/null 2>&1 &\nwhile [ ! -s "
      "deep ]; do sleep 0.02; done\nexit 0\n");
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "COMPLETED");
  ASSERT_GT(pid_in("deep"), 0);
  EXPECT_EQ(start_ticks(pid_in("deep")), 0u);
}

TEST_F(ShepherdTest, AGivenSignalIsJustSent) {
  script(
      "#!/bin/sh\ntrap 'echo usr2 >> got' USR2\necho up > up\nwhile [ ! -e stop ]; do sleep 0.02; "
      "done\nexit 4\n");
  launch();
  ASSERT_TRUE(eventually([&] { return exists("up"); }));
  order("kill " + std::to_string(SIGCONT));
  // The signal goes to the whole tree, the sleeping child included, which is why the shell goes on
  // at once.
  order("kill " + std::to_string(SIGUSR2));
  ASSERT_TRUE(eventually([&] { return exists("got"); }));
  std::ofstream(work_ + "/stop") << "x";
  const StatusExit exit = ended();
  EXPECT_EQ(exit.outcome, "FAILED");
  EXPECT_EQ(exit.exit_code, 4);
}

TEST_F(ShepherdTest, SuspendAndResume) {
  script("#!/bin/sh\nwhile [ ! -e stop ]; do :; done\n");  // no children: a stop between vfork and
                                                           // exec shows as D
  launch();
  const pid_t job = started().pid;
  order("suspend");
  ASSERT_TRUE(eventually([&] { return status().changes.size() == 1; }));
  EXPECT_TRUE(status().changes[0].suspended);
  auto state = [&] {
    const std::string stat = read_small_file("/proc/" + std::to_string(job) + "/stat");
    return stat.empty() ? '?' : stat[stat.rfind(')') + 2];
  };
  EXPECT_TRUE(eventually([&] { return state() == 'T'; }));
  order("resume");
  ASSERT_TRUE(eventually([&] { return status().changes.size() == 2; }));
  EXPECT_FALSE(status().changes[1].suspended);
  std::ofstream(work_ + "/stop") << "x";
  EXPECT_EQ(ended().outcome, "COMPLETED");
}

TEST_F(ShepherdTest, ASuspendedJobCanBeKilled) {
  script("#!/bin/sh\nwhile :; do sleep 0.01; done\n");
  launch();
  started();
  order("suspend");
  order("kill 0");
  EXPECT_EQ(ended().outcome, "KILLED");
}

TEST_F(ShepherdTest, MissingInterpreter) {
  script("#!/no/such/interpreter -x\n");
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "FAILED");
  EXPECT_EQ(exit.exit_code, 127);
  EXPECT_FALSE(status().started);
  EXPECT_NE(exit.message.find("/no/such/interpreter"), std::string::npos);
  EXPECT_NE(exit.message.find("n1"), std::string::npos);
}

TEST_F(ShepherdTest, ScriptWithoutInterpreterLine) {
  script("echo hello\n");
  EXPECT_NE(run().message.find("#! line"), std::string::npos);
}

TEST_F(ShepherdTest, MissingCommand) {
  spec_.args = {"no-such-command-here"};
  const StatusExit exit = run();
  EXPECT_EQ(exit.exit_code, 127);
  EXPECT_NE(exit.message.find("was not found"), std::string::npos);
}

TEST_F(ShepherdTest, MissingWorkDirectory) {
  spec_.args = {"true"};
  spec_.work_dir = work_ + "/none";
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "FAILED");
  EXPECT_NE(exit.message.find(spec_.work_dir), std::string::npos);
}

TEST_F(ShepherdTest, OutputThatCannotBeOpened) {
  spec_.args = {"true"};
  spec_.stdout_path = "none/out";
  const StatusExit exit = run();
  EXPECT_EQ(exit.outcome, "FAILED");
  EXPECT_NE(exit.message.find("cannot write " + work_ + "/none/out"), std::string::npos);
}

TEST_F(ShepherdTest, AnAttemptIsLaunchedOnce) {
  const int fd = create_status_file(job_dir_);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(shepherd_alive(job_dir_));
  EXPECT_EQ(create_status_file(job_dir_), -EEXIST);
  close(fd);
  EXPECT_FALSE(shepherd_alive(job_dir_));
  EXPECT_EQ(create_status_file(job_dir_), -EEXIST);
}

TEST_F(ShepherdTest, AStatusFileOfAnEarlierJobServesAgain) {
  StatusExit old;
  old.outcome = "COMPLETED";
  std::ofstream(job_dir_ + "/status.spare")
      << encode_exit({16, 1}, old) << encode_exit({17, 1}, old);
  spec_.args = {"sh", "-c", "exit 3"};
  EXPECT_EQ(run().exit_code, 3);
  EXPECT_NE(access((job_dir_ + "/status.spare").c_str(), F_OK), 0);
}

TEST_F(ShepherdTest, AKilledShepherdTakesItsJobAlong) {
  script("#!/bin/sh\nwhile :; do sleep 0.01; done\n");
  launch();
  const pid_t job = started().pid;
  EXPECT_TRUE(shepherd_alive(job_dir_));
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
  EXPECT_FALSE(shepherd_alive(job_dir_));
  EXPECT_TRUE(eventually([&] { return start_ticks(job) == 0; }));
  EXPECT_FALSE(status().exit);
}

TEST_F(ShepherdTest, AShepherdAskedToGoEndsItsJobInOrder) {
  script("#!/bin/sh\nwhile :; do sleep 0.01; done\n");
  launch();
  started();
  kill(pid_, SIGTERM);
  EXPECT_EQ(ended().outcome, "KILLED");
}

TEST_F(ShepherdTest, TellsTheWorker) {
  mkfifo((data_ + "/events").c_str(), 0600);
  const int fifo = open((data_ + "/events").c_str(), O_RDWR | O_NONBLOCK);
  spec_.args = {"sleep", "0.2"};
  run();
  char buffer[64] = "";
  EXPECT_GT(read(fifo, buffer, sizeof buffer - 1), 0);
  EXPECT_STREQ(buffer, "17.1\n17.1\n") << "of its start, then of its end";
  close(fifo);
}

// A job that is over at once may have both told as one; both are on disk all the same.
TEST_F(ShepherdTest, AShortJobIsToldOnceOrTwice) {
  mkfifo((data_ + "/events").c_str(), 0600);
  const int fifo = open((data_ + "/events").c_str(), O_RDWR | O_NONBLOCK);
  spec_.args = {"true"};
  EXPECT_EQ(run().outcome, "COMPLETED");
  EXPECT_TRUE(status().started.has_value());
  char buffer[64] = "";
  EXPECT_GT(read(fifo, buffer, sizeof buffer - 1), 0);
  const std::string told = buffer;
  EXPECT_TRUE(told == "17.1\n" || told == "17.1\n17.1\n") << told;
  close(fifo);
}

}  // namespace
}  // namespace xce::worker
