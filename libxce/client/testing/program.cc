#include "libxce/client/testing/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace xce::client {

Program::Program(const std::string& path, std::vector<std::string> args) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  args.insert(args.begin(), path);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(ends[1], STDERR_FILENO);
    std::vector<char*> argv;
    argv.reserve(args.size() + 1);
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

Program::~Program() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    wait();
  }
}

std::string Program::said() {
  std::lock_guard<std::mutex> lock(mutex_);
  return said_;
}

bool Program::says(const std::string& words, int seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (said().find(words) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

void Program::signal(int number) { kill(pid_, number); }

int Program::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
  reader_.join();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace xce::client
