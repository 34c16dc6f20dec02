#include "controller/service/connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace xce::service {
namespace {

constexpr size_t kReadBuffer = 64 * 1024;
// A subscriber whose machine is gone without a word: found by what it does not acknowledge, or,
// when there is nothing to acknowledge, by the kernel's probes.
constexpr unsigned kUserTimeoutMs = 20000;
constexpr unsigned kKeepAliveS = 10;
constexpr int kKeepAliveAgainS = 5;
// One buffer for all connections of the thread: what is read is taken in before the next read.
thread_local char read_buffer[kReadBuffer];

}  // namespace

Connection::Connection(uv_loop_t* loop, ConnectionOwner* owner, const Limits* limits,
                       push::ConnId id, std::shared_ptr<net::TlsSession> tls)
    : loop_(loop), owner_(owner), limits_(limits), id_(id), tls_(std::move(tls)) {
  uv_tcp_init(loop, &tcp_);
  tcp_.data = this;
  phase_since_ms_ = uv_now(loop);
}

int Connection::accept(uv_stream_t* server) {
  int rc = uv_accept(server, stream());
  if (rc != 0) return rc;
  uv_tcp_nodelay(&tcp_, 1);
  uv_tcp_keepalive(&tcp_, 1, kKeepAliveS);
  uv_os_fd_t fd = -1;
  if (uv_fileno(reinterpret_cast<uv_handle_t*>(&tcp_), &fd) == 0) {
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof kUserTimeoutMs);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAliveAgainS, sizeof kKeepAliveAgainS);
  }
  sockaddr_storage storage;
  int length = sizeof storage;
  rc = uv_tcp_getpeername(&tcp_, reinterpret_cast<sockaddr*>(&storage), &length);
  if (rc != 0) return rc;
  char name[INET6_ADDRSTRLEN] = "?";
  uv_ip_name(reinterpret_cast<sockaddr*>(&storage), name, sizeof name);
  address_ = name;
  loopback_ = address_ == "::1" || address_.compare(0, 4, "127.") == 0;
  return uv_read_start(stream(), on_alloc, on_read);
}

void Connection::on_alloc(uv_handle_t*, size_t, uv_buf_t* buf) {
  *buf = uv_buf_init(read_buffer, kReadBuffer);
}

void Connection::on_read(uv_stream_t* stream, ssize_t n, const uv_buf_t* buf) {
  auto* self = static_cast<Connection*>(stream->data);
  if (n == 0) return;
  if (n < 0) {
    self->close();
    return;
  }
  self->received({buf->base, static_cast<size_t>(n)});
}

void Connection::received(std::string_view bytes) {
  if (!reading()) return;  // last words are under way: what still comes is ignored
  const bool first = first_;
  first_ = false;
  if (tls_ == nullptr) {
    if (first && net::looks_like_tls(bytes))
      owner_->on_bad_input(this, "it speaks TLS, but this controller has no --tls-cert");
    else
      received_plain(bytes);
    return;
  }
  if (first && bytes.compare(0, 4, std::string_view(net::kClientPreamble, 4)) == 0) {
    owner_->on_bad_input(this,
                         "it does not speak TLS, which this controller asks for: give it "
                         "--tls-ca, --tls-cert and --tls-key");
    return;
  }
  std::string plain;
  const absl::Status status = tls_->feed(bytes, &plain);
  if (!status.ok()) {
    end_with_alert(std::string(status.message()));
    return;
  }
  if (tls_->has_output()) flush();
  if (!plain.empty() && reading()) received_plain(plain);
}

// The other side shall read why TLS came to its end.
void Connection::end_with_alert(const std::string& why) {
  if (phase_ == Phase::kPreamble) {
    owner_->on_complaint(absl::StrCat("connection ", id_, " from ", address_, " closed: ", why));
    close_after_flush();
  } else {
    owner_->on_bad_input(this, why);
  }
}

// Turns what is queued into ciphertext; the count of unsent bytes follows.
void Connection::seal() {
  if (tls_ == nullptr) return;
  if (!out_.empty()) tls_->write(out_);
  std::string sealed = tls_->take_output();
  flow_->bytes += static_cast<int64_t>(sealed.size()) - static_cast<int64_t>(out_.size());
  out_ = std::move(sealed);
}

void Connection::received_plain(std::string_view bytes) {
  if (phase_ == Phase::kPreamble) {
    received_preamble(bytes);
    return;
  }
  decoder_.feed(bytes);
  take_frames();
}

void Connection::received_preamble(std::string_view bytes) {
  preamble_.append(bytes.data(), bytes.size());
  switch (net::classify_preamble(preamble_)) {
    case net::Preamble::kIncomplete: return;
    case net::Preamble::kGarbage: owner_->on_bad_input(this, "not the XCE protocol"); return;
    case net::Preamble::kPeer:
      if (tls_ == nullptr || tls_->peer().role == Role::kController)
        hand_over_to_peers();
      else
        owner_->on_bad_input(this, "a controller's preamble with the certificate of " +
                                       net::to_string(tls_->peer()));
      return;
    case net::Preamble::kClient: break;
  }
  phase_ = Phase::kHello;
  phase_since_ms_ = uv_now(loop_);
  decoder_.feed(std::string_view(preamble_).substr(net::kPreambleSize));
  preamble_.clear();
  take_frames();
}

