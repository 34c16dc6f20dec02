#include "controller/sim/sim_transport.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "controller/sim/client_message.h"

namespace xce::sim {
namespace {

// As peer_net.cc has them.
constexpr uint64_t kSweepMs = 100;
constexpr uint64_t kDialTimeoutMs = 1000;
constexpr uint64_t kHelloTimeoutMs = 5000;
constexpr uint64_t kPingMs = 1000;
constexpr uint64_t kFirstPauseMs = 5;
constexpr uint64_t kLastPauseMs = 200;
constexpr uint64_t kRefusedPauseMs = 2000;

}  // namespace

SimTransport::SimTransport(Machine* machine, Events* events, unsigned user_timeout_ms)
    : machine_(machine), events_(events), patience_(user_timeout_ms * kMs) {
  machine_->set_listener([this](const ConnectionPtr& connection) { return accept(connection); });
  sweeper_ = machine_->add_timer([this] {
    sweep();
    machine_->start_timer(sweeper_, kSweepMs);
  });
  machine_->start_timer(sweeper_, kSweepMs);
}

Sink SimTransport::sink_of(const LinkPtr& link) {
  const std::weak_ptr<Link> weak = link;
  return [machine = machine_, weak](NetEvent event) {
    machine->post([weak, event = std::move(event)] {
      const LinkPtr link = weak.lock();
      if (link != nullptr && link->transport != nullptr) link->transport->on_event(link, event);
    });
  };
}

void SimTransport::add_peer(uint64_t id, const std::string&, uint16_t) {
  Peer& peer = peers_[id];
  peer.id = id;
  peer.pause_ms = kFirstPauseMs;
  peer.timer = machine_->add_timer([this, &peer] {
    peer.waiting = false;
    dial(&peer);
  });
  dial(&peer);
}

void SimTransport::remove_peer(uint64_t id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  if (found->second.out != nullptr) drop(found->second.out);
  if (found->second.in != nullptr) drop(found->second.in);
  machine_->remove_timer(found->second.timer);
  peers_.erase(found);
}

void SimTransport::dial(Peer* peer) {
  if (hung_up_ || peer->out != nullptr) return;
  machine_->stop_timer(peer->timer);
  peer->waiting = false;
  const auto link = std::make_shared<Link>();
  link->transport = this;
  link->dialled = peer;
  link->since_ms = now_ms();
  links_.insert(link);
  peer->out = link;
  link->connection = machine_->network()->dial(machine_->id(), static_cast<HostId>(peer->id),
                                               patience_, sink_of(link));
}

void SimTransport::dial_later(Peer* peer) {
  if (hung_up_ || peer->waiting) return;
  const uint64_t pause = peer->pause_ms / 2 + machine_->random().below(peer->pause_ms / 2 + 1);
  peer->pause_ms = std::min(peer->pause_ms * 2, kLastPauseMs);
  peer->waiting = true;
  machine_->start_timer(peer->timer, pause);
}

Sink SimTransport::accept(const ConnectionPtr& connection) {
  const auto link = std::make_shared<Link>();
  link->transport = this;
  link->connection = connection;
  link->side = 1;
  link->since_ms = now_ms();
  links_.insert(link);
  return sink_of(link);
}

void SimTransport::on_event(const LinkPtr& link, NetEvent event) {
  switch (event.kind) {
    case NetEvent::kUp: {
      machine_->network()->send(link->connection, 0, PeerPreamble{});
      std::string bytes;
      consensus::append_hello_frame(events_->own_hello(), &bytes);
      write(link, std::move(bytes));
      break;
    }
    case NetEvent::kData: on_bytes(link, std::any_cast<const std::string&>(event.data)); break;
    case NetEvent::kEnd: on_end(link, event.refused);
  }
}

void SimTransport::on_bytes(const LinkPtr& link, const std::string& bytes) {
  link->decoder.feed(bytes);
  while (link->transport != nullptr) {
    auto frame = link->decoder.next();
    consensus::PeerMessage message;
    absl::Status status = frame.status();
    if (status.ok() && !frame->has_value()) return;
    if (status.ok()) status = consensus::decode_peer_message(std::move(**frame), &message);
    const bool early = !link->said_hello && message.kind != consensus::PeerMessage::kHello;
    if (!status.ok() || early) {
      machine_->world()->wrong("a frame between controllers is not accepted: " + status.ToString());
      return;
    }
    if (message.kind == consensus::PeerMessage::kHello) {
      on_hello(link, message.hello);
    } else if (link->dialled == nullptr) {
      machine_->world()->mark(link->from * 31 + static_cast<uint64_t>(message.raft.type));
      events_->on_message(link->from, message);
    }
  }
}

void SimTransport::on_hello(const LinkPtr& link, const consensus::Hello& hello) {
  if (link->said_hello) return;
  if (link->dialled != nullptr) {
    on_dialled_hello(link, hello);
    return;
  }
  consensus::Hello answer = events_->own_hello();
  const consensus::Greeting greeting = events_->check_hello(hello, false);
  answer.refused = greeting.refused;
  answer.retry = greeting.retry;
  answer.removed = greeting.removed;
  if (link->transport == nullptr) return;
  std::string bytes;
  consensus::append_hello_frame(answer, &bytes);
  const auto found = peers_.find(hello.node);
  if (!answer.refused.empty() || hung_up_ || found == peers_.end()) {
    write(link, std::move(bytes));
    drop(link);
    if (answer.retry && found != peers_.end() && found->second.out == nullptr && !hung_up_) {
      found->second.pause_ms = kFirstPauseMs;
      dial(&found->second);
    }
    return;
  }
  Peer* const peer = &found->second;
  link->said_hello = true;
  link->from = hello.node;
  link->decoder.set_max_payload(net::kMaxFrame);
  if (peer->in != nullptr) drop(peer->in);
  peer->in = link;
  write(link, std::move(bytes));
  note_boot(peer->id, hello);
  if (link->transport != nullptr && peer->out == nullptr) {
    peer->pause_ms = kFirstPauseMs;
    dial(peer);
  }
}

void SimTransport::on_dialled_hello(const LinkPtr& link, const consensus::Hello& hello) {
  Peer* const peer = link->dialled;
  const uint64_t peer_id = peer->id;
  std::string refusal = events_->check_hello(hello, true).refused;
  bool soon = false;
  if (refusal.empty()) {
    refusal = hello.refused;
    soon = hello.retry;
  }
  if (link->transport == nullptr) return;
  if (!refusal.empty()) {
    if (!soon) machine_->world()->wrong("a controller refuses another: " + refusal);
    peer->pause_ms = soon ? std::min(peer->pause_ms, kLastPauseMs) : kRefusedPauseMs;
    on_end(link, false);
    events_->on_refused(peer_id, hello, refusal);
    return;
  }
  note_boot(peer->id, hello);
  if (link->transport == nullptr) return;
  if (!hello.serving) {
    peer->pause_ms = kLastPauseMs;
    on_end(link, false);
    return;
  }
  link->said_hello = true;
  peer->pause_ms = kFirstPauseMs;
  events_->on_connected(peer->id);
}

void SimTransport::note_boot(uint64_t id, const consensus::Hello& hello) {
  Peer& peer = peers_.at(id);
  const uint64_t before = peer.boot;
  peer.boot = hello.boot;
  if ((before != 0 && before != hello.boot) || !hello.serving) events_->on_gone(id);
}

void SimTransport::on_end(const LinkPtr& link, bool refused) {
  Peer* const dialled = link->dialled;
  const auto sender = peers_.find(link->from);
  const bool was_up = link->said_hello;
  const bool was_in = sender != peers_.end() && sender->second.in == link;
  drop(link);
  if (dialled != nullptr) {
    if (was_up) {
      dialled->pause_ms = kFirstPauseMs;
      dial(dialled);
    } else {
      dial_later(dialled);
      if (refused && dialled->in == nullptr) events_->on_gone(dialled->id);
    }
  } else if (was_in && sender->second.out == nullptr) {
    sender->second.pause_ms = kFirstPauseMs;
    dial(&sender->second);
  }
}

void SimTransport::drop(LinkPtr link) {
  if (link->transport == nullptr) return;
  link->transport = nullptr;
  links_.erase(link);
  if (link->dialled != nullptr && link->dialled->out == link) link->dialled->out = nullptr;
  const auto sender = peers_.find(link->from);
  if (sender != peers_.end() && sender->second.in == link) sender->second.in = nullptr;
  machine_->network()->close(link->connection, link->side);
}

void SimTransport::write(const LinkPtr& link, std::string bytes) {
  if (!machine_->dying()) machine_->network()->send(link->connection, link->side, std::move(bytes));
}

bool SimTransport::can_send(uint64_t peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.out != nullptr && found->second.out->said_hello;
}

void SimTransport::send(uint64_t peer, std::string frames) {
  if (can_send(peer)) write(peers_.at(peer).out, std::move(frames));
}

void SimTransport::sweep() {
  const uint64_t now = now_ms();
  const bool ping = now - last_ping_ms_ >= kPingMs;
  if (ping) last_ping_ms_ = now;
  std::string frame;
  if (ping) consensus::append_ping_frame(&frame);
  std::vector<LinkPtr> all;
  for (const auto& [id, peer] : peers_)  // not by address: each run is to be the same
    for (const LinkPtr& link : {peer.out, peer.in})
      if (link != nullptr) all.push_back(link);
  for (const LinkPtr& link : all) {
    if (link->transport == nullptr) continue;
    const uint64_t age = now - link->since_ms;
    if (!link->said_hello && age > (link->dialled != nullptr ? kDialTimeoutMs : kHelloTimeoutMs))
      on_end(link, false);
    else if (ping && link->said_hello && link->dialled != nullptr)
      write(link, frame);
  }
}

void SimTransport::hang_up() {
  hung_up_ = true;
  for (auto& [id, peer] : peers_) {
    if (peer.out != nullptr) drop(peer.out);
    if (peer.in != nullptr) drop(peer.in);
    machine_->stop_timer(peer.timer);
  }
}

void SimTransport::close() {
  hang_up();
  while (!links_.empty()) drop(*links_.begin());
  for (auto& [id, peer] : peers_) machine_->remove_timer(peer.timer);
  machine_->remove_timer(sweeper_);
  machine_->set_listener(nullptr);
}

}  // namespace xce::sim
