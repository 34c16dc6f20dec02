#include "e2e/cluster/proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace xce::e2e {
namespace {

constexpr int kIdleMs = 1000;
constexpr size_t kMaxQueued = 4096;  // chunks; beyond it the sender waits

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int make_socket() { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

void prepare(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(fd, F_SETFL, O_NONBLOCK);
}

}  // namespace

Proxy::Proxy() {
  if (pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) return;
  thread_ = std::thread([this] { run(); });
}

Proxy::~Proxy() {
  change([this] { stopping_ = true; });
  if (thread_.joinable()) thread_.join();
  for (Pair& pair : pairs_) drop(&pair);
  for (Link& link : links_) close(link.listener);
  for (int fd : wake_) close(fd);
}

template <class F>
void Proxy::change(F what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  what();
  if (write(wake_[1], "w", 1) < 0) return;  // full: it wakes anyhow
}

uint16_t Proxy::add_link(int from, int to, uint16_t target) {
  const int fd = make_socket();
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 16) != 0 || getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    if (fd >= 0) close(fd);
    return 0;
  }
  fcntl(fd, F_SETFL, O_NONBLOCK);
  change([&] { links_.push_back(Link{from, to, target, fd}); });
  return ntohs(address.sin_port);
}

void Proxy::set_node(int node, LinkMode mode) {
  const LinkMode to_it = mode == LinkMode::kMute   ? LinkMode::kDeaf
                         : mode == LinkMode::kDeaf ? LinkMode::kMute
                                                   : mode;
  change([&] {
    for (Link& link : links_) {
      if (link.from == node) link.mode = mode;
      if (link.to == node) link.mode = to_it;
    }
  });
}

void Proxy::set_link(int from, int to, LinkMode mode) {
  change([&] {
    for (Link& link : links_)
      if (link.from == from && link.to == to) link.mode = mode;
  });
}

void Proxy::set_delay(milliseconds delay) {
  change([&] { delay_ = delay; });
}

void Proxy::heal() {
  change([&] {
    for (Link& link : links_) link.mode = LinkMode::kOpen;
    delay_ = milliseconds(0);
  });
}

void Proxy::run() {
  std::vector<pollfd> waiting;
  for (;;) {
    int timeout_ms = kIdleMs;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
      turn(&waiting, &timeout_ms);
    }
    poll(waiting.data(), waiting.size(), timeout_ms);
    char woken[64];
    while (read(wake_[0], woken, sizeof woken) > 0) {
    }
  }
}

// Moves whatever can be moved now, and says what to wait for. Every descriptor is simply tried:
// there are only a few.
void Proxy::turn(std::vector<pollfd>* waiting, int* timeout_ms) {
  waiting->assign(1, pollfd{wake_[0], POLLIN, 0});
  for (Link& link : links_) {
    // A handshake needs both ways.
    if (link.mode != LinkMode::kOpen && link.mode != LinkMode::kCut) continue;
    accept_on(&link);
    waiting->push_back({link.listener, POLLIN, 0});
  }
  const Clock::time_point now = Clock::now();
  for (Pair& pair : pairs_) {
    if (pair.link->mode == LinkMode::kCut) pair.broken = true;
    for (int side = 0; side < 2 && !pair.broken; ++side)
      if (pair.passes(side)) pull(&pair, side);
    for (int side = 0; side < 2 && !pair.broken; ++side)
      if (pair.passes(1 - side)) push(&pair, side);
    for (int side = 0; side < 2 && !pair.broken; ++side) {
      pollfd wait{pair.fd[side], 0, 0};
      if (pair.passes(side) && pair.queue[1 - side].size() < kMaxQueued) wait.events |= POLLIN;
      if (pair.passes(1 - side) && !pair.queue[side].empty()) {
        const auto due = pair.queue[side].front().due;
        if (due <= now) wait.events |= POLLOUT;
        const auto left = std::chrono::duration_cast<milliseconds>(due - now).count() + 1;
        if (due > now) *timeout_ms = std::min<int>(*timeout_ms, static_cast<int>(left));
      }
      if (wait.events != 0) waiting->push_back(wait);
    }
  }
  for (auto it = pairs_.begin(); it != pairs_.end();) {
    if (it->broken) drop(&*it);
    it = it->broken ? pairs_.erase(it) : std::next(it);
  }
}

void Proxy::accept_on(Link* link) {
  for (;;) {
    const int in = accept4(link->listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (in < 0) return;
    if (link->mode == LinkMode::kCut) {
      close(in);
      continue;
    }
    const int out = make_socket();
    sockaddr_in address = loopback(link->target);
    // On loopback this answers at once, also when the target is stopped.
    if (out < 0 || connect(out, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      if (out >= 0) close(out);
      close(in);
      continue;
    }
    prepare(in);
    prepare(out);
    pairs_.push_back(Pair{link, {in, out}, {}, false});
  }
}

void Proxy::pull(Pair* pair, int side) {
  std::deque<Chunk>& to = pair->queue[1 - side];
  char buffer[16384];
  while (to.size() < kMaxQueued) {
    const ssize_t n = recv(pair->fd[side], buffer, sizeof buffer, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      pair->broken = true;
      return;
    }
    to.push_back({Clock::now() + delay_, std::string(buffer, static_cast<size_t>(n))});
  }
}

void Proxy::push(Pair* pair, int side) {
  std::deque<Chunk>& from = pair->queue[side];
  while (!from.empty() && from.front().due <= Clock::now()) {
    std::string& bytes = from.front().bytes;
    const ssize_t n = send(pair->fd[side], bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) {
      pair->broken = true;
      return;
    }
    bytes.erase(0, static_cast<size_t>(n));
    if (bytes.empty()) from.pop_front();
  }
}

void Proxy::drop(Pair* pair) {
  for (int fd : pair->fd) close(fd);
}

}  // namespace xce::e2e
