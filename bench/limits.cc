#include "bench/limits.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
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

DsyncFile::DsyncFile(const std::string& dir) : block_(kBlock, 'x') {
  static std::atomic<int> files{0};
  path_ = dir + "/dsync" + std::to_string(++files) + ".tmp";
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

// Writes a block of its own file whenever it is told to.
struct ThreeWriters::Helper {
  explicit Helper(const std::string& dir) : file(dir) {
    require(go >= 0 && done >= 0, "eventfd");
    thread = std::thread([this] {
      for (uint64_t order = 0; read(go, &order, sizeof order) == sizeof order && order == 1;) {
        file.write_block();
        ended = Clock::now();
        require(write(done, &order, sizeof order) == sizeof order, "eventfd");
      }
    });
  }
  ~Helper() {
    tell(2);
    thread.join();
    close(go);
    close(done);
  }
  void tell(uint64_t order) const {
    require(write(go, &order, sizeof order) == sizeof order, "eventfd");
  }
  void wait() const {
    uint64_t order = 0;
    require(read(done, &order, sizeof order) == sizeof order, "eventfd");
  }

  DsyncFile file;
  const int go = eventfd(0, EFD_CLOEXEC);
  const int done = eventfd(0, EFD_CLOEXEC);
  Clock::time_point ended;
  std::thread thread;
};

ThreeWriters::ThreeWriters(const std::string& dir) : own_(dir) {
  for (auto& helper : helpers_) helper = std::make_unique<Helper>(dir);
}

ThreeWriters::~ThreeWriters() = default;

double ThreeWriters::write_block() {
  const auto begin = Clock::now();
  for (const auto& helper : helpers_) helper->tell(1);
  own_.write_block();
  Clock::time_point ends[3] = {Clock::now()};
  for (int i = 0; i < 2; ++i) {
    helpers_[i]->wait();
    ends[i + 1] = helpers_[i]->ended;
  }
  std::sort(ends, ends + 3);
  return std::chrono::duration<double, std::micro>(ends[1] - begin).count();
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
