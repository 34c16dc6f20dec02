// The rules of the connections between controllers, apart from sockets and clocks: whom to dial and
// when, what a hello must say, and what the end of a connection tells. peer_net.h has them over
// sockets, controller/sim over a simulated network.
//
// Each node dials every other one and sends on the link that it has dialled; what it receives comes
// on the links that the others have dialled. A link starts with both sides' hello; nothing else is
// sent or believed before. A lost link is dialled again at once (that is the second look which
// tells a dead process from a lost connection), then with growing, jittered pauses.
//
// Everything runs on one thread.
#ifndef XCE_CONTROLLER_CONSENSUS_PEER_LINKS_H_
#define XCE_CONTROLLER_CONSENSUS_PEER_LINKS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "controller/consensus/transport.h"
#include "libxce/net/frame.h"

namespace xce::consensus {

class PeerLinks {
 public:
  using LinkId = uint64_t;  // never 0, never used again

  // How a link came to its end, when the other side or the way ended it.
  enum class End { kLost, kRefused /* nobody listens there */ };

  static constexpr uint64_t kSweepMs = 100;

  // The sockets and the clock. None of its methods may call back into PeerLinks before it returns,
  // but for dial().
  class Io {
   public:
    virtual ~Io() = default;
    virtual uint64_t now_ms() = 0;
    virtual uint64_t random() = 0;
    // Begins to connect to that peer; up() or ended() follow, or nothing when nobody answers.
    virtual void dial(LinkId link, uint64_t peer) = 0;
    // Why the other side of an accepted link is not node `node`; empty: it may be.
    virtual std::string not_node(LinkId link, uint64_t node) = 0;
    virtual bool can_write(LinkId link) const = 0;  // false: too much is queued
    virtual void write(LinkId link, std::string bytes) = 0;
    // What was written is still sent. Nothing of that link is told any more.
    virtual void close(LinkId link) = 0;
    // Calls pause_over(peer) once, after `ms`; a new start takes the place of an old one.
    virtual void start_pause(uint64_t peer, uint64_t ms) = 0;
    virtual void stop_pause(uint64_t peer) = 0;
    // That peer, which we have dialled, and we are not to talk: said once for each reason.
    virtual void refused(uint64_t peer, const std::string& why) = 0;
    // That node has come to us, and is refused: said once for each reason.
    virtual void turned_away(const Hello& hello, const std::string& why) = 0;
    // What came is no frame or message that is to come: for the log.
    virtual void complain(const std::string& what) = 0;
  };

  PeerLinks(Io* io, Transport::Events* events) : io_(io), events_(events) {}

  // ---- as Transport has them
  void add_peer(uint64_t id);
  void remove_peer(uint64_t id);
  void send(uint64_t peer, std::string frames);
  bool can_send(uint64_t peer) const;
  bool connected_from(uint64_t peer) const;
  void hang_up();
  void close();

  // ---- what happened
  // Somebody has connected. Under a flood the oldest silent one goes: a peer says hello at once.
  LinkId accepted();
  void up(LinkId link);  // a dialled one: our hello is sent
  void received(LinkId link, std::string_view bytes);
  void ended(LinkId link, End end);
  // A dialled one is not whom we look for; it is ended, and dialled again after a longer pause.
  void unwelcome(LinkId link, const std::string& why);
  void pause_over(uint64_t peer);
  void sweep();  // every kSweepMs

  bool has(LinkId link) const { return links_.count(link) > 0; }
  // Whose dialled link that is; 0: an accepted one.
  uint64_t dialled(LinkId link) const { return links_.at(link).dialled; }

 private:
  struct Link {
    uint64_t dialled = 0;  // the peer, of a link that we have dialled
    uint64_t from = 0;     // the peer that said hello on an accepted one
    uint64_t since_ms = 0;
    bool said_hello = false;  // the other side has, and was welcome
    net::FrameDecoder decoder;
  };
  struct Peer {
    LinkId out = 0, in = 0;
    bool waiting = false;  // the pause runs
    uint64_t pause_ms = 0;
    uint64_t boot = 0;    // of the process that last said hello
    std::string refusal;  // the last one told
  };

  LinkId open(uint64_t dialled);
  void dial(uint64_t id);
  void dial_now(uint64_t id);  // forgets how long it would have waited
  void dial_later(uint64_t id);
  void on_hello(LinkId link, const Hello& hello);
  void refuse(LinkId link, const Hello& hello, const Hello& answer);
  void on_dialled_hello(LinkId link, const Hello& hello);
  void slow_down(uint64_t id, const std::string& why);
  void note_boot(uint64_t id, const Hello& hello);
  void drop(LinkId link);
  Peer* find(uint64_t id);

  Io* const io_;
  Transport::Events* const events_;
  std::map<uint64_t, Peer> peers_;
  std::map<LinkId, Link> links_;              // in order of their age
  std::map<uint64_t, std::string> refusals_;  // why a node's hello was last refused
  LinkId last_id_ = 0;
  uint64_t last_ping_ms_ = 0;
  bool hung_up_ = false;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_PEER_LINKS_H_