void Connection::take_frames() {
  while (reading()) {
    auto frame = decoder_.next();
    if (!frame.ok()) {
      owner_->on_bad_input(this, std::string(frame.status().message()));
      return;
    }
    if (!frame->has_value()) break;
    frame_since_ms_ = 0;
    owner_->on_frame(this, **frame);
  }
  if (decoder_.pending() == 0)
    frame_since_ms_ = 0;
  else if (frame_since_ms_ == 0)
    frame_since_ms_ = uv_now(loop_);
}

void Connection::hand_over_to_peers() {
  uv_read_stop(stream());
  uv_os_fd_t fd = -1;
  const int copy = uv_fileno(reinterpret_cast<uv_handle_t*>(&tcp_), &fd) == 0
                       ? fcntl(fd, F_DUPFD_CLOEXEC, 0)
                       : -1;
  std::string read = std::move(preamble_);
  preamble_.clear();
  // Our part of the handshake is on its way: the other side has answered it.
  std::shared_ptr<net::TlsSession> tls = std::move(tls_);
  close();
  if (copy < 0)
    owner_->on_complaint(
        absl::StrCat("a peer's connection could not be taken over: ", std::strerror(errno)));
  else
    owner_->on_peer(copy, std::move(read), std::move(tls));
}

void Connection::open(std::shared_ptr<const Identity> who) {
  who_ = std::move(who);
  if (phase_ != Phase::kHello) return;
  phase_ = Phase::kOpen;
  decoder_.set_max_payload(net::kMaxFrame);
}

void Connection::send(std::string_view payload) {
  if (phase_ >= Phase::kLastWords) return;
  const size_t before = out_.size();
  net::append_frame(payload, &out_);
  flow_->bytes += static_cast<int64_t>(out_.size() - before);
  if (static_cast<int64_t>(out_.size() + writing_.size()) <= limits_->output_bytes) return;
  owner_->on_complaint(absl::StrCat("connection ", id_, " from ", address_,
                                    " does not read what it asked for (",
                                    out_.size() + writing_.size(), " bytes wait): closed"));
  close();
}

void Connection::flush() {
  if (closing() || !writing_.empty()) return;
  seal();
  if (!out_.empty()) {
    uv_buf_t buf = uv_buf_init(out_.data(), static_cast<unsigned>(out_.size()));
    const int n = uv_try_write(stream(), &buf, 1);
    if (n < 0 && n != UV_EAGAIN) {
      close();
      return;
    }
    const size_t sent = n > 0 ? static_cast<size_t>(n) : 0;
    written(sent);
    if (sent == out_.size()) {
      out_.clear();
    } else {
      writing_ = out_.substr(sent);
      out_.clear();
      buf = uv_buf_init(writing_.data(), static_cast<unsigned>(writing_.size()));
      write_.data = this;
      if (uv_write(&write_, stream(), &buf, 1, on_write) != 0) close();
      return;
    }
  }
  if (phase_ == Phase::kLastWords && out_.empty()) {
    shutdown_.data = this;  // then wait for the other side to close, or for the linger deadline
    if (uv_is_writable(stream())) uv_shutdown(&shutdown_, stream(), [](uv_shutdown_t*, int) {});
  }
}

void Connection::written(size_t bytes) {
  flow_->bytes -= static_cast<int64_t>(bytes);
  if (flow_->bytes.load() < limits_->low_water_bytes && flow_->blocked.exchange(false))
    owner_->on_drained();
}

void Connection::on_write(uv_write_t* write, int status) {
  auto* self = static_cast<Connection*>(write->data);
  if (self->closing()) return;
  if (status != 0) {
    self->close();
    return;
  }
  self->written(self->writing_.size());
  self->writing_.clear();
  self->flush();
}

void Connection::close_after_flush() {
  if (phase_ >= Phase::kLastWords) return;
  phase_ = Phase::kLastWords;
  phase_since_ms_ = uv_now(loop_);
  flush();
}

void Connection::close() {
  if (closing()) return;
  phase_ = Phase::kClosing;
  uv_close(reinterpret_cast<uv_handle_t*>(&tcp_), on_handle_closed);
}

void Connection::on_handle_closed(uv_handle_t* handle) {
  auto* self = static_cast<Connection*>(handle->data);
  self->owner_->on_closed(self);
}

const char* Connection::check_deadlines(uint64_t now_ms) {
  const char* why = nullptr;
  if (phase_ == Phase::kPreamble && now_ms - phase_since_ms_ > limits_->preamble_ms)
    why = "said nothing";
  if (phase_ == Phase::kHello && now_ms - phase_since_ms_ > limits_->hello_ms)
    why = "did not say hello";
  if (reading() && frame_since_ms_ != 0 && now_ms - frame_since_ms_ > limits_->frame_ms)
    why = "did not finish its request";
  if (why != nullptr ||
      (phase_ == Phase::kLastWords && now_ms - phase_since_ms_ > limits_->linger_ms))
    close();
  return why;
}

}  // namespace xce::service
