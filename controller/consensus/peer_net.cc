#include "controller/consensus/peer_net.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "controller/consensus/uv_handle.h"
#include "libxce/net/address.h"
#include "libxce/net/frame.h"

namespace xce::consensus {
namespace {

constexpr uint64_t kSweepMs = 100;
constexpr uint64_t kDialTimeoutMs = 1000;   // connect and hello
constexpr uint64_t kHelloTimeoutMs = 5000;  // of a connection that was accepted
constexpr uint64_t kPingMs = 1000;
constexpr unsigned kFirstPauseMs = 5;
constexpr unsigned kLastPauseMs = 200;
constexpr unsigned kRefusedPauseMs = 2000;
constexpr size_t kMaxQueuedBytes = size_t{32} << 20;  // a peer that does not read
constexpr size_t kMaxStrangers = 32;  // accepted connections that have not said hello

struct Write {
  uv_write_t request;
  std::string bytes;
  bool close_after = false;
};

void set_socket_options(uv_tcp_t* tcp, unsigned user_timeout_ms) {
  uv_tcp_nodelay(tcp, 1);
  uv_os_fd_t fd;
  if (uv_fileno(reinterpret_cast<uv_handle_t*>(tcp), &fd) == 0)
    (void)::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof user_timeout_ms);
}

// Whether that session's certificate is the one of controller `node`.
bool names_node(const net::TlsSession* tls, uint64_t node) {
  return tls != nullptr && tls->peer().role == Role::kController &&
         tls->peer().name == std::to_string(node);
}

}  // namespace

struct PeerNet::Connection {
  uv_tcp_t tcp;
  uv_connect_t connecting;
  PeerNet* net;             // nullptr once dropped
  Peer* dialled = nullptr;  // whose dialled connection this is; nullptr for an accepted one
  uint64_t from = 0;        // the peer that said hello on an accepted one
  std::shared_ptr<net::TlsSession> tls;  // null without TLS
  net::FrameDecoder decoder;
  uint64_t since_ms = 0;
  bool said_hello = false;     // the other side has, and was welcome
  bool preamble_done = false;  // taken off, or never to come
  std::string first_bytes;     // until then
  char buffer[64 * 1024];
};

struct PeerNet::Peer {
  uint64_t id;
  std::string host;
  uint16_t port;
  PeerNet* net;
  Connection* out = nullptr;
  Connection* in = nullptr;
  Resolve* resolving = nullptr;
  uv_timer_t* pause = nullptr;  // set while the timer exists, not only while it runs
  bool waiting = false;         // the timer runs
  unsigned pause_ms = kFirstPauseMs;
  uint64_t boot = 0;    // of the process that last said hello
  std::string refusal;  // the last one logged
  uint64_t quiet_until_ms = 0;
};

struct PeerNet::Resolve {
  uv_getaddrinfo_t request;
  Peer* peer;  // nullptr once nobody waits
};

PeerNet::PeerNet(uv_loop_t* loop, Events* events, unsigned user_timeout_ms, uint64_t seed,
                 std::shared_ptr<net::TlsCredentials> tls)
    : loop_(loop),
      events_(events),
      user_timeout_ms_(user_timeout_ms),
      random_(seed),
      tls_(std::move(tls)) {
  sweeper_ = new uv_timer_t;
  uv_timer_init(loop_, sweeper_);
  sweeper_->data = this;
  uv_timer_start(
      sweeper_, [](uv_timer_t* timer) { static_cast<PeerNet*>(timer->data)->sweep(); }, kSweepMs,
      kSweepMs);
}

PeerNet::~PeerNet() { close(); }

void PeerNet::add_peer(uint64_t id, const std::string& host, uint16_t port) {
  auto peer = std::make_unique<Peer>();
  peer->id = id;
  peer->host = host;
  peer->port = port;
  peer->net = this;
  peer->pause = new uv_timer_t;
  uv_timer_init(loop_, peer->pause);
  peer->pause->data = peer.get();
  Peer* const raw = peer.get();
  peers_[id] = std::move(peer);
  dial(raw);
}

void PeerNet::remove_peer(uint64_t id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  Peer* const peer = found->second.get();
  if (peer->out != nullptr) drop(peer->out);
  if (peer->in != nullptr) drop(peer->in);
  if (peer->resolving != nullptr) peer->resolving->peer = nullptr;
  close_handle(peer->pause);
  peers_.erase(found);
}

