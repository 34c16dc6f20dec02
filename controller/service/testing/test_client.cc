#include "controller/service/testing/test_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <utility>

#include "libxce/wire/codec.h"

namespace xce::service::testing {
namespace {

using Clock = std::chrono::steady_clock;

int left_ms(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(left);
}

}  // namespace

Message::Message(std::vector<uint64_t> words) : words_(std::move(words)) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 1 << 26;
  reader_ = std::make_unique<capnp::FlatArrayMessageReader>(
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(words_.data()), words_.size()), options);
}

TestClient::TestClient(uint16_t port, int receive_buffer) {
  static std::mt19937_64 random(std::random_device{}());
  client_hi = random();
  client_lo = random();
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer > 0)
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return;
  ::close(fd_);
  fd_ = -1;
}

TestClient::~TestClient() {
  if (fd_ >= 0) ::close(fd_);
}

bool TestClient::send_raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

uint64_t TestClient::send(const std::function<void(wire::Request::Builder)>& fill) {
  capnp::MallocMessageBuilder message;
  auto request = message.initRoot<wire::Request>();
  request.setSeq(++seq_);
  request.setClientIdHi(client_hi);
  request.setClientIdLo(client_lo);
  request.setBirth(birth);
  fill(request);
  std::string frame;
  net::append_frame(wire::flatten(message), &frame);
  return send_raw(frame) ? seq_ : 0;
}

std::unique_ptr<Message> TestClient::receive(int wait_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(wait_ms);
  while (true) {
    auto frame = decoder_.next();
    if (!frame.ok()) return nullptr;
    if (frame->has_value()) return std::make_unique<Message>(*std::move(*frame));
    pollfd wait{fd_, POLLIN, 0};
    if (eof_ || poll(&wait, 1, left_ms(deadline)) <= 0) return nullptr;
    char buffer[65536];
    const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) {
      eof_ = true;
      return nullptr;
    }
    decoder_.feed({buffer, static_cast<size_t>(n)});
  }
}

std::unique_ptr<Message> TestClient::reply(uint64_t seq, int wait_ms) {
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if (!(*it)->is_reply() || (*it)->reply().getSeq() != seq) continue;
    auto found = std::move(*it);
    kept_.erase(it);
    return found;
  }
  const auto deadline = Clock::now() + std::chrono::milliseconds(wait_ms);
  while (auto message = receive(left_ms(deadline))) {
    if (message->is_reply() && message->reply().getSeq() == seq) return message;
    kept_.push_back(std::move(message));
  }
  return nullptr;
}

std::unique_ptr<Message> TestClient::push(int wait_ms) {
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if ((*it)->is_reply()) continue;
    auto found = std::move(*it);
    kept_.erase(it);
    return found;
  }
  const auto deadline = Clock::now() + std::chrono::milliseconds(wait_ms);
  while (auto message = receive(left_ms(deadline))) {
    if (!message->is_reply()) return message;
    kept_.push_back(std::move(message));
  }
  return nullptr;
}

bool TestClient::closed(int wait_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(wait_ms);
  while (!eof_) {
    pollfd wait{fd_, POLLIN, 0};
    if (poll(&wait, 1, left_ms(deadline)) <= 0) return false;
    char buffer[65536];
    eof_ = recv(fd_, buffer, sizeof buffer, 0) <= 0;
  }
  return true;
}

int TestClient::hello(Role role, const std::string& its_name, const std::string& user,
                      uint32_t uid) {
  name = its_name;
  if (!send_preamble()) return -1;
  auto answer = call([&](wire::Request::Builder request) {
    auto hello = request.initOp().initHello();
    hello.setRole(static_cast<wire::Role>(role));
    hello.setName(its_name);
    hello.setUser(user);
    hello.setUid(uid);
  });
  if (answer == nullptr) return -1;
  if (answer->reply().getBody().isHello())
    birth = answer->reply().getBody().getHello().getApplied();
  return answer->reply().getStatus();
}

std::unique_ptr<Message> TestClient::call(const std::function<void(wire::Request::Builder)>& fill,
                                          int wait_ms) {
  const uint64_t seq = send(fill);
  return seq == 0 ? nullptr : reply(seq, wait_ms);
}

std::unique_ptr<Message> TestClient::join(Role role) {
  return call([&](wire::Request::Builder request) {
    request.setOpSeq(++op_seq_);
    request.setLowestUnanswered(op_seq_);
    auto join = request.initOp().initJoin();
    join.setRole(static_cast<wire::Role>(role));
    join.setInstance(7);
    auto host = join.initHost();
    host.setName(name);
    host.setCpus(4);
    host.setMemoryMb(1000);
  });
}

std::unique_ptr<Message> TestClient::submit(const std::string& job_name) {
  return call([&](wire::Request::Builder request) {
    request.setOpSeq(++op_seq_);
    request.setLowestUnanswered(op_seq_);
    auto spec = request.initOp().initJobSubmit();
    spec.setName(job_name);
    spec.setCpus(1);
    spec.setNodes(1);
    spec.initArgs(1).set(0, "true");
  });
}

}  // namespace xce::service::testing
