// Snapshots on their way: sent to nodes that are too far behind for the log, received and
// installed.
#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/node.h"

namespace xce::consensus {
namespace {

// On the way to a node, unacknowledged: small enough for heartbeats to pass in time behind it.
constexpr uint64_t kWindowBytes = uint64_t{512} << 10;
constexpr uint64_t kSendTimeoutMs = 5000;   // without a word from the receiver
constexpr uint64_t kRefusedPauseMs = 2000;  // after it has refused
constexpr uint64_t kAckRepeatMs = 500;
// Without a piece, a transfer that has not ended counts for nothing.
constexpr uint64_t kReceiveTimeoutMs = 30000;

}  // namespace

// ---- sending

void Node::send_snapshot(NodeId to) {
  const uint64_t now = now_ms();
  const auto known = sending_.find(to);
  if (known != sending_.end()) return;
  const auto pause = send_pause_.find(to);
  if (pause != send_pause_.end() && now < pause->second) return;
  const std::string path = snapshot_path(snapshots_, log_.snapshot_index());
  const int fd = fs_->open(path, O_RDONLY, 0);
  const int64_t size = fd < 0 ? fd : fs_->size(fd);
  if (size <= 0) {
    if (fd >= 0) fs_->close(fd);
    send_pause_[to] = now + kRefusedPauseMs;
    spdlog::error("consensus: node {} needs the snapshot, but {}", to,
                  std::string(file_error(static_cast<int>(size), "read", path).message()));
    return;
  }
  Sending sending;
  sending.transfer = around_->random();
  sending.index = log_.snapshot_index();
  sending.term = xce_core_term(core_);
  sending.fd = fd;
  sending.file_bytes = static_cast<uint64_t>(size);
  sending.heard_ms = now;
  sending.packing = true;
  sending_.emplace(to, sending);
  state_machine_->pack(peer_holds_[to], [this, to, transfer = sending.transfer](
                                            const absl::StatusOr<std::string>& history) {
    send_packed(to, transfer, history);
  });
}

// history: the file that goes with the snapshot; an empty path: none.
void Node::send_packed(NodeId to, uint64_t transfer, const absl::StatusOr<std::string>& history) {
  const auto found = sending_.find(to);
  const bool wanted = running() && found != sending_.end() && found->second.transfer == transfer;
  absl::Status status = history.status();
  int fd = -1;
  int64_t size = 0;
  if (history.ok() && !history->empty()) {
    if (wanted) fd = fs_->open(*history, O_RDONLY, 0);
    if (wanted) size = fd < 0 ? fd : fs_->size(fd);
    if (size < 0) status = file_error(static_cast<int>(size), "read", *history);
    (void)fs_->unlink(*history);
  }
  if (!wanted || !status.ok()) {
    if (fd >= 0) fs_->close(fd);
    if (!wanted) return;
    spdlog::error("consensus: node {} needs the snapshot, but {}", to,
                  std::string(status.message()));
    end_sending(to, kRefusedPauseMs);
    return;
  }
  Sending& sending = found->second;
  sending.packing = false;
  sending.history_fd = fd;
  sending.total = sending.file_bytes + static_cast<uint64_t>(size);
  sending.heard_ms = now_ms();
  spdlog::info(
      "consensus: node {} is too far behind for the log: sending it the snapshot up to entry {}, "
      "{} bytes, and {} bytes of history",
      to, sending.index, sending.file_bytes, size);
  pump_snapshot(to, &sending);
}

void Node::pump_snapshot(NodeId to, Sending* sending) {
  while (sending->sent < sending->total && sending->sent - sending->acked < kWindowBytes &&
         net_->can_send(to)) {
    const bool history = sending->sent >= sending->file_bytes;
    const uint64_t from = history ? sending->file_bytes : 0;
    const uint64_t end = history ? sending->total : sending->file_bytes;
    SnapshotPiece piece;
    piece.transfer = sending->transfer;
    piece.term = sending->term;
    piece.index = sending->index;
    piece.total = sending->total;
    piece.file_bytes = sending->file_bytes;
    piece.offset = sending->sent;
    piece.data.resize(std::min<uint64_t>(kMaxSnapshotPiece, end - sending->sent));
    const int64_t n = fs_->pread(history ? sending->history_fd : sending->fd, piece.data.data(),
                                 piece.data.size(), sending->sent - from);
    if (n <= 0) {
      spdlog::error("consensus: {}",
                    std::string(file_error(n < 0 ? static_cast<int>(n) : -EIO, "read",
                                           snapshot_path(snapshots_, sending->index))
                                    .message()));
      end_sending(to, kRefusedPauseMs);
      return;
    }
    piece.data.resize(static_cast<size_t>(n));
    sending->sent += static_cast<uint64_t>(n);
    std::string frame;
    append_snapshot_piece_frame(piece, &frame);
    send_or_hold(to, std::move(frame));
  }
}

void Node::end_sending(NodeId to, uint64_t pause_ms) {
  const auto found = sending_.find(to);
  if (found == sending_.end()) return;
  fs_->close(found->second.fd);
  if (found->second.history_fd >= 0) fs_->close(found->second.history_fd);
  sending_.erase(found);
  send_pause_[to] = now_ms() + pause_ms;
}

void Node::end_all_sending() {
  while (!sending_.empty()) end_sending(sending_.begin()->first, 0);
}

void Node::on_snapshot_ack(NodeId from, const SnapshotAck& ack) {
  const auto found = sending_.find(from);
  if (found == sending_.end() || found->second.transfer != ack.transfer) return;
  Sending& sending = found->second;
  sending.heard_ms = now_ms();
  if (!ack.refused.empty()) {
    spdlog::warn("consensus: node {} does not take the snapshot: {}", from, ack.refused);
    end_sending(from, kRefusedPauseMs);
    return;
  }
  if (ack.received <= sending.sent) sending.acked = std::max(sending.acked, ack.received);
  pump_snapshot(from, &sending);
}

// Ends the transfers that have arrived or that nobody answers. The core asks for another one if
// need be.
void Node::check_sending() {
  if (sending_.empty()) return;
  const uint64_t now = now_ms();
  const bool leads = xce_core_state(core_) == XCE_STATE_LEADER;
  std::vector<NodeId> ended;
  for (const auto& [to, sending] : sending_) {
    const bool arrived = leads && xce_core_match(core_, to) >= sending.index;
    const bool lost = !leads || xce_core_term(core_) != sending.term || !net_->can_send(to) ||
                      (!sending.packing && now - sending.heard_ms > kSendTimeoutMs);
    if (!arrived && !lost) continue;
    ended.push_back(to);
    if (arrived)
      spdlog::info("consensus: node {} has the snapshot up to entry {}", to, sending.index);
    else
      spdlog::warn(
          "consensus: the snapshot did not get to node {}: {} of {} bytes were acknowledged", to,
          sending.acked, sending.total);
  }
  for (const NodeId to : ended) end_sending(to, 0);
}

// ---- receiving

void Node::on_snapshot_piece(NodeId from, SnapshotPiece& piece) {
  if (piece.term < xce_core_term(core_) || xce_core_state(core_) == XCE_STATE_LEADER) return;
  const uint64_t now = now_ms();
  const bool same = installer_ != nullptr && installer_->source().transfer == piece.transfer &&
                    installer_->source().from == from;
  if (!same) {
    if (installer_ != nullptr && installer_->complete()) {
      // What is being loaded serves this primary as well as the one that sent it. Let it know that
      // we live.
      SnapshotAck wait;
      wait.transfer = piece.transfer;
      send_snapshot_ack(from, wait);
      return;
    }
    if (piece.offset != 0) return;  // the rest of one that was given up
    give_up_install();
    SnapshotInstaller::Environment environment;
    environment.fs = fs_;
    environment.directory = snapshots_;
    environment.cluster = dir_->cluster();
    environment.state_machine = state_machine_;
    environment.hook = options_.snapshot_hook;
    environment.wake = [waker = disk_waker_.get()] { waker->wake(); };
    spdlog::info("consensus: receiving a snapshot up to entry {} from node {}, {} bytes",
                 piece.index, from, piece.total);
    installer_ = around_->snapshot_installer(
        std::move(environment),
        SnapshotInstaller::Source{from, piece.transfer, piece.term, piece.index, piece.total,
                                  piece.file_bytes});
    acked_ = 0;
  }
  piece_ms_ = now;
  if (piece.offset != installer_->taken() || piece.total != installer_->source().total) return;
  installer_->add(std::move(piece.data));
}

void Node::send_snapshot_ack(NodeId to, const SnapshotAck& ack) {
  std::string frame;
  append_snapshot_ack_frame(ack, &frame);
  send_or_hold(to, std::move(frame));
}

// The installer's thread may be waiting for the disk; nobody waits for it here.
void Node::give_up_install() {
  if (installer_ == nullptr) return;
  installer_->give_up();
  leaving_.push_back(std::move(installer_));
}

// Called when the installer has got on, and whenever the primary is heard.
void Node::check_installer() {
  leaving_.erase(std::remove_if(leaving_.begin(), leaving_.end(),
                                [](const auto& each) { return each->done(); }),
                 leaving_.end());
  if (installer_ == nullptr) return;
  const uint64_t now = now_ms();
  if (installer_->done()) {
    finish_install();
    return;
  }
  const uint64_t written = installer_->written();
  if (written != acked_ || (installer_->complete() && now - ack_ms_ >= kAckRepeatMs)) {
    acked_ = written;
    ack_ms_ = now;
    SnapshotAck ack;
    ack.transfer = installer_->source().transfer;
    ack.received = written;
    send_snapshot_ack(installer_->source().from, ack);
  } else if (!installer_->complete() && now - piece_ms_ > kReceiveTimeoutMs) {
    spdlog::warn("consensus: the snapshot from node {} stopped coming", installer_->source().from);
    give_up_install();
  }
}

void Node::finish_install() {
  SnapshotInstaller::Result result = installer_->take_result();
  const SnapshotInstaller::Source source = installer_->source();
  installer_.reset();
  if (!result.status.ok()) {
    spdlog::error("consensus: the snapshot from node {} was not installed: {}", source.from,
                  std::string(result.status.message()));
    SnapshotAck refusal;
    refusal.transfer = source.transfer;
    refusal.refused = std::string(result.status.message());
    send_snapshot_ack(source.from, refusal);
    return;
  }
  const xce_core_snapshot snapshot = core_snapshot(result.meta);
  xce_core_message message{};
  message.type = XCE_MSG_INSTALL_SNAPSHOT;
  message.peer = source.from;
  message.term = source.term;
  message.snapshot = &snapshot;
  // It holds only what is committed, so it is good for a later primary, too.
  if (heard_term_ == xce_core_term(core_) && heard_term_ > source.term && heard_leader_ != 0) {
    message.peer = heard_leader_;
    message.term = heard_term_;
  }
  xce_core_update update;
  const int rv = xce_core_receive(core_, now_ms(), &message, &update);
  const bool taken = rv == XCE_CORE_OK && (update.flags & XCE_UPDATE_SNAPSHOT) != 0;
  if (rv != XCE_CORE_BAD_MESSAGE) absorb(rv, update, "a snapshot");
  if (!running()) return;
  if (taken) {
    adopt_snapshot(result.meta, result.state.get());
  } else if (result.meta.index != log_.snapshot_index()) {
    spdlog::info("consensus: the snapshot up to entry {} is no longer needed", result.meta.index);
    (void)fs_->unlink(snapshot_path(snapshots_, result.meta.index));
  }
  if (result.state != nullptr) {
    std::shared_ptr<StateMachine::Restored> old = std::move(result.state);
    around_->in_background([old]() mutable { old.reset(); });
  }
  if (running()) settle();
}

// The core has forgotten the log: so do the log, the disk and the state machine. The snapshot
// itself is on disk.
void Node::adopt_snapshot(const SnapshotMeta& meta, StateMachine::Restored* state) {
  if (meta.index <= applied_) {
    fail(absl::InternalError(absl::StrCat("Raft wants the state of entry ", meta.index,
                                          " installed, but ", applied_,
                                          " are applied. Please report this.")));
    return;
  }
  taker_->cancel();
  unkept_.reset();
  log_ = MemoryLog({}, meta.index + 1, meta.index, meta.term);
  pending_writes_.clear();
  stored_ = meta.index;
  commit_ = std::max(commit_, meta.index);
  applied_ = meta.index;
  conf_index_ = meta.conf_index;
  conf_ = meta.conf;
  changes_.clear();
  own_first_ = 0;
  applied_bytes_ = 0;
  std::string items = checkpoint();
  append_reset_item(meta.index, &items);
  writer_->enqueue_compaction(std::move(items), meta.index);
  spdlog::info("consensus: installed the snapshot up to entry {}", meta.index);
  state_machine_->restore(meta.index, state);
  if (!running()) return;
  members_changed();
  if (options_.snapshot_hook && options_.snapshot_hook(SnapshotStep::kInstallTaken) != 0) return;
  xce_core_update update;
  const int rv = xce_core_snapshot_installed(core_, now_ms(), &update);
  absorb(rv, update, "an installed snapshot");
  around_->in_background([fs = fs_, directory = snapshots_, keep = meta.index] {
    remove_snapshots_below(fs, directory, keep);
  });
  // What was proposed here while this node led: the snapshot may hold it, or not.
  std::multimap<uint64_t, Waiter> waiters;
  waiters.swap(waiters_);
  for (auto& [index, waiter] : waiters) waiter.done({Outcome::kUnknown, index, waiter.term});
}

}  // namespace xce::consensus