void PeerNet::dial(Peer* peer) {
  if (hung_up_ || peer->out != nullptr || peer->resolving != nullptr) return;
  uv_timer_stop(peer->pause);
  peer->waiting = false;
  sockaddr_storage address;
  if (net::numeric_address(peer->host, peer->port, &address)) {
    connect(peer, reinterpret_cast<sockaddr*>(&address));
    return;
  }
  auto* resolve = new Resolve;
  resolve->peer = peer;
  resolve->request.data = resolve;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const int rv = uv_getaddrinfo(
      loop_, &resolve->request,
      [](uv_getaddrinfo_t* request, int status, addrinfo* result) {
        const std::unique_ptr<Resolve> resolve(static_cast<Resolve*>(request->data));
        Peer* const peer = resolve->peer;
        if (peer != nullptr) {
          peer->resolving = nullptr;
          if (status == 0 && result != nullptr) {
            peer->net->connect(peer, result->ai_addr);
          } else {
            peer->net->dial_later(peer);
          }
        }
        uv_freeaddrinfo(result);
      },
      peer->host.c_str(), std::to_string(peer->port).c_str(), &hints);
  if (rv != 0) {
    delete resolve;
    dial_later(peer);
    return;
  }
  peer->resolving = resolve;
}

void PeerNet::connect(Peer* peer, const sockaddr* address) {
  auto* connection = new Connection;
  connection->net = this;
  connection->dialled = peer;
  connection->preamble_done = true;
  connection->since_ms = uv_now(loop_);
  uv_tcp_init(loop_, &connection->tcp);
  connection->tcp.data = connection;
  connection->connecting.data = connection;
  connections_.insert(connection);
  peer->out = connection;
  const int rv = uv_tcp_connect(&connection->connecting, &connection->tcp, address,
                                [](uv_connect_t* request, int status) {
                                  auto* const connection = static_cast<Connection*>(request->data);
                                  if (connection->net != nullptr)
                                    connection->net->on_connect(connection, status);
                                });
  if (rv != 0) on_end(connection, rv);
}

void PeerNet::dial_later(Peer* peer) {
  if (hung_up_ || peer->waiting) return;
  const unsigned pause =
      peer->pause_ms / 2 + static_cast<unsigned>(random_() % (peer->pause_ms / 2 + 1));
  peer->pause_ms = std::min(peer->pause_ms * 2, kLastPauseMs);
  peer->waiting = true;
  uv_timer_start(
      peer->pause,
      [](uv_timer_t* timer) {
        auto* const peer = static_cast<Peer*>(timer->data);
        peer->waiting = false;
        peer->net->dial(peer);
      },
      pause, 0);
}

void PeerNet::on_connect(Connection* connection, int status) {
  if (status != 0) {
    on_end(connection, status);
    return;
  }
  set_socket_options(&connection->tcp, user_timeout_ms_);
  start_reading(connection);
  if (tls_ != nullptr) start_tls(connection);
  std::string bytes(net::kPeerPreamble, net::kPreambleSize);
  append_hello_frame(events_->own_hello(), &bytes);
  write(connection, std::move(bytes));
}

void PeerNet::start_tls(Connection* connection) {
  std::string complaint;
  connection->tls =
      std::make_shared<net::TlsSession>(tls_->current(&complaint), net::TlsSession::Side::kClient);
  if (!complaint.empty()) spdlog::warn("consensus: {}", complaint);
  write_raw(connection, connection->tls->take_output());
}

// What the socket gave: through TLS, if there is any, to on_bytes.
void PeerNet::on_received(Connection* connection, std::string_view bytes) {
  if (connection->tls == nullptr) {
    on_bytes(connection, bytes);
    return;
  }
  net::TlsSession& tls = *connection->tls;
  Peer* const peer = connection->dialled;
  const bool was_up = tls.established();
  std::string plain;
  absl::Status status = tls.feed(bytes, &plain);
  if (status.ok() && !was_up && tls.established() && peer != nullptr &&
      tls.peer().name != std::to_string(peer->id))  // its role has been checked
    status = absl::UnauthenticatedError("the certificate there is that of " +
                                        net::to_string(tls.peer()));
  if (!status.ok()) {
    // Our preamble and hello are not sent to the wrong one; an alert is.
    if (!tls.established()) write_raw(connection, tls.take_output());
    if (peer != nullptr)
      refused(peer, std::string(status.message()));
    else
      spdlog::warn("consensus: connection from node {} closed: {}", connection->from,
                   std::string(status.message()));
    if (connection->net != nullptr) on_end(connection, UV_EPROTO);
    return;
  }
  if (tls.has_output()) write_raw(connection, tls.take_output());
  if (!plain.empty() && connection->net != nullptr) on_bytes(connection, plain);
}

