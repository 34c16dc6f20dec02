#include "libxce/client/connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libxce/client/client_log.h"
#include "libxce/net/address.h"

namespace xce::client {
namespace {

constexpr unsigned kUserTimeoutMs = 3000;  // unacknowledged data for so long ends the connection
constexpr size_t kReadBuffer = 64 * 1024;

struct Write {
  uv_write_t request;
  std::string bytes;
};

void free_handle(uv_handle_t* handle) { delete reinterpret_cast<uv_tcp_t*>(handle); }

}  // namespace

std::string to_string(const Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return absl::StrCat(v6 ? "[" : "", address.host, v6 ? "]" : "", ":", address.port);
}

Connection::Connection(uv_loop_t* loop, uint64_t id, Address peer, net::TlsCredentials* tls,
                       Events* events)
    : loop_(loop), id_(id), peer_(std::move(peer)), credentials_(tls), events_(events) {}

Connection::~Connection() { close(); }

void Connection::close() {
  events_ = nullptr;
  if (dns_ != nullptr) {
    dns_->data = nullptr;
    uv_cancel(reinterpret_cast<uv_req_t*>(dns_));
    dns_ = nullptr;
  }
  drop_socket();
}

void Connection::drop_socket() {
  if (tcp_ == nullptr) return;
  tcp_->data = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(tcp_), free_handle);
  tcp_ = nullptr;
}

void Connection::fail(int error) {
  if (events_ == nullptr) return;
  const auto self = shared_from_this();
  Events* events = events_;
  close();
  events->on_failed(this, error);
}

void Connection::open() {
  sockaddr_storage address;
  if (net::numeric_address(peer_.host, peer_.port, &address)) {
    addresses_.push_back(address);
    connect_next();
    return;
  }
  dns_ = new uv_getaddrinfo_t;
  dns_->data = this;
  addrinfo hints;
  std::memset(&hints, 0, sizeof hints);
  hints.ai_socktype = SOCK_STREAM;
  const std::string port = absl::StrCat(peer_.port);
  if (const int rc =
          uv_getaddrinfo(loop_, dns_, on_resolved, peer_.host.c_str(), port.c_str(), &hints);
      rc != 0) {
    delete dns_;
    dns_ = nullptr;
    last_error_ = -rc;
    connect_next();
  }
}

void Connection::on_resolved(uv_getaddrinfo_t* request, int status, addrinfo* found) {
  auto* c = static_cast<Connection*>(request->data);
  delete request;
  if (c != nullptr) {
    c->dns_ = nullptr;
    for (addrinfo* a = found; status == 0 && a != nullptr; a = a->ai_next) {
      sockaddr_storage address;
      std::memset(&address, 0, sizeof address);
      std::memcpy(&address, a->ai_addr, a->ai_addrlen);
      c->addresses_.push_back(address);
    }
    c->last_error_ = EHOSTUNREACH;  // no such name, or no name server
    c->connect_next();
  }
  uv_freeaddrinfo(found);
}

// Tries the addresses in order; the last one's error is the connection's.
void Connection::connect_next() {
  while (next_address_ < addresses_.size()) {
    const sockaddr_storage& address = addresses_[next_address_++];
    tcp_ = new uv_tcp_t;
    if (const int rc = uv_tcp_init(loop_, tcp_); rc != 0) {
      delete tcp_;
      tcp_ = nullptr;
      last_error_ = -rc;
      continue;
    }
    tcp_->data = this;
    auto* request = new uv_connect_t;
    if (const int rc =
            uv_tcp_connect(request, tcp_, reinterpret_cast<const sockaddr*>(&address), on_connect);
        rc == 0)
      return;
    else
      last_error_ = -rc;
    delete request;
    drop_socket();
  }
  fail_later(last_error_ == 0 ? EHOSTUNREACH : last_error_);
}

// Reports a failure from a fresh turn of the loop, so that open() never calls back.
void Connection::fail_later(int error) {
  struct Later {
    uv_timer_t timer;
    std::weak_ptr<Connection> connection;
    int error;
  };
  auto* later = new Later{{}, weak_from_this(), error};
  uv_timer_init(loop_, &later->timer);
  later->timer.data = later;
  uv_timer_start(
      &later->timer,
      [](uv_timer_t* timer) {
        auto* l = static_cast<Later*>(timer->data);
        const auto connection = l->connection.lock();
        const int why = l->error;
        uv_close(reinterpret_cast<uv_handle_t*>(timer),
                 [](uv_handle_t* h) { delete static_cast<Later*>(h->data); });
        if (connection != nullptr) connection->fail(why);
      },
      0, 0);
}

