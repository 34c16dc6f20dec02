// What Node hears from its peers and about them, and the fast failover.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/node.h"

namespace xce::consensus {

std::vector<PeerStatus> Node::peers() const {
  std::vector<PeerStatus> out;
  const uint64_t now = now_ms();
  for (const Member& peer : members_.all) {
    if (peer.id == options_.self) continue;
    PeerStatus status;
    status.id = peer.id;
    status.connected = net_ != nullptr && net_->can_send(peer.id);
    if (running() && role_.role == Role::kLeader) {
      status.match_index = xce_core_match(core_, peer.id);
      status.lag = log_.last_index() - status.match_index;
    }
    const auto contact = last_contact_ms_.find(peer.id);
    if (contact != last_contact_ms_.end())
      status.last_contact_ms = static_cast<int64_t>(now - contact->second);
    out.push_back(status);
  }
  return out;
}

DiskStatus Node::disk() const {
  DiskStatus out;
  if (writer_ == nullptr) return out;
  out.write_s = writer_->write_times();
  out.backlog_bytes = writer_->backlog();
  return out;
}

void Node::adopt_peer(int fd, const std::string& already_read,
                      std::shared_ptr<net::TlsSession> tls) {
  if (net_ != nullptr) net_->adopt(fd, already_read, std::move(tls));
}

Hello Node::own_hello() {
  Hello hello;
  hello.node = options_.self;
  hello.cluster = dir_ ? dir_->cluster() : 0;
  if (dir_) hello.instance = dir_->instance();
  hello.boot = boot_;
  const Member* const self = members_.find(options_.self);
  hello.advertise = self != nullptr
                        ? address_text(self->host, self->port)
                        : address_text(options_.advertise_host, options_.advertise_port);
  hello.serving = running();
  hello.conf_index = conf_index_;
  hello.history = state_machine_->holds();
  return hello;
}

void Node::on_message(uint64_t from, PeerMessage& message) {
  if (!running()) return;
  const uint64_t now = now_ms();
  last_contact_ms_[from] = now;
  switch (message.kind) {
    case PeerMessage::kRaft:
      message.raft.peer = from;
      if (message.raft.type == XCE_MSG_APPEND_ENTRIES) {
        receive_append(message.raft);
        note_caught_up(message.raft.leader_commit);
      } else {
        xce_core_update update;
        const int rv = xce_core_receive(core_, now, &message.raft, &update);
        if (rv == XCE_CORE_BAD_MESSAGE) {
          spdlog::warn("consensus: node {} sent a message of type {} that breaks the protocol",
                       from, message.raft.type);
        } else {
          absorb(rv, update, "a message");
          if (message.raft.type == XCE_MSG_TIMEOUT_NOW) {
            handed_over_ = message.raft;
            handed_over_until_ms_ = now + static_cast<uint64_t>(options_.election_timeout_ms);
          }
        }
      }
      check_installer();
      if (running()) settle();
      break;
    case PeerMessage::kSnapshotPiece: on_snapshot_piece(from, message.piece); break;
    case PeerMessage::kSnapshotAck: on_snapshot_ack(from, message.ack); break;
    case PeerMessage::kStillLeading: on_question(from, message.question); break;
    case PeerMessage::kStillFollowing: on_answer(from, message.question); break;
    case PeerMessage::kSuspect:
      if (!xce_core_is_voter(core_, from)) break;
      failover_.on_suspect(
          from, message.suspect.term, message.suspect.primary,
          {message.suspect.last_term, message.suspect.last_index, message.suspect.applied}, now);
      said_applied_[from] = {message.suspect.applied, now};
      settle();
      break;
    default: break;
  }
}

// A primary asks whether we are in its term. Who is not says nothing: it may have voted for
// another.
void Node::on_question(uint64_t from, const LeaderQuestion& question) {
  if (xce_core_term(core_) != question.term || xce_core_state(core_) != XCE_STATE_FOLLOWER) return;
  std::string frame;
  append_still_following_frame(question, &frame);
  send_or_hold(from, std::move(frame));
}

void Node::on_answer(uint64_t from, const LeaderQuestion& answer) {
  if (!question_ || !(question_->asked == answer)) return;  // of an earlier question
  question_->yes.insert(from);
  settle();
}

// What our newest snapshot holds is committed, so it is the same in the log of whoever leads in our
// term or a later one. But our log may no longer begin before it, and then the core would refuse
// what the primary sends from there, until the primary sent a snapshot that is older than ours, and
// so on for ever: leave out what we have.
void Node::skip_known(xce_core_message* message) const {
  const uint64_t snapshot = log_.snapshot_index();
  if (message->prev_log_index >= snapshot || log_.has(message->prev_log_index) ||
      message->term < xce_core_term(core_))
    return;
  const uint64_t known = std::min<uint64_t>(snapshot - message->prev_log_index, message->n_entries);
  message->entries += known;
  message->n_entries -= static_cast<unsigned>(known);
  message->prev_log_index = snapshot;
  message->prev_log_term = log_.term_at(snapshot);
}

void Node::receive_append(xce_core_message message) {
  skip_known(&message);
  const xce_core_entry* const entries = message.entries;
  const unsigned n = message.n_entries;
  unsigned at = 0;
  bool first = true;
  while (running() && (first || at < n)) {
    // The previous part may have been refused; then so would this one be.
    if (!first && log_.term_at(message.prev_log_index) != message.prev_log_term) return;
    first = false;
    // The core takes a change of configuration for the first entry of its batch, so make it that.
    unsigned end = at;
    while (end < n && (end == at || entries[end].type != XCE_ENTRY_CHANGE)) end++;
    message.entries = entries + at;
    message.n_entries = end - at;
    // A leader asks for one change at a time: what comes before this one is committed, though not
    // applied here yet, and must not be rolled back with this one.
    if (at < n && entries[at].type == XCE_ENTRY_CHANGE) settle_changes_up_to(message);
    if (!running()) return;
    xce_core_update update;
    const int rv = xce_core_receive(core_, now_ms(), &message, &update);
    if (rv == XCE_CORE_BAD_MESSAGE || rv == XCE_CORE_IGNORED) {
      spdlog::warn("consensus: entries from node {} in term {} were not taken: {}", message.peer,
                   message.term, xce_core_strerror(rv));
      return;
    }
    absorb(rv, update, "entries from the primary");
    if (!running()) return;
    if (xce_core_term(core_) == message.term && xce_core_state(core_) == XCE_STATE_FOLLOWER) {
      // It leads, so it lives, whatever we thought.
      if (message.peer == failover_.primary() && message.term == failover_.term())
        failover_.set_suspecting(false);
      heard_leader_ = message.peer;
      heard_term_ = message.term;
    }
    if (message.n_entries > 0) {
      message.prev_log_term = entries[end - 1].term;
      message.prev_log_index += message.n_entries;
    }
    at = end;
  }
}

void Node::on_connected(uint64_t peer) {
  if (!running()) return;
  if (failover_.suspecting()) tell_suspicion(true);
  end_sending(peer, 0);  // it was on the connection before
  // A leader need not be told: the core sends a heartbeat within heartbeat_ms, and the answer
  // brings the rest.
  (void)peer;
}

void Node::on_gone(uint64_t peer) {
  if (!running() || peer != failover_.primary() || failover_.suspecting()) return;
  failover_.set_suspecting(true);
  if (!failover_.suspecting()) return;
  applied_at_suspicion_ = applied_;
  spdlog::warn("consensus: the process of primary {} is gone; asking the other nodes", peer);
  tell_suspicion(true);
  settle();
}

void Node::tell_suspicion(bool at_once) {
  const uint64_t now = now_ms();
  if (!at_once && now - last_told_ms_ < kSuspicionRepeatMs) return;
  last_told_ms_ = now;
  Suspect suspect;
  suspect.term = failover_.term();
  suspect.primary = failover_.primary();
  suspect.last_term = log_.last_term();
  suspect.last_index = log_.last_index();
  suspect.applied = applied_at_suspicion_;
  for (const Member& peer : members_.all) {
    if (peer.id == options_.self || peer.id == suspect.primary) continue;
    std::string frame;
    append_suspect_frame(suspect, &frame);
    send_or_hold(peer.id, std::move(frame));
  }
}

// Called after every event. In particular it comes again after each completed write: the core
// ignores the request to stand while entries are on their way to the disk.
// The core ignores TIMEOUT_NOW while entries are on their way to the disk: give it again after each
// completion.
void Node::take_over() {
  if (handed_over_until_ms_ == 0) return;
  if (xce_core_state(core_) != XCE_STATE_FOLLOWER || xce_core_term(core_) != handed_over_.term ||
      now_ms() > handed_over_until_ms_) {
    handed_over_until_ms_ = 0;
    return;
  }
  xce_core_update update;
  const int rv = xce_core_receive(core_, now_ms(), &handed_over_, &update);
  if (rv == XCE_CORE_BAD_MESSAGE) return;
  absorb(rv, update, "taking over");
  if (running() && xce_core_state(core_) == XCE_STATE_CANDIDATE) settle_again_ = true;
}

void Node::run_failover() {
  if (!failover_.suspecting()) return;
  tell_suspicion(false);
  const LogPosition own{log_.last_term(), log_.last_index(), applied_at_suspicion_};
  if (!failover_.should_stand(own, xce_core_voters(core_), now_ms())) return;
  if (xce_core_state(core_) != XCE_STATE_FOLLOWER || !xce_core_is_voter(core_, options_.self))
    return;
  xce_core_message stand{};
  stand.type = XCE_MSG_TIMEOUT_NOW;
  stand.peer = failover_.primary();
  stand.term = failover_.term();
  stand.last_log_index = own.index;
  stand.last_log_term = own.term;
  xce_core_update update;
  const int rv = xce_core_receive(core_, now_ms(), &stand, &update);
  if (rv == XCE_CORE_BAD_MESSAGE) return;
  absorb(rv, update, "standing for election");
  if (running() && xce_core_state(core_) == XCE_STATE_CANDIDATE) settle_again_ = true;
}

// A primary that has long to go on applying before it can serve leaves the role to one that has
// said that it has applied more. The longest log had to win the election, however little of it was
// applied.
void Node::leave_to_who_has_applied() {
  const uint64_t term = role_.term;
  if (role_.role != Role::kLeader || role_.ready || !apply_later_ || transfer_ ||
      left_in_term_ == term)
    return;
  NodeId best = 0;
  uint64_t most = applied_;
  for (const auto& [id, said] : said_applied_) {
    if (said.applied <= most || now_ms() - said.at_ms > kSuspicionLifetimeMs ||
        !xce_core_is_voter(core_, id) || !net_->can_send(id))
      continue;
    best = id;
    most = said.applied;
  }
  if (best == 0) return;
  left_in_term_ = term;
  spdlog::info(
      "consensus: node {} has {} entries to apply; node {} has applied them and takes over",
      options_.self, commit_ - applied_, best);
  transfer(best, [](const absl::Status& status) {
    if (!status.ok())
      spdlog::warn("consensus: nobody has taken over: {}", std::string(status.message()));
  });
}

}  // namespace xce::consensus