void PeerNet::adopt(int fd, std::string_view already_read, std::shared_ptr<net::TlsSession> tls) {
  if (sweeper_ == nullptr) {
    ::close(fd);
    return;
  }
  // A peer says hello at once, so under a flood it is the oldest silent one that goes.
  size_t strangers = 0;
  Connection* oldest = nullptr;
  for (Connection* c : connections_) {
    if (c->dialled != nullptr || c->said_hello) continue;
    strangers++;
    if (oldest == nullptr || c->since_ms < oldest->since_ms) oldest = c;
  }
  if (strangers >= kMaxStrangers) drop(oldest);
  auto* connection = new Connection;
  connection->net = this;
  connection->tls = std::move(tls);
  connection->since_ms = uv_now(loop_);
  uv_tcp_init(loop_, &connection->tcp);
  connection->tcp.data = connection;
  connections_.insert(connection);
  if (uv_tcp_open(&connection->tcp, fd) != 0) {
    ::close(fd);
    drop(connection);
    return;
  }
  set_socket_options(&connection->tcp, user_timeout_ms_);
  start_reading(connection);
  if (!already_read.empty() && connection->net != nullptr) on_bytes(connection, already_read);
}

void PeerNet::start_reading(Connection* connection) {
  uv_read_start(
      reinterpret_cast<uv_stream_t*>(&connection->tcp),
      [](uv_handle_t* handle, size_t, uv_buf_t* buf) {
        auto* const connection = static_cast<Connection*>(handle->data);
        *buf = uv_buf_init(connection->buffer, sizeof connection->buffer);
      },
      [](uv_stream_t* stream, ssize_t n, const uv_buf_t* buf) {
        auto* const connection = static_cast<Connection*>(stream->data);
        if (connection->net == nullptr || n == 0) return;
        if (n < 0) {
          connection->net->on_end(connection, static_cast<int>(n));
        } else {
          connection->net->on_received(connection, {buf->base, static_cast<size_t>(n)});
        }
      });
}

void PeerNet::on_bytes(Connection* connection, std::string_view bytes) {
  if (!connection->preamble_done) {
    // The one who accepted may have taken the preamble off, or not.
    std::string& first = connection->first_bytes;
    first.append(bytes.data(), bytes.size());
    if (first.size() < net::kPreambleSize) return;
    bytes = first;
    if (net::classify_preamble(bytes.substr(0, net::kPreambleSize)) == net::Preamble::kPeer)
      bytes.remove_prefix(net::kPreambleSize);
    connection->preamble_done = true;
  }
  connection->decoder.feed(bytes);
  while (connection->net != nullptr) {
    auto frame = connection->decoder.next();
    PeerMessage message;
    absl::Status status = frame.status();
    if (status.ok() && !frame->has_value()) return;
    if (status.ok()) status = decode_peer_message(std::move(**frame), &message);
    if (status.ok() && !connection->said_hello && message.kind != PeerMessage::kHello)
      status = absl::InvalidArgumentError("peer message before hello");
    if (!status.ok()) {
      spdlog::warn(
          "consensus: connection {} node {} closed: {}", connection->dialled ? "to" : "from",
          connection->dialled ? connection->dialled->id : connection->from, status.ToString());
      on_end(connection, UV_EPROTO);
      return;
    }
    if (message.kind == PeerMessage::kHello) {
      on_hello(connection, message.hello);
    } else if (connection->dialled == nullptr && message.kind != PeerMessage::kUnknown) {
      events_->on_message(connection->from, message);
    }
  }
}

