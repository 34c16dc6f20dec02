// Connections between simulated controllers: the real rules (peer_links.h) and the real frames,
// over the simulated network.
#ifndef XCE_CONTROLLER_SIM_SIM_TRANSPORT_H_
#define XCE_CONTROLLER_SIM_SIM_TRANSPORT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "controller/consensus/peer_links.h"
#include "controller/consensus/transport.h"
#include "controller/sim/machine.h"

namespace xce::sim {

class SimTransport final : public consensus::Transport, private consensus::PeerLinks::Io {
 public:
  SimTransport(Machine* machine, Events* events, unsigned user_timeout_ms);
  ~SimTransport() override { close(); }

  void add_peer(uint64_t id, const std::string& host, uint16_t port) override;
  void remove_peer(uint64_t id) override;
  void adopt(int, std::string_view, std::shared_ptr<net::TlsSession>) override {}
  void send(uint64_t peer, std::string frames) override { links_.send(peer, std::move(frames)); }
  bool can_send(uint64_t peer) const override { return links_.can_send(peer); }
  void hang_up() override { links_.hang_up(); }
  void close() override;

 private:
  using LinkId = consensus::PeerLinks::LinkId;
  struct Wire {
    ConnectionPtr connection;
    int side;
  };

  // ---- PeerLinks::Io
  uint64_t now_ms() override { return machine_->clock_ns() / kMs; }
  uint64_t random() override { return machine_->random().next(); }
  void dial(LinkId link, uint64_t peer) override;
  std::string not_node(LinkId, uint64_t) override { return ""; }
  bool can_write(LinkId) const override { return true; }
  void write(LinkId link, std::string bytes) override;
  void close(LinkId link) override;
  void start_pause(uint64_t peer, uint64_t ms) override;
  void stop_pause(uint64_t peer) override;
  void refused(uint64_t, const std::string& why) override { machine_->refused(why); }
  void turned_away(const consensus::Hello&, const std::string& why) override {
    machine_->refused(why);
  }
  void complain(const std::string& what) override;

  Sink sink_of(LinkId link);
  Sink accept(const ConnectionPtr& connection);
  void on_event(LinkId link, const NetEvent& event);

  Machine* const machine_;
  consensus::PeerLinks links_;
  const uint64_t patience_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::map<LinkId, Wire> wires_;
  std::map<uint64_t, uint64_t> pauses_;  // peer -> timer
  uint64_t sweeper_ = 0;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_SIM_TRANSPORT_H_
