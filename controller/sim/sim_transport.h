// The peer_net.h of the simulation: the same rules of dialling, hello and noticing a process that
// is gone, over the simulated network. What it sends are the real frames.
#ifndef XCE_CONTROLLER_SIM_SIM_TRANSPORT_H_
#define XCE_CONTROLLER_SIM_SIM_TRANSPORT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "controller/consensus/transport.h"
#include "controller/sim/machine.h"
#include "libxce/net/frame.h"

namespace xce::sim {

class SimTransport final : public consensus::Transport {
 public:
  SimTransport(Machine* machine, Events* events, unsigned user_timeout_ms);
  ~SimTransport() override { close(); }

  void add_peer(uint64_t id, const std::string& host, uint16_t port) override;
  void remove_peer(uint64_t id) override;
  void adopt(int, std::string_view, std::shared_ptr<net::TlsSession>) override {}
  void send(uint64_t peer, std::string frames) override;
  bool can_send(uint64_t peer) const override;
  void hang_up() override;
  void close() override;

 private:
  struct Peer;
  struct Link {                         // our side of a connection
    SimTransport* transport = nullptr;  // null once dropped
    ConnectionPtr connection;
    int side = 0;
    Peer* dialled = nullptr;
    uint64_t from = 0;
    bool said_hello = false;
    uint64_t since_ms = 0;
    net::FrameDecoder decoder;
  };
  using LinkPtr = std::shared_ptr<Link>;
  struct Peer {
    uint64_t id = 0;
    LinkPtr out, in;
    uint64_t timer = 0;
    bool waiting = false;
    uint64_t pause_ms = 0;
    uint64_t boot = 0;
  };

  uint64_t now_ms() const { return machine_->clock_ns() / kMs; }
  Sink sink_of(const LinkPtr& link);
  Sink accept(const ConnectionPtr& connection);
  void dial(Peer* peer);
  void dial_later(Peer* peer);
  void on_event(const LinkPtr& link, NetEvent event);
  void on_bytes(const LinkPtr& link, const std::string& bytes);
  void on_hello(const LinkPtr& link, const consensus::Hello& hello);
  void on_dialled_hello(const LinkPtr& link, const consensus::Hello& hello);
  void note_boot(uint64_t id, const consensus::Hello& hello);
  void on_end(const LinkPtr& link, bool refused);
  void drop(LinkPtr link);
  void write(const LinkPtr& link, std::string bytes);
  void sweep();

  Machine* const machine_;
  Events* const events_;
  const uint64_t patience_;
  std::map<uint64_t, Peer> peers_;
  std::set<LinkPtr> links_;
  uint64_t sweeper_ = 0;
  uint64_t last_ping_ms_ = 0;
  bool hung_up_ = false;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_SIM_TRANSPORT_H_