void PeerNet::on_hello(Connection* connection, const Hello& hello) {
  if (connection->said_hello) return;
  if (connection->dialled != nullptr) {
    on_dialled_hello(connection, hello);
    return;
  }
  Hello answer = events_->own_hello();
  // First, as check_hello may remember the node.
  if (tls_ != nullptr && !names_node(connection->tls.get(), hello.node)) {
    answer.refused = "its certificate does not name node " + std::to_string(hello.node);
  } else {
    Greeting greeting = events_->check_hello(hello, false);
    answer.refused = std::move(greeting.refused);
    answer.retry = greeting.retry;
    answer.removed = greeting.removed;
  }
  if (connection->net == nullptr) return;
  const auto found = peers_.find(hello.node);
  if (found == peers_.end() && answer.refused.empty())
    answer.refused = "not a member of this cluster";
  std::string bytes;
  append_hello_frame(answer, &bytes);
  if (!answer.refused.empty() || hung_up_) {
    // It will try again and again: once in the log is enough.
    if (refusals_.size() > 64) refusals_.clear();
    if (!answer.refused.empty() && !answer.retry && refusals_[hello.node] != answer.refused)
      spdlog::warn("consensus: refused a connection from node {} ({}): {}", hello.node,
                   hello.advertise, answer.refused);
    refusals_[hello.node] = answer.refused;
    write(connection, std::move(bytes));
    // The answer lies in the socket's buffer; closing sends it, then the end.
    if (connection->net != nullptr) drop(connection);
    // It waits for us to reach it.
    if (answer.retry && found != peers_.end() && found->second->out == nullptr && !hung_up_) {
      found->second->pause_ms = kFirstPauseMs;
      dial(found->second.get());
    }
    return;
  }
  Peer* const peer = found->second.get();
  connection->said_hello = true;
  connection->from = hello.node;
  connection->decoder.set_max_payload(net::kMaxFrame);
  if (peer->in != nullptr) drop(peer->in);
  peer->in = connection;
  write(connection, std::move(bytes));
  if (connection->net == nullptr) return;
  note_boot(peer->id, hello);
  // A peer that has just come up need not wait for our pause to end.
  if (connection->net != nullptr && peer->out == nullptr) {
    peer->pause_ms = kFirstPauseMs;
    dial(peer);
  }
}

void PeerNet::on_dialled_hello(Connection* connection, const Hello& hello) {
  Peer* const peer = connection->dialled;
  const uint64_t peer_id = peer->id;
  std::string refusal;
  bool soon = false;
  if (hello.node != peer_id) {
    refusal = "node " + std::to_string(hello.node) + " answers at its address";
  } else {
    refusal = events_->check_hello(hello, true).refused;
    if (refusal.empty()) {
      refusal = hello.refused;
      soon = hello.retry;
    }
  }
  if (connection->net == nullptr) return;
  if (!refusal.empty()) {
    if (soon)
      peer->pause_ms = std::min(peer->pause_ms, kLastPauseMs);
    else
      refused(peer, refusal);
    on_end(connection, UV_ECANCELED);
    events_->on_refused(peer_id, hello, refusal);
    return;
  }
  peer->refusal.clear();
  const uint64_t id = peer->id;
  note_boot(id, hello);
  if (connection->net == nullptr) return;
  if (!hello.serving) {
    peer->pause_ms = kLastPauseMs;
    on_end(connection, UV_ECANCELED);
    return;
  }
  connection->said_hello = true;
  peer->pause_ms = kFirstPauseMs;
  events_->on_connected(id);
}

// Says so once, and asks less often from now on.
void PeerNet::refused(Peer* peer, const std::string& why) {
  if (why != peer->refusal)
    spdlog::error("consensus: no connection to node {} ({}:{}): {}", peer->id, peer->host,
                  peer->port, why);
  peer->refusal = why;
  peer->pause_ms = kRefusedPauseMs;
}

void PeerNet::note_boot(uint64_t id, const Hello& hello) {
  Peer* const peer = peers_.at(id).get();
  const uint64_t before = peer->boot;
  peer->boot = hello.boot;
  if ((before != 0 && before != hello.boot) || !hello.serving) events_->on_gone(id);
}

