#include "bench/limits.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace xce::bench {
namespace {

using Clock = std::chrono::steady_clock;
double since_us(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}
void require(bool good, const char* what) {
  if (good) return;
  perror(what);
  std::exit(1);
}

}  // namespace

double Samples::quantile(double q) {
  if (us.empty()) return 0;
  std::sort(us.begin(), us.end());
  return us[static_cast<size_t>(q * static_cast<double>(us.size() - 1))];
}

namespace {
constexpr int kBlock = 4096;
constexpr int kBlocks = 2048;
}  // namespace

DsyncFile::DsyncFile(const std::string& dir) : path_(dir + "/dsync.tmp"), block_(kBlock, 'x') {
  const int fd = open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  require(fd >= 0, path_.c_str());
  for (int i = 0; i < kBlocks; ++i) require(write(fd, block_.data(), kBlock) == kBlock, "write");
  require(fsync(fd) == 0, "fsync");
  close(fd);
  fd_ = open(path_.c_str(), O_WRONLY | O_DSYNC | O_CLOEXEC);
  require(fd_ >= 0, path_.c_str());
}

DsyncFile::~DsyncFile() {
  close(fd_);
  unlink(path_.c_str());
}

double DsyncFile::write_block() {
  const auto begin = Clock::now();
  require(pwrite(fd_, block_.data(), kBlock, off_t{next_} * kBlock) == kBlock, "pwrite");
  next_ = (next_ + 1) % kBlocks;
  return since_us(begin);
}

Samples spawns(int count) {
  Samples samples;
  char* const args[] = {const_cast<char*>("/bin/true"), nullptr};
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    pid_t pid = 0;
    require(posix_spawn(&pid, args[0], nullptr, nullptr, args, environ) == 0, "posix_spawn");
    waitpid(pid, nullptr, 0);
    samples.add(since_us(begin));
  }
  return samples;
}

Samples round_trips(int count) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t len = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  require(bind(listener, raw, len) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, raw, &len) == 0,
          "listen");
  const int one = 1;
  std::thread echo([&] {
    const int fd = accept(listener, nullptr, nullptr);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    char byte = 0;
    while (read(fd, &byte, 1) == 1)
      if (write(fd, &byte, 1) != 1) break;
    close(fd);
  });
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(connect(fd, raw, len) == 0, "connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  Samples samples;
  char byte = 'x';
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    require(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1, "echo");
    samples.add(since_us(begin));
  }
  close(fd);
  echo.join();
  close(listener);
  return samples;
}

}  // namespace xce::bench
