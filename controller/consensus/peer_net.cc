#include "controller/consensus/peer_net.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "controller/consensus/uv_handle.h"
#include "libxce/net/address.h"
#include "libxce/net/frame.h"

namespace xce::consensus {
namespace {

constexpr size_t kMaxQueuedBytes = size_t{32} << 20;  // a peer that does not read

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
  PeerNet* net;  // nullptr once closed
  LinkId link;
  std::shared_ptr<net::TlsSession> tls;  // null without TLS
  bool preamble_done = false;            // taken off, or never to come
  std::string first_bytes;               // until then
  char buffer[64 * 1024];
};

struct PeerNet::Peer {
  PeerNet* net;
  uint64_t id;
  std::string host;
  uint16_t port;
  Resolve* resolving = nullptr;
  uv_timer_t* pause = nullptr;
};

struct PeerNet::Resolve {
  uv_getaddrinfo_t request;
  Peer* peer;   // nullptr once the peer is gone
  LinkId link;  // 0 once nobody waits: a slow name server may outlast the link that asked
};

PeerNet::PeerNet(uv_loop_t* loop, Events* events, unsigned user_timeout_ms, uint64_t seed,
                 std::shared_ptr<net::TlsCredentials> tls)
    : loop_(loop),
      links_(this, events),
      user_timeout_ms_(user_timeout_ms),
      random_(seed),
      tls_(std::move(tls)) {
  sweeper_ = new uv_timer_t;
  uv_timer_init(loop_, sweeper_);
  sweeper_->data = &links_;
  uv_timer_start(
      sweeper_, [](uv_timer_t* timer) { static_cast<PeerLinks*>(timer->data)->sweep(); },
      PeerLinks::kSweepMs, PeerLinks::kSweepMs);
}

PeerNet::~PeerNet() { close(); }

void PeerNet::add_peer(uint64_t id, const std::string& host, uint16_t port) {
  auto peer = std::make_unique<Peer>();
  peer->net = this;
  peer->id = id;
  peer->host = host;
  peer->port = port;
  peer->pause = new uv_timer_t;
  uv_timer_init(loop_, peer->pause);
  peer->pause->data = peer.get();
  peers_[id] = std::move(peer);
  links_.add_peer(id);
}

void PeerNet::remove_peer(uint64_t id) {
  links_.remove_peer(id);
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  if (found->second->resolving != nullptr) found->second->resolving->peer = nullptr;
  close_handle(found->second->pause);
  peers_.erase(found);
}

void PeerNet::dial(LinkId link, uint64_t id) {
  Peer* const peer = peers_.at(id).get();
  sockaddr_storage address;
  if (net::numeric_address(peer->host, peer->port, &address))
    connect(link, reinterpret_cast<sockaddr*>(&address));
  else if (peer->resolving != nullptr)
    peer->resolving->link = link;
  else
    resolve(link, peer);
}

void PeerNet::resolve(LinkId link, Peer* peer) {
  auto* const resolve = new Resolve;
  resolve->peer = peer;
  resolve->link = link;
  resolve->request.data = resolve;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  peer->resolving = resolve;
  const int rv = uv_getaddrinfo(
      loop_, &resolve->request,
      [](uv_getaddrinfo_t* request, int status, addrinfo* result) {
        const std::unique_ptr<Resolve> resolve(static_cast<Resolve*>(request->data));
        Peer* const peer = resolve->peer;
        if (peer != nullptr) peer->resolving = nullptr;
        if (peer != nullptr && peer->net->links_.has(resolve->link)) {
          if (status == 0 && result != nullptr)
            peer->net->connect(resolve->link, result->ai_addr);
          else
            peer->net->links_.ended(resolve->link, PeerLinks::End::kLost);
        }
        uv_freeaddrinfo(result);
      },
      peer->host.c_str(), std::to_string(peer->port).c_str(), &hints);
  if (rv == 0) return;
  peer->resolving = nullptr;
  delete resolve;
  links_.ended(link, PeerLinks::End::kLost);
}

PeerNet::Connection* PeerNet::open(LinkId link) {
  auto* const connection = new Connection;
  connection->net = this;
  connection->link = link;
  uv_tcp_init(loop_, &connection->tcp);
  connection->tcp.data = connection;
  connections_[link] = connection;
  return connection;
}

void PeerNet::connect(LinkId link, const sockaddr* address) {
  Connection* const connection = open(link);
  connection->preamble_done = true;
  connection->connecting.data = connection;
  const int rv = uv_tcp_connect(&connection->connecting, &connection->tcp, address,
                                [](uv_connect_t* request, int status) {
                                  auto* const connection = static_cast<Connection*>(request->data);
                                  if (connection->net != nullptr)
                                    connection->net->on_connect(connection, status);
                                });
  if (rv != 0) on_end(connection, rv);
}

void PeerNet::on_connect(Connection* connection, int status) {
  if (status != 0) {
    on_end(connection, status);
    return;
  }
  set_socket_options(&connection->tcp, user_timeout_ms_);
  start_reading(connection);
  if (tls_ != nullptr) start_tls(connection);
  write(connection, std::string(net::kPeerPreamble, net::kPreambleSize));
  links_.up(connection->link);
}

void PeerNet::start_tls(Connection* connection) {
  std::string complaint;
  connection->tls =
      std::make_shared<net::TlsSession>(tls_->current(&complaint), net::TlsSession::Side::kClient);
  if (!complaint.empty()) complain(complaint);
  write_raw(connection, connection->tls->take_output());
}

// What the socket gave: through TLS, if there is any, to on_bytes.
void PeerNet::on_received(Connection* connection, std::string_view bytes) {
  if (connection->tls == nullptr) {
    on_bytes(connection, bytes);
    return;
  }
  net::TlsSession& tls = *connection->tls;
  const uint64_t peer = links_.dialled(connection->link);
  const bool was_up = tls.established();
  std::string plain;
  absl::Status status = tls.feed(bytes, &plain);
  if (status.ok() && !was_up && tls.established() && peer != 0 &&
      tls.peer().name != std::to_string(peer))  // its role has been checked
    status = absl::UnauthenticatedError("the certificate there is that of " +
                                        net::to_string(tls.peer()));
  if (!status.ok()) {
    on_tls_trouble(connection, status);
    return;
  }
  if (tls.has_output()) write_raw(connection, tls.take_output());
  if (!plain.empty()) on_bytes(connection, plain);
}

void PeerNet::on_tls_trouble(Connection* connection, const absl::Status& status) {
  // Our preamble and hello are not sent to the wrong one; an alert is.
  if (!connection->tls->established()) write_raw(connection, connection->tls->take_output());
  if (links_.dialled(connection->link) != 0) {
    links_.unwelcome(connection->link, std::string(status.message()));
    return;
  }
  complain("connection of another node closed: " + std::string(status.message()));
  on_end(connection, UV_EPROTO);
}

void PeerNet::adopt(int fd, std::string_view already_read, std::shared_ptr<net::TlsSession> tls) {
  if (sweeper_ == nullptr) {
    ::close(fd);
    return;
  }
  Connection* const connection = open(links_.accepted());
  connection->tls = std::move(tls);
  if (uv_tcp_open(&connection->tcp, fd) != 0) {
    ::close(fd);
    on_end(connection, UV_EBADF);
    return;
  }
  set_socket_options(&connection->tcp, user_timeout_ms_);
  start_reading(connection);
  if (!already_read.empty()) on_bytes(connection, already_read);
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
  links_.received(connection->link, bytes);
}

void PeerNet::on_end(Connection* connection, int error) {
  links_.ended(connection->link,
               error == UV_ECONNREFUSED ? PeerLinks::End::kRefused : PeerLinks::End::kLost);
}

std::string PeerNet::not_node(LinkId link, uint64_t node) {
  if (tls_ == nullptr || names_node(connections_.at(link)->tls.get(), node)) return "";
  return "its certificate does not name node " + std::to_string(node);
}

void PeerNet::close(LinkId link) {
  for (const auto& [id, peer] : peers_)
    if (peer->resolving != nullptr && peer->resolving->link == link) peer->resolving->link = 0;
  const auto found = connections_.find(link);
  if (found == connections_.end()) return;
  found->second->net = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&found->second->tcp),
           [](uv_handle_t* handle) { delete static_cast<Connection*>(handle->data); });
  connections_.erase(found);
}