void PeerNet::on_end(Connection* connection, int error) {
  Peer* const dialled = connection->dialled;
  const auto sender = peers_.find(connection->from);
  const bool was_up = connection->said_hello;
  const bool was_in = sender != peers_.end() && sender->second->in == connection;
  drop(connection);
  if (dialled != nullptr) {
    if (was_up) {
      dialled->pause_ms = kFirstPauseMs;
      dial(dialled);
    } else {
      dial_later(dialled);
      if (error == UV_ECONNREFUSED && dialled->in == nullptr) events_->on_gone(dialled->id);
    }
  } else if (was_in) {
    // Look again at once if no dialled connection is there to tell.
    Peer* const peer = sender->second.get();
    if (peer->out == nullptr) {
      peer->pause_ms = kFirstPauseMs;
      dial(peer);
    }
  }
}

void PeerNet::drop(Connection* connection) {
  if (connection->net == nullptr) return;
  connection->net = nullptr;
  connections_.erase(connection);
  if (connection->dialled != nullptr && connection->dialled->out == connection)
    connection->dialled->out = nullptr;
  const auto sender = peers_.find(connection->from);
  if (sender != peers_.end() && sender->second->in == connection) sender->second->in = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&connection->tcp),
           [](uv_handle_t* handle) { delete static_cast<Connection*>(handle->data); });
}

void PeerNet::write(Connection* connection, std::string bytes) {
  if (connection->tls != nullptr) {
    connection->tls->write(bytes);  // kept there until the handshake is over
    bytes = connection->tls->take_output();
  }
  if (!bytes.empty()) write_raw(connection, std::move(bytes));
}

void PeerNet::write_raw(Connection* connection, std::string bytes) {
  auto* const stream = reinterpret_cast<uv_stream_t*>(&connection->tcp);
  size_t done = 0;
  if (uv_stream_get_write_queue_size(stream) == 0) {
    const uv_buf_t buf = uv_buf_init(bytes.data(), static_cast<unsigned>(bytes.size()));
    const int n = uv_try_write(stream, &buf, 1);
    if (n == static_cast<int>(bytes.size())) return;
    if (n > 0) done = static_cast<size_t>(n);
    // Errors other than "not now" come again with uv_write or on the reading side.
  }
  auto* const write = new Write;
  write->bytes = std::move(bytes);
  write->request.data = write;
  const uv_buf_t buf =
      uv_buf_init(write->bytes.data() + done, static_cast<unsigned>(write->bytes.size() - done));
  const int rv = uv_write(&write->request, stream, &buf, 1, [](uv_write_t* request, int) {
    delete static_cast<Write*>(request->data);
  });
  if (rv != 0) delete write;  // reading will tell
}

bool PeerNet::can_send(uint64_t peer) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return false;
  const Connection* const out = found->second->out;
  return out != nullptr && out->said_hello &&
         uv_stream_get_write_queue_size(reinterpret_cast<const uv_stream_t*>(&out->tcp)) <
             kMaxQueuedBytes;
}

bool PeerNet::connected_from(uint64_t peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second->in != nullptr;
}

void PeerNet::send(uint64_t peer, std::string frames) {
  if (can_send(peer)) write(peers_.at(peer)->out, std::move(frames));
}

void PeerNet::sweep() {
  const uint64_t now = uv_now(loop_);
  const bool ping = now - last_ping_ms_ >= kPingMs;
  if (ping) last_ping_ms_ = now;
  std::string frame;
  if (ping) append_ping_frame(&frame);
  const std::set<Connection*> all = connections_;
  for (Connection* connection : all) {
    if (connections_.count(connection) == 0) continue;
    const uint64_t age = now - connection->since_ms;
    if (!connection->said_hello &&
        age > (connection->dialled != nullptr ? kDialTimeoutMs : kHelloTimeoutMs)) {
      on_end(connection, UV_ETIMEDOUT);
    } else if (ping && connection->said_hello && connection->dialled != nullptr) {
      write(connection, frame);
    }
  }
}

void PeerNet::hang_up() {
  hung_up_ = true;
  for (const auto& [id, peer] : peers_) {
    if (peer->out != nullptr) drop(peer->out);
    if (peer->in != nullptr) drop(peer->in);
    if (peer->resolving != nullptr) peer->resolving->peer = nullptr;
    peer->resolving = nullptr;
    if (peer->pause != nullptr) uv_timer_stop(peer->pause);
  }
}

void PeerNet::close() {
  hang_up();
  while (!connections_.empty()) drop(*connections_.begin());
  for (const auto& [id, peer] : peers_) close_handle(peer->pause);
  close_handle(sweeper_);
}

}  // namespace xce::consensus
