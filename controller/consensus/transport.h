// How nodes exchange messages, as Node sees it. peer_net.h is the real one.
#ifndef XCE_CONTROLLER_CONSENSUS_TRANSPORT_H_
#define XCE_CONTROLLER_CONSENSUS_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "controller/consensus/peer_codec.h"

namespace xce::net {
class TlsCredentials;
class TlsSession;
}  // namespace xce::net

namespace xce::consensus {

// What is said to a node's hello.
struct Greeting {
  std::string refused;   // why it is not to be talked to; empty: it is welcome
  bool retry = false;    // refused only until we have reached it by ourselves
  bool removed = false;  // refused as no member of the cluster
};

class Transport {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual Hello own_hello() = 0;
    // Whether a node that says this is to be talked to. dialled: it is who answers at the address
    // that we have for that node; otherwise it came to us.
    virtual Greeting check_hello(const Hello& hello, bool dialled) = 0;
    // The peer, which we have dialled, said this, and one of us two does not want the other: why.
    virtual void on_refused(uint64_t peer, const Hello& hello, const std::string& why) {
      (void)peer, (void)hello, (void)why;
    }
    virtual void on_message(uint64_t from, PeerMessage& message) = 0;
    // The connection to the peer is ready to send.
    virtual void on_connected(uint64_t peer) = 0;
    // The process that was last connected from that peer is gone: its port refuses and it has no
    // connection to us, or another process answers, or it says that it has stopped serving. May be
    // called again and again.
    virtual void on_gone(uint64_t peer) = 0;
  };

  virtual ~Transport() = default;
  // Dials a peer, for ever. `host` may be a name.
  virtual void add_peer(uint64_t id, const std::string& host, uint16_t port) = 0;
  // Closes the connections to and from a peer and dials it no more.
  virtual void remove_peer(uint64_t id) = 0;
  // Takes over an accepted connection; `already_read` is what has been read from it and decrypted,
  // with or without the preamble; `tls` its session, established, or null.
  virtual void adopt(int fd, std::string_view already_read,
                     std::shared_ptr<net::TlsSession> tls) = 0;
  // Sends whole frames, or drops them when there is no connection or too much is queued on it.
  virtual void send(uint64_t peer, std::string frames) = 0;
  // Whether send() would not drop.
  virtual bool can_send(uint64_t peer) const = 0;
  // Closes the connections to and from all peers and dials no more; adopted ones still get our
  // hello.
  virtual void hang_up() = 0;
  // Closes everything. Nothing is called back afterwards.
  virtual void close() = 0;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_TRANSPORT_H_
