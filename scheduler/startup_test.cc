// xce_scheduler as a process, with no controller there.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A port of this machine at which nobody listens, kept so that nobody will.
class DeadPort {
 public:
  DeadPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  ~DeadPort() { close(fd_); }
  std::string address;

 private:
  int fd_;
};

// A running xce_scheduler and what it says on standard error.
class Program {
 public:
  explicit Program(std::vector<std::string> args) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    args.insert(args.begin(), "scheduler/xce_scheduler");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDERR_FILENO);
      std::vector<char*> argv;
      for (std::string& arg : args) argv.push_back(arg.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    reader_ = std::thread([this, fd = ends[0]] {
      char buffer[4096];
      for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) {
        std::lock_guard<std::mutex> lock(mutex_);
        said_.append(buffer, n);
      }
      close(fd);
    });
  }
  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait();
    }
  }
  std::string said() {
    std::lock_guard<std::mutex> lock(mutex_);
    return said_;
  }
  bool says(const std::string& words, int seconds = 20) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (said().find(words) == std::string::npos) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  void signal(int number) { kill(pid_, number); }
  int wait() {  // the exit code
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    reader_.join();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  std::thread reader_;
  std::mutex mutex_;
  std::string said_;
};

TEST(Startup, WaitsForAClusterAndTellsEachCandidate) {
  DeadPort one, two;
  Program scheduler({"--peers", "a=" + one.address + ",b=" + two.address});
  ASSERT_TRUE(scheduler.says("no controller serves yet (try 2")) << scheduler.said();
  EXPECT_THAT(scheduler.said(), HasSubstr(one.address + " ECONNREFUSED"));
  EXPECT_THAT(scheduler.said(), HasSubstr(two.address + " ECONNREFUSED"));
  scheduler.signal(SIGTERM);
  EXPECT_EQ(scheduler.wait(), 0);
  EXPECT_THAT(scheduler.said(), Not(HasSubstr("could not")));
}

// A1.5: one controller is the list of one, shown by the same lines.
TEST(Startup, OneCandidateIsTheSamePath) {
  DeadPort one, two;
  Program single({"--peers", one.address});
  ASSERT_TRUE(single.says("no controller serves yet")) << single.said();
  EXPECT_THAT(single.said(), HasSubstr("controller candidate 1: " + one.address));
  EXPECT_THAT(single.said(), Not(HasSubstr("candidate 2")));
  Program both({"--peers", one.address + "," + two.address});
  ASSERT_TRUE(both.says("no controller serves yet")) << both.said();
  EXPECT_THAT(both.said(), HasSubstr("controller candidate 1: " + one.address));
  EXPECT_THAT(both.said(), HasSubstr("controller candidate 2: " + two.address));
}

// A6.2
TEST(Startup, AMalformedCandidateIsNamed) {
  Program scheduler({"--peers", "a=127.0.0.1:9990,b=127.0.0.1:ninety"});
  EXPECT_EQ(scheduler.wait(), 2);
  EXPECT_THAT(scheduler.said(), AllOf(HasSubstr("candidate 2"), HasSubstr("127.0.0.1:ninety")));
}

TEST(Startup, GivesUpWhenAskedTo) {
  DeadPort one, two;
  Program scheduler({"--peers", "a=" + one.address + ",b=" + two.address, "--exit-if-unreachable",
                     "--start-timeout-s", "1"});
  EXPECT_EQ(scheduler.wait(), 1);
  EXPECT_THAT(scheduler.said(), HasSubstr("could not join the cluster within 1 s"));
  EXPECT_THAT(scheduler.said(), HasSubstr("a=" + one.address + ",b=" + two.address));
}

TEST(Sim, SaysWhatIsWrongWithAFile) {
  Program missing({"--sim", "/nonexistent.swf"});
  EXPECT_EQ(missing.wait(), 1);
  EXPECT_THAT(missing.said(), HasSubstr("cannot read /nonexistent.swf: No such file"));
  Program no_trace({"--sim", "scheduler/xce_scheduler"});
  EXPECT_EQ(no_trace.wait(), 1);
  EXPECT_THAT(no_trace.said(), HasSubstr("scheduler/xce_scheduler line 1:"));
  Program no_policy({"--sim", "x", "--policy", "fifo"});
  EXPECT_EQ(no_policy.wait(), 2);
  EXPECT_THAT(no_policy.said(), HasSubstr("fifo not in {fcfs,easy,conservative}"));
}

}  // namespace
