// Connections between controllers.
//
// Each node dials every other one and sends on the connection that it has dialled; what it receives
// comes on the connections that the others have dialled. A connection starts with both sides'
// hello; nothing else is sent or believed before. A lost connection is dialled again at once (that
// is the second look which tells a dead process from a lost connection), then with growing,
// jittered pauses.
//
// Everything runs on the loop's thread. Messages are dropped rather than queued without bound: Raft
// sends again.
#ifndef XCE_CONTROLLER_CONSENSUS_PEER_NET_H_
#define XCE_CONTROLLER_CONSENSUS_PEER_NET_H_

#include <uv.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "controller/consensus/transport.h"
#include "libxce/net/tls.h"

namespace xce::consensus {

class PeerNet final : public Transport {
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
  void send(uint64_t peer, std::string frames) override;
  bool can_send(uint64_t peer) const override;
  bool connected_from(uint64_t peer) const;
  void hang_up() override;
  void close() override;

 private:
  struct Connection;
  struct Peer;
  struct Resolve;

  void dial(Peer* peer);
  void connect(Peer* peer, const sockaddr* address);
  void dial_later(Peer* peer);
  void on_connect(Connection* connection, int status);
  void start_tls(Connection* connection);
  void on_received(Connection* connection, std::string_view bytes);
  void on_bytes(Connection* connection, std::string_view bytes);
  void on_hello(Connection* connection, const Hello& hello);
  void on_dialled_hello(Connection* connection, const Hello& hello);
  void note_boot(uint64_t peer, const Hello& hello);
  // on_end: the other side or the network ended it; closes it and draws the conclusions.
  void on_end(Connection* connection, int error);
  void drop(Connection* connection);
  void refused(Peer* peer, const std::string& why);
  void write(Connection* connection, std::string bytes);
  void write_raw(Connection* connection, std::string bytes);
  void start_reading(Connection* connection);
  void sweep();

  uv_loop_t* const loop_;
  Events* const events_;
  const unsigned user_timeout_ms_;
  std::mt19937_64 random_;
  const std::shared_ptr<net::TlsCredentials> tls_;
  uv_timer_t* sweeper_ = nullptr;
  std::map<uint64_t, std::unique_ptr<Peer>> peers_;
  std::set<Connection*> connections_;
  std::map<uint64_t, std::string> refusals_;  // why a node's hello was last refused
  uint64_t last_ping_ms_ = 0;
  bool hung_up_ = false;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_PEER_NET_H_
