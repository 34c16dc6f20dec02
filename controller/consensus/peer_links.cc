#include "controller/consensus/peer_links.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace xce::consensus {
namespace {

constexpr uint64_t kDialTimeoutMs = 1000;   // connect and hello
constexpr uint64_t kHelloTimeoutMs = 5000;  // of a link that was accepted
constexpr uint64_t kPingMs = 1000;
constexpr uint64_t kFirstPauseMs = 5;
constexpr uint64_t kLastPauseMs = 200;
constexpr uint64_t kRefusedPauseMs = 2000;
constexpr size_t kMaxStrangers = 32;  // accepted links that have not said hello

std::string hello_frame(const Hello& hello) {
  std::string bytes;
  append_hello_frame(hello, &bytes);
  return bytes;
}

}  // namespace

PeerLinks::Peer* PeerLinks::find(uint64_t id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

void PeerLinks::add_peer(uint64_t id) {
  peers_[id].pause_ms = kFirstPauseMs;
  dial(id);
}

void PeerLinks::remove_peer(uint64_t id) {
  Peer* const peer = find(id);
  if (peer == nullptr) return;
  drop(peer->out);
  drop(peer->in);
  io_->stop_pause(id);
  peers_.erase(id);
}

PeerLinks::LinkId PeerLinks::open(uint64_t dialled) {
  Link& link = links_[++last_id_];
  link.dialled = dialled;
  link.since_ms = io_->now_ms();
  return last_id_;
}

void PeerLinks::dial(uint64_t id) {
  Peer* const peer = find(id);
  if (hung_up_ || peer == nullptr || peer->out != 0) return;
  io_->stop_pause(id);
  peer->waiting = false;
  peer->out = open(id);
  io_->dial(peer->out, id);
}

void PeerLinks::dial_now(uint64_t id) {
  peers_.at(id).pause_ms = kFirstPauseMs;
  dial(id);
}

void PeerLinks::dial_later(uint64_t id) {
  Peer& peer = peers_.at(id);
  if (hung_up_ || peer.waiting) return;
  const uint64_t pause = peer.pause_ms / 2 + io_->random() % (peer.pause_ms / 2 + 1);
  peer.pause_ms = std::min(peer.pause_ms * 2, kLastPauseMs);
  peer.waiting = true;
  io_->start_pause(id, pause);
}

void PeerLinks::pause_over(uint64_t id) {
  if (Peer* const peer = find(id)) peer->waiting = false;
  dial(id);
}

PeerLinks::LinkId PeerLinks::accepted() {
  size_t strangers = 0;
  LinkId oldest = 0;
  for (const auto& [id, link] : links_) {
    if (link.dialled != 0 || link.said_hello) continue;
    if (oldest == 0) oldest = id;
    strangers++;
  }
  if (strangers >= kMaxStrangers) drop(oldest);
  return open(0);
}

void PeerLinks::up(LinkId id) { io_->write(id, hello_frame(events_->own_hello())); }

void PeerLinks::received(LinkId id, std::string_view bytes) {
  links_.at(id).decoder.feed(bytes);
  for (auto found = links_.find(id); found != links_.end(); found = links_.find(id)) {
    Link& link = found->second;
    auto frame = link.decoder.next();
    PeerMessage message;
    absl::Status status = frame.status();
    if (status.ok() && !frame->has_value()) return;
    if (status.ok()) status = decode_peer_message(std::move(**frame), &message);
    if (status.ok() && !link.said_hello && message.kind != PeerMessage::kHello)
      status = absl::InvalidArgumentError("peer message before hello");
    if (!status.ok()) {
      io_->complain("connection " + std::string(link.dialled != 0 ? "to" : "from") + " node " +
                    std::to_string(link.dialled != 0 ? link.dialled : link.from) +
                    " closed: " + status.ToString());
      ended(id, End::kLost);
      return;
    }
    if (message.kind == PeerMessage::kHello) {
      on_hello(id, message.hello);
    } else if (link.dialled == 0 && message.kind != PeerMessage::kUnknown) {
      events_->on_message(link.from, message);
    }
  }
}

void PeerLinks::on_hello(LinkId id, const Hello& hello) {
  if (links_.at(id).said_hello) return;
  if (links_.at(id).dialled != 0) {
    on_dialled_hello(id, hello);
    return;
  }
  Hello answer = events_->own_hello();
  answer.refused = io_->not_node(id, hello.node);
  if (answer.refused.empty()) {  // asked after that, as check_hello may remember the node
    Greeting greeting = events_->check_hello(hello, false);
    answer.refused = std::move(greeting.refused);
    answer.retry = greeting.retry;
    answer.removed = greeting.removed;
  }
  if (!has(id)) return;
  Peer* const peer = find(hello.node);
  if (peer == nullptr && answer.refused.empty()) answer.refused = "not a member of this cluster";
  if (!answer.refused.empty() || hung_up_) {
    refuse(id, hello, answer);
    return;
  }
  Link& link = links_.at(id);
  link.said_hello = true;
  link.from = hello.node;
  link.decoder.set_max_payload(net::kMaxFrame);
  drop(peer->in);
  peer->in = id;
  io_->write(id, hello_frame(answer));
  note_boot(hello.node, hello);
  // A peer that has just come up need not wait for our pause to end.
  if (has(id) && peers_.at(hello.node).out == 0) dial_now(hello.node);
}

void PeerLinks::refuse(LinkId id, const Hello& hello, const Hello& answer) {
  // It will try again and again: once in the log is enough.
  if (refusals_.size() > 64) refusals_.clear();
  if (!answer.refused.empty() && !answer.retry && refusals_[hello.node] != answer.refused)
    io_->turned_away(hello, answer.refused);
  refusals_[hello.node] = answer.refused;
  io_->write(id, hello_frame(answer));
  drop(id);
  // It waits for us to reach it.
  const Peer* const peer = find(hello.node);
  if (answer.retry && peer != nullptr && peer->out == 0 && !hung_up_) dial_now(hello.node);
}

void PeerLinks::on_dialled_hello(LinkId id, const Hello& hello) {
  const uint64_t peer_id = links_.at(id).dialled;
  std::string refusal;
  bool soon = false;
  if (hello.node != peer_id) {
    refusal = "node " + std::to_string(hello.node) + " answers at its address";
  } else {
    refusal = events_->check_hello(hello, true).refused;
    if (refusal.empty()) {
      refusal = hello.refused;
      soon = hello.retry;
    }
  }
  if (!has(id)) return;
  Peer& peer = peers_.at(peer_id);
  if (!refusal.empty()) {
    if (soon)
      peer.pause_ms = std::min(peer.pause_ms, kLastPauseMs);
    else
      slow_down(peer_id, refusal);
    ended(id, End::kLost);
    events_->on_refused(peer_id, hello, refusal);
    return;
  }
  peer.refusal.clear();
  note_boot(peer_id, hello);
  if (!has(id)) return;
  if (!hello.serving) {
    peer.pause_ms = kLastPauseMs;
    ended(id, End::kLost);
    return;
  }
  links_.at(id).said_hello = true;
  peer.pause_ms = kFirstPauseMs;
  events_->on_connected(peer_id);
}

void PeerLinks::unwelcome(LinkId id, const std::string& why) {
  slow_down(links_.at(id).dialled, why);
  ended(id, End::kLost);
}

// Says so once, and asks less often from now on.
void PeerLinks::slow_down(uint64_t id, const std::string& why) {
  Peer& peer = peers_.at(id);
  if (why != peer.refusal) io_->refused(id, why);
  peer.refusal = why;
  peer.pause_ms = kRefusedPauseMs;
}

void PeerLinks::note_boot(uint64_t id, const Hello& hello) {
  Peer& peer = peers_.at(id);
  const uint64_t before = peer.boot;
  peer.boot = hello.boot;
  if ((before != 0 && before != hello.boot) || !hello.serving) events_->on_gone(id);
}

void PeerLinks::ended(LinkId id, End end) {
  const Link& link = links_.at(id);
  const uint64_t dialled = link.dialled, from = link.from;
  const bool was_up = link.said_hello;
  const Peer* const sender = find(from);
  const bool was_in = sender != nullptr && sender->in == id;
  drop(id);
  if (dialled != 0 && was_up) {
    dial_now(dialled);
  } else if (dialled != 0) {
    dial_later(dialled);
    if (end == End::kRefused && peers_.at(dialled).in == 0) events_->on_gone(dialled);
  } else if (was_in && sender->out == 0) {
    dial_now(from);  // a look at once, as no dialled link is there to tell
  }
}

void PeerLinks::drop(LinkId id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  Peer* const dialled = find(found->second.dialled);
  Peer* const sender = find(found->second.from);
  if (dialled != nullptr && dialled->out == id) dialled->out = 0;
  if (sender != nullptr && sender->in == id) sender->in = 0;
  links_.erase(found);
  io_->close(id);
}

bool PeerLinks::can_send(uint64_t id) const {
  const auto found = peers_.find(id);
  if (found == peers_.end() || found->second.out == 0) return false;
  return links_.at(found->second.out).said_hello && io_->can_write(found->second.out);
}

bool PeerLinks::connected_from(uint64_t id) const {
  const auto found = peers_.find(id);
  return found != peers_.end() && found->second.in != 0;
}

void PeerLinks::send(uint64_t id, std::string frames) {
  if (can_send(id)) io_->write(peers_.at(id).out, std::move(frames));
}

void PeerLinks::sweep() {
  const uint64_t now = io_->now_ms();
  const bool ping = now - last_ping_ms_ >= kPingMs;
  if (ping) last_ping_ms_ = now;
  std::string frame;
  if (ping) append_ping_frame(&frame);
  std::vector<LinkId> all;
  for (const auto& [id, link] : links_) all.push_back(id);
  for (const LinkId id : all) {
    const auto found = links_.find(id);
    if (found == links_.end()) continue;
    const Link& link = found->second;
    if (!link.said_hello) {
      const uint64_t limit = link.dialled != 0 ? kDialTimeoutMs : kHelloTimeoutMs;
      if (now - link.since_ms > limit) ended(id, End::kLost);
    } else if (ping && link.dialled != 0) {
      io_->write(id, frame);
    }
  }
}

void PeerLinks::hang_up() {
  hung_up_ = true;
  for (auto& [id, peer] : peers_) {
    drop(peer.out);
    drop(peer.in);
    io_->stop_pause(id);
    peer.waiting = false;
  }
}

void PeerLinks::close() {
  hang_up();
  while (!links_.empty()) drop(links_.begin()->first);
}

}  // namespace xce::consensus