void Connection::on_connect(uv_connect_t* request, int status) {
  auto* handle = reinterpret_cast<uv_tcp_t*>(request->handle);
  auto* c = static_cast<Connection*>(handle->data);
  delete request;
  if (c == nullptr) return;
  if (status != 0) {
    c->last_error_ = -status;
    c->drop_socket();
    c->connect_next();
    return;
  }
  uv_tcp_nodelay(handle, 1);
  uv_os_fd_t fd;
  if (uv_fileno(reinterpret_cast<uv_handle_t*>(handle), &fd) == 0)
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof kUserTimeoutMs);
  c->last_heard_ms = uv_now(c->loop_);
  if (const int rc = uv_read_start(reinterpret_cast<uv_stream_t*>(handle), on_alloc, on_read);
      rc != 0) {
    c->fail(-rc);
    return;
  }
  const auto self = c->shared_from_this();
  if (c->credentials_ != nullptr) {
    std::string complaint;
    auto context = c->credentials_->current(&complaint);
    if (!complaint.empty()) log_line(XCE_LOG_WARN, complaint);
    c->tls_ = std::make_unique<net::TlsSession>(std::move(context), net::TlsSession::Side::kClient);
    c->write_raw(c->tls_->take_output());
  }
  if (c->events_ != nullptr) c->events_->on_connected(c);
}

void Connection::on_alloc(uv_handle_t* handle, size_t, uv_buf_t* buffer) {
  auto* c = static_cast<Connection*>(handle->data);
  if (c == nullptr) {
    *buffer = uv_buf_init(nullptr, 0);
    return;
  }
  c->read_buffer_.resize(kReadBuffer);
  *buffer = uv_buf_init(c->read_buffer_.data(), static_cast<unsigned>(c->read_buffer_.size()));
}

void Connection::on_read(uv_stream_t* stream, ssize_t n, const uv_buf_t* buffer) {
  auto* c = static_cast<Connection*>(stream->data);
  if (c == nullptr || n == 0) return;
  if (n < 0) {
    if (c->tls_ != nullptr && !c->tls_->established())
      log_line(XCE_LOG_WARN, absl::StrCat(to_string(c->peer_),
                                          " ended the connection during the TLS handshake: "
                                          "does that controller use TLS?"));
    c->fail(n == UV_EOF ? ECONNRESET : static_cast<int>(-n));
    return;
  }
  c->last_heard_ms = uv_now(c->loop_);
  c->received({buffer->base, static_cast<size_t>(n)});
}

void Connection::received(std::string_view bytes) {
  std::string plain;
  if (tls_ != nullptr) {
    if (!decrypt(bytes, &plain)) return;
    bytes = plain;
  }
  decoder_.feed(bytes);
  dispatch_frames();
}

// False when the connection has failed.
bool Connection::decrypt(std::string_view bytes, std::string* plain) {
  const auto self = shared_from_this();
  const absl::Status status = tls_->feed(bytes, plain);
  write_raw(tls_->take_output());
  if (status.ok()) return tcp_ != nullptr;
  log_line(XCE_LOG_WARN, absl::StrCat("no connection to ", to_string(peer_), ": ",
                                      std::string(status.message())));
  fail(absl::IsUnauthenticated(status) ? EKEYREJECTED : EPROTO);
  return false;
}

void Connection::dispatch_frames() {
  const auto self = shared_from_this();
  while (events_ != nullptr) {
    auto frame = decoder_.next();
    if (!frame.ok()) {
      fail(EPROTO);
      return;
    }
    if (!frame->has_value()) return;
    events_->on_frame(this, *std::move(*frame));
  }
}

void Connection::write(std::string bytes) {
  if (tls_ == nullptr) {
    write_raw(std::move(bytes));
    return;
  }
  tls_->write(bytes);
  write_raw(tls_->take_output());
}

void Connection::write_raw(std::string bytes) {
  if (tcp_ == nullptr || bytes.empty()) return;
  auto* w = new Write{{}, std::move(bytes)};
  w->request.data = w;
  uv_buf_t buffer = uv_buf_init(w->bytes.data(), static_cast<unsigned>(w->bytes.size()));
  const int rc =
      uv_write(&w->request, reinterpret_cast<uv_stream_t*>(tcp_), &buffer, 1, on_written);
  if (rc == 0) return;
  delete w;
  fail_later(-rc);
}

void Connection::on_written(uv_write_t* request, int status) {
  auto* c = static_cast<Connection*>(request->handle->data);
  delete static_cast<Write*>(request->data);
  if (c != nullptr && status != 0) c->fail(-status);
}

}  // namespace xce::client
