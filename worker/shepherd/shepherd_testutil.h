// For the tests of shepherds: a real one, running a real script in a scratch directory. Each test
// waits for records with a deadline, never a fixed time.
#ifndef XCE_WORKER_SHEPHERD_SHEPHERD_TESTUTIL_H_
#define XCE_WORKER_SHEPHERD_SHEPHERD_TESTUTIL_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "worker/shepherd/job_files.h"
#include "worker/shepherd/lease.h"
#include "worker/shepherd/process_tree.h"
#include "worker/shepherd/shepherd.h"

namespace xce::worker {

inline bool eventually(const std::function<bool()>& condition, int seconds = 20) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    usleep(2000);
  }
  return condition();
}

class ShepherdTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = base_dir() + "/shepherd.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    data_ = pattern;
    work_ = data_ + "/work";
    mkdir((data_ + "/jobs").c_str(), 0755);
    mkdir(work_.c_str(), 0755);
    job_dir_ = data_ + "/jobs/17.1";
    mkdir(job_dir_.c_str(), 0755);
    mkfifo((job_dir_ + "/control").c_str(), 0600);
    spec_.job = 17;
    spec_.attempt = 1;
    spec_.name = "test";
    spec_.user = "ann";
    spec_.host = "n1";
    spec_.node_list = "n1";
    spec_.work_dir = work_;
    spec_.kill_wait_ms = 300;
  }

  virtual std::string base_dir() const {
    const char* base = std::getenv("TEST_TMPDIR");
    return base == nullptr ? "/tmp" : base;
  }

  void TearDown() override {
    if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0) {
      kill(pid_, SIGTERM);
      waitpid(pid_, nullptr, 0);
    }
    std::system(("rm -rf '" + data_ + "'").c_str());
  }

  void script(const std::string& text) {
    spec_.has_script = true;
    std::ofstream(job_dir_ + "/script") << text;
    chmod((job_dir_ + "/script").c_str(), 0700);
  }

  void launch() {
    std::ofstream(job_dir_ + "/spec") << encode_spec(spec_);
    const int fd = create_status_file(job_dir_);
    ASSERT_GE(fd, 0);
    pid_ = fork();
    if (pid_ == 0) {
      setsid();
      _exit(shepherd_main(data_, "17.1", fd));
    }
    close(fd);
  }

  Status status() const { return decode_status({17, 1}, read_small_file(job_dir_ + "/status")); }

  StatusStarted started() {
    EXPECT_TRUE(eventually([&] { return status().started.has_value(); }));
    return status().started.value_or(StatusStarted());
  }

  StatusExit ended() {
    const bool in_time = eventually([&] { return status().exit.has_value(); });
    EXPECT_TRUE(in_time);
    if (!in_time) kill(pid_, SIGTERM);  // a test that fails must end, too
    int wait_status = 0;
    EXPECT_EQ(waitpid(pid_, &wait_status, 0), pid_);
    EXPECT_EQ(wait_status, 0);
    pid_ = 0;
    return status().exit.value_or(StatusExit());
  }

  StatusExit run() {
    launch();
    return ended();
  }

  void order(const std::string& line) {
    const int fd = open((job_dir_ + "/control").c_str(), O_WRONLY | O_NONBLOCK);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, (line + "\n").c_str(), line.size() + 1),
              static_cast<ssize_t>(line.size() + 1));
    close(fd);
  }

  std::string output(const std::string& name) const { return read_small_file(work_ + "/" + name); }
  bool exists(const std::string& name) const {
    return access((work_ + "/" + name).c_str(), F_OK) == 0;
  }
  pid_t pid_in(const std::string& name) const {
    return static_cast<pid_t>(std::atoi(output(name).c_str()));
  }

  std::string data_, work_, job_dir_;
  ShepherdSpec spec_;
  pid_t pid_ = 0;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_SHEPHERD_SHEPHERD_TESTUTIL_H_