void PeerNet::start_pause(uint64_t id, uint64_t ms) {
  uv_timer_start(
      peers_.at(id)->pause,
      [](uv_timer_t* timer) {
        const auto* const peer = static_cast<Peer*>(timer->data);
        peer->net->links_.pause_over(peer->id);
      },
      ms, 0);
}

void PeerNet::stop_pause(uint64_t id) {
  uv_timer_t* const pause = peers_.at(id)->pause;
  if (pause != nullptr) uv_timer_stop(pause);  // close() has ended it
}

void PeerNet::refused(uint64_t id, const std::string& why) {
  const Peer& peer = *peers_.at(id);
  spdlog::error("consensus: no connection to node {} ({}:{}): {}", id, peer.host, peer.port, why);
}

void PeerNet::turned_away(const Hello& hello, const std::string& why) {
  spdlog::warn("consensus: refused a connection from node {} ({}): {}", hello.node, hello.advertise,
               why);
}

void PeerNet::complain(const std::string& what) { spdlog::warn("consensus: {}", what); }

bool PeerNet::can_write(LinkId link) const {
  const Connection* const connection = connections_.at(link);
  return uv_stream_get_write_queue_size(reinterpret_cast<const uv_stream_t*>(&connection->tcp)) <
         kMaxQueuedBytes;
}

void PeerNet::write(LinkId link, std::string bytes) {
  write(connections_.at(link), std::move(bytes));
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

void PeerNet::close() {
  links_.close();
  for (const auto& [id, peer] : peers_) {
    close_handle(peer->pause);
    if (peer->resolving != nullptr) peer->resolving->peer = nullptr;
  }
  close_handle(sweeper_);
}

}  // namespace xce::consensus
