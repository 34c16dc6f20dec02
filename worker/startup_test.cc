// xcecd as a process, with no controller there.
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
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

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

// A running xcecd and what it says on standard error.
class Program {
 public:
  explicit Program(std::vector<std::string> args) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    args.insert(args.begin(), "worker/xcecd");
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

std::string fresh_dir() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string pattern = std::string(base == nullptr ? "/tmp" : base) + "/startup.XXXXXX";
  return mkdtemp(pattern.data()) == nullptr ? "" : pattern;
}

TEST(Startup, WaitsForAClusterAndTellsEachCandidate) {
  DeadPort one, two;
  Program worker({"--peers", "a=" + one.address + ",b=" + two.address, "--name", "n1", "--data-dir",
                  fresh_dir(), "--call-deadline-ms", "300", "--hello-interval-ms", "50"});
  ASSERT_TRUE(worker.says("no controller serves yet")) << worker.said();
  ASSERT_TRUE(worker.says("no controller answers (attempt 2)")) << worker.said();
  EXPECT_THAT(worker.said(), HasSubstr("waiting for a cluster"));
  EXPECT_THAT(worker.said(), HasSubstr("controller candidate 1 of 2: " + one.address));
  EXPECT_THAT(worker.said(), HasSubstr(one.address + " ECONNREFUSED"));
  EXPECT_THAT(worker.said(), HasSubstr(two.address + " ECONNREFUSED"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST(Startup, OneControllerIsTheListOfOne) {
  DeadPort one;
  Program worker({"--peers", one.address, "--name", "n1", "--data-dir", fresh_dir(),
                  "--call-deadline-ms", "300"});
  ASSERT_TRUE(worker.says("no controller serves yet")) << worker.said();
  EXPECT_THAT(worker.said(), HasSubstr("controller candidate 1 of 1: " + one.address));
  EXPECT_THAT(worker.said(), HasSubstr(one.address + " ECONNREFUSED"));
}

TEST(Startup, GivesUpWhenAskedTo) {
  DeadPort one, two;
  Program worker({"--peers", one.address + "," + two.address, "--name", "n1", "--data-dir",
                  fresh_dir(), "--call-deadline-ms", "300", "--exit-if-unreachable"});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.said(), HasSubstr(one.address + " ECONNREFUSED"));
  EXPECT_THAT(worker.said(), HasSubstr(two.address + " ECONNREFUSED"));
  EXPECT_THAT(worker.said(), Not(HasSubstr("waiting")));
}

TEST(Startup, ABadEntryIsNamed) {
  Program worker(
      {"--peers", "a=127.0.0.1:1,b=127.0.0.1:none", "--name", "n1", "--data-dir", fresh_dir()});
  EXPECT_EQ(worker.wait(), 2);
  EXPECT_THAT(worker.said(), HasSubstr("b=127.0.0.1:none"));
}

}  // namespace
