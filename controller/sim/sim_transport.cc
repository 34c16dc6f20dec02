#include "controller/sim/sim_transport.h"

#include <any>

#include "controller/sim/client_message.h"

namespace xce::sim {

using consensus::PeerLinks;

SimTransport::SimTransport(Machine* machine, Events* events, unsigned user_timeout_ms)
    : machine_(machine), links_(this, events), patience_(user_timeout_ms * kMs) {
  machine_->set_listener([this](const ConnectionPtr& connection) { return accept(connection); });
  sweeper_ = machine_->add_timer([this] {
    links_.sweep();
    machine_->start_timer(sweeper_, PeerLinks::kSweepMs);
  });
  machine_->start_timer(sweeper_, PeerLinks::kSweepMs);
}

// What the network calls, at any time: it is looked at in the next turn of the loop, if that link
// is still there.
Sink SimTransport::sink_of(LinkId link) {
  return [this, machine = machine_, alive = std::weak_ptr<bool>(alive_), link](NetEvent event) {
    machine->post([this, alive, link, event = std::move(event)] {
      if (alive.lock() != nullptr && links_.has(link)) on_event(link, event);
    });
  };
}

void SimTransport::add_peer(uint64_t id, const std::string&, uint16_t) {
  pauses_[id] = machine_->add_timer([this, id] { links_.pause_over(id); });
  links_.add_peer(id);
}

void SimTransport::remove_peer(uint64_t id) {
  links_.remove_peer(id);
  const auto found = pauses_.find(id);
  if (found == pauses_.end()) return;
  machine_->remove_timer(found->second);
  pauses_.erase(found);
}

void SimTransport::dial(LinkId link, uint64_t peer) {
  wires_[link] = {machine_->network()->dial(machine_->id(), static_cast<HostId>(peer), patience_,
                                            sink_of(link)),
                  0};
}

Sink SimTransport::accept(const ConnectionPtr& connection) {
  const LinkId link = links_.accepted();
  wires_[link] = {connection, 1};
  return sink_of(link);
}

void SimTransport::on_event(LinkId link, const NetEvent& event) {
  switch (event.kind) {
    case NetEvent::kUp:
      machine_->network()->send(wires_.at(link).connection, 0, PeerPreamble{});
      links_.up(link);
      break;
    case NetEvent::kData: {
      const auto& bytes = std::any_cast<const std::string&>(event.data);
      machine_->world()->mark(link * 31 + bytes.size());
      links_.received(link, bytes);
      break;
    }
    case NetEvent::kEnd:
      links_.ended(link, event.refused ? PeerLinks::End::kRefused : PeerLinks::End::kLost);
  }
}

void SimTransport::write(LinkId link, std::string bytes) {
  const Wire& wire = wires_.at(link);
  if (!machine_->dying()) machine_->network()->send(wire.connection, wire.side, std::move(bytes));
}

void SimTransport::close(LinkId link) {
  const auto found = wires_.find(link);
  if (found == wires_.end()) return;
  machine_->network()->close(found->second.connection, found->second.side);
  wires_.erase(found);
}

void SimTransport::start_pause(uint64_t peer, uint64_t ms) {
  machine_->start_timer(pauses_.at(peer), ms);
}

void SimTransport::stop_pause(uint64_t peer) {
  const auto found = pauses_.find(peer);  // not there any more after close()
  if (found != pauses_.end()) machine_->stop_timer(found->second);
}

void SimTransport::complain(const std::string& what) { machine_->world()->wrong(what); }

void SimTransport::close() {
  links_.close();
  for (const auto& [peer, timer] : pauses_) machine_->remove_timer(timer);
  pauses_.clear();
  machine_->remove_timer(sweeper_);
  machine_->set_listener(nullptr);
}

}  // namespace xce::sim
