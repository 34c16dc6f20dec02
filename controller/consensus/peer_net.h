// Connections between controllers over sockets: what peer_links.h asks for, with libuv and TLS.
// Everything runs on the loop's thread. Messages are dropped rather than queued without bound: Raft
// sends again.
#ifndef XCE_CONTROLLER_CONSENSUS_PEER_NET_H_
#define XCE_CONTROLLER_CONSENSUS_PEER_NET_H_

#include <uv.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "controller/consensus/peer_links.h"
#include "controller/consensus/transport.h"
#include "libxce/net/tls.h"

namespace xce::consensus {

class PeerNet final : public Transport, private PeerLinks::Io {
 public:
  // user_timeout_ms: how long sent bytes may stay unacknowledged before a connection counts as
  // lost. tls: null without TLS; with it a peer's certificate must name the node id that it claims.
  PeerNet(uv_loop_t* loop, Events* events, unsigned user_timeout_ms, uint64_t seed,
          std::shared_ptr<net::TlsCredentials> tls = nullptr);
  ~PeerNet() override;
  PeerNet(const PeerNet&) = delete;
  PeerNet& operator=(const PeerNet&) = delete;

  void add_peer(uint64_t id, const std::string& host, uint16_t port) override;
  void remove_peer(uint64_t id) override;
  void adopt(int fd, std::string_view already_read, std::shared_ptr<net::TlsSession> tls) override;
  void send(uint64_t peer, std::string frames) override { links_.send(peer, std::move(frames)); }
  bool can_send(uint64_t peer) const override { return links_.can_send(peer); }
  bool connected_from(uint64_t peer) const { return links_.connected_from(peer); }
  void hang_up() override { links_.hang_up(); }
  void close() override;

 private:
  using LinkId = PeerLinks::LinkId;
  struct Connection;
  struct Peer;
  struct Resolve;

  // ---- PeerLinks::Io
  uint64_t now_ms() override { return uv_now(loop_); }
  uint64_t random() override { return random_(); }
  void dial(LinkId link, uint64_t peer) override;
  std::string not_node(LinkId link, uint64_t node) override;
  bool can_write(LinkId link) const override;
  void write(LinkId link, std::string bytes) override;
  void close(LinkId link) override;
  void start_pause(uint64_t peer, uint64_t ms) override;
  void stop_pause(uint64_t peer) override;
  void refused(uint64_t peer, const std::string& why) override;
  void turned_away(const Hello& hello, const std::string& why) override;
  void complain(const std::string& what) override;

  Connection* open(LinkId link);
  void resolve(LinkId link, Peer* peer);
  void connect(LinkId link, const sockaddr* address);
  void on_connect(Connection* connection, int status);
  void start_tls(Connection* connection);
  void on_received(Connection* connection, std::string_view bytes);
  void on_tls_trouble(Connection* connection, const absl::Status& status);
  void on_bytes(Connection* connection, std::string_view bytes);
  void on_end(Connection* connection, int error);
  void write(Connection* connection, std::string bytes);
  void write_raw(Connection* connection, std::string bytes);
  void start_reading(Connection* connection);

  uv_loop_t* const loop_;
  PeerLinks links_;
  const unsigned user_timeout_ms_;
  std::mt19937_64 random_;
  const std::shared_ptr<net::TlsCredentials> tls_;
  uv_timer_t* sweeper_ = nullptr;
  std::map<uint64_t, std::unique_ptr<Peer>> peers_;
  std::map<LinkId, Connection*> connections_;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_PEER_NET_H_
