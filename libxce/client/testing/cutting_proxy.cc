#include "libxce/client/testing/cutting_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace xce::client {
namespace {

sockaddr_in loopback(uint16_t port) {
  sockaddr_in a;
  std::memset(&a, 0, sizeof a);
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(port);
  return a;
}

void no_delay(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

}  // namespace

CuttingProxy::CuttingProxy(uint16_t master_port) : master_port_(master_port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in a = loopback(0);
  socklen_t length = sizeof a;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&a), length) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&a), &length) != 0) {
    std::perror("cutting proxy");
    std::abort();
  }
  port_ = ntohs(a.sin_port);
  threads_.emplace_back([this] { accept_all(); });
}

CuttingProxy::~CuttingProxy() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  threads_[0].join();  // no thread is added any more
  for (size_t i = 1; i < threads_.size(); ++i) threads_[i].join();
  close(listener_);
}

void CuttingProxy::cut_after(Way way, size_t bytes) {
  was_cut_ = false;
  way_ = static_cast<int>(way);
  left_ = bytes;
  armed_ = true;
}

void CuttingProxy::accept_all() {
  for (;;) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    threads_.emplace_back([this, client] { relay(client); });
  }
}

void CuttingProxy::relay(int client) {
  const int master = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in a = loopback(master_port_);
  bool going = connect(master, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0;
  no_delay(client);
  no_delay(master);
  while (going && !stopping_) {
    pollfd fds[2] = {{client, POLLIN, 0}, {master, POLLIN, 0}};
    if (poll(fds, 2, 20) < 0) break;
    if (fds[0].revents != 0) going = pump(client, master, Way::kToMaster);
    if (going && fds[1].revents != 0) going = pump(master, client, Way::kToClient);
  }
  close(client);
  close(master);
}

bool CuttingProxy::pump(int from, int to, Way way) {
  char buffer[16384];
  ssize_t n = recv(from, buffer, sizeof buffer, 0);
  if (n <= 0) return false;
  const bool cutting = armed_ && way_ == static_cast<int>(way);
  size_t pass = static_cast<size_t>(n);
  bool cut = false;
  if (cutting) {
    cut = pass > left_;
    pass = std::min(pass, left_.load());
    left_ -= pass;
  }
  (way == Way::kToMaster ? to_master_ : to_client_) += pass;
  for (size_t done = 0; done < pass;) {
    const ssize_t sent = ::send(to, buffer + done, pass - done, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    done += static_cast<size_t>(sent);
  }
  if (cut) {
    armed_ = false;
    was_cut_ = true;
  }
  return !cut;
}

}  // namespace xce::client
