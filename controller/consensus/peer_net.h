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

#include "controller/consensus/peer_codec.h"
#include "libxce/net/tls.h"

namespace xce::consensus {

class PeerNet {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual Hello own_hello() = 0;
    // Why a node that says this is not to be talked to; empty: it is welcome.
    virtual std::string check_hello(const Hello& hello) = 0;
    virtual void on_message(uint64_t from, PeerMessage& message) = 0;
    // The connection to the peer is ready to send.
    virtual void on_connected(uint64_t peer) = 0;
    // The process that was last connected from that peer is gone: its port refuses and it has no
    // connection to us, or another process answers, or it says that it has stopped serving. May be
    // called again and again.
    virtual void on_gone(uint64_t peer) = 0;
  };

  // user_timeout_ms: how long sent bytes may stay unacknowledged before a connection counts as
  // lost. tls: null without TLS; with it a peer's certificate must name the node id that it claims.
  PeerNet(uv_loop_t* loop, Events* events, unsigned user_timeout_ms, uint64_t seed,
          std::shared_ptr<net::TlsCredentials> tls = nullptr);
  ~PeerNet();
  PeerNet(const PeerNet&) = delete;
  PeerNet& operator=(const PeerNet&) = delete;

  // Dials a peer, for ever. `host` may be a name.
  void add_peer(uint64_t id, const std::string& host, uint16_t port);
  // Takes over an accepted connection; `already_read` is what has been read from it and decrypted,
  // with or without the preamble; `tls` its session, established, or null.
  void adopt(int fd, std::string_view already_read, std::shared_ptr<net::TlsSession> tls = nullptr);
  // Sends whole frames, or drops them when there is no connection or too much is queued on it.
  void send(uint64_t peer, std::string frames);
  // Whether send() would not drop.
  bool can_send(uint64_t peer) const;
  bool connected_from(uint64_t peer) const;
  // Closes the connections to and from all peers and dials no more; adopted ones still get our
  // hello.
  void hang_up();
  // Closes everything. Nothing is called back afterwards.
  void close();

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
