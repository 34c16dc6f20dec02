// Snapshots: taking them, and shortening the log. (Sending and installing them: node_install.cc.)
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/node.h"
#include "libxce/base/crash_point.h"

namespace xce::consensus {
namespace {

constexpr uint64_t kChildPollMs = 20;
// Kept for connected followers, at most: times snapshot_trailing, times snapshot_trailing_bytes.
constexpr uint64_t kMostTrailing = 16;
constexpr size_t kMostTrailingBytes = 4;

}  // namespace

bool Node::snapshot_due() const {
  if (!backups_.empty()) return true;
  if (options_.snapshot_log_bytes == 0 || applied_bytes_ < options_.snapshot_log_bytes)
    return false;
  // Not on all nodes at once: a fork stops the loop for a moment.
  uint64_t due = options_.snapshot_log_bytes;
  for (const Member& peer : members_.all)
    if (peer.id < options_.self) due += options_.snapshot_log_bytes / 8;
  return applied_bytes_ >= due;
}

void Node::take_snapshot_if_due() {
  if (!backups_.empty()) answer_backups();
  if (!running() || !snapshot_due()) return;
  if (taker_->busy() || unkept_ || installer_ != nullptr || now_ms() < no_snapshot_before_ms_)
    return;
  // The log after a snapshot that is on its way must stay until it has arrived.
  if (!sending_.empty() || applied_ <= log_.snapshot_index() || conf_.empty()) return;
  SnapshotMeta meta;
  meta.index = applied_;
  meta.term = log_.term_at(applied_);
  meta.conf_index = conf_index_;
  meta.conf = conf_;
  meta.cluster = dir_->cluster();
  const uint64_t begin = around_->now_ns();
  const absl::Status status =
      taker_->start(meta, [this](const std::function<bool(std::string_view)>& write) {
        return state_machine_->save(write);
      });
  if (!status.ok()) {
    snapshot_failed(status);
    return;
  }
  spdlog::info("consensus: taking a snapshot of everything up to entry {}; the fork took {} ms",
               meta.index, (around_->now_ns() - begin) / 1000000);
  state_machine_->keep(meta.index);
  snapshot_begun_ms_ = now_ms();
  bytes_in_snapshot_ = applied_bytes_;
  if (child_timer_ == nullptr) child_timer_ = around_->timer([this] { look_after_child(); });
  child_timer_->start(kChildPollMs);
}

void Node::look_after_child() {
  if (!running() || (!taker_->busy() && !unkept_)) return;
  if (taker_->busy()) {
    const std::optional<absl::Status> ended = taker_->poll();
    if (ended && !ended->ok()) {
      snapshot_failed(*ended);
      return;
    }
    if (ended) unkept_ = taker_->meta();
  }
  // The file alone is not the state: what it leaves out must be safe as well.
  if (!unkept_ || state_machine_->kept() < unkept_->index) {
    child_timer_->start(kChildPollMs);
    return;
  }
  const SnapshotMeta meta = *std::exchange(unkept_, std::nullopt);
  snapshot_taken(meta);
  settle();
}

void Node::snapshot_failed(const absl::Status& status) {
  no_snapshot_before_ms_ = now_ms() + options_.snapshot_retry_ms;
  refuse_backups(status);
  spdlog::error(
      "consensus: no snapshot: {}. Nothing is lost: the log is kept whole, and grows, until one "
      "succeeds; next try in {} s",
      std::string(status.message()), options_.snapshot_retry_ms / 1000);
}

void Node::snapshot_taken(const SnapshotMeta& meta) {
  if (options_.snapshot_hook && options_.snapshot_hook(SnapshotStep::kTakeDone) != 0) return;
  if (meta.index <= log_.snapshot_index() || log_.term_at(meta.index) != meta.term)
    return;  // one was installed meanwhile
  const uint64_t trailing = trailing_for(meta.index);
  const uint64_t forget =
      meta.index > trailing && log_.has(meta.index - trailing) ? meta.index - trailing : 0;
  const xce_core_snapshot snapshot = core_snapshot(meta);
  xce_core_update update;
  const int rv =
      xce_core_snapshot_taken(core_, now_ms(), &snapshot, static_cast<unsigned>(trailing), &update);
  if (rv == XCE_CORE_IGNORED) return;
  const uint64_t before = log_.snapshot_index();
  log_.snapshot_taken(meta.index, forget);
  absorb(rv, update, "a snapshot");
  if (!running()) return;
  applied_bytes_ -= std::min(applied_bytes_, bytes_in_snapshot_);
  spdlog::info(
      "consensus: snapshot of everything up to entry {} is on disk after {} ms; the log begins at "
      "{}",
      meta.index, now_ms() - snapshot_begun_ms_, log_.first_index());
  crash_point("snapshot.before_shortening");
  // The one before stays if the log goes on from it: something to fall back on.
  const uint64_t keep = before != 0 && before + 1 >= log_.first_index() ? before : meta.index;
  if (forget > 0) writer_->enqueue_compaction(checkpoint(), std::min(forget, keep));
  around_->in_background(
      [fs = fs_, directory = snapshots_, keep] { remove_snapshots_below(fs, directory, keep); });
}

// How many entries before a snapshot at `index` to keep: enough for every connected follower to go
// on from its own log, within reason, and for those to whom a snapshot is on its way.
uint64_t Node::trailing_for(uint64_t index) const {
  uint64_t trailing =
      entries_within(index, options_.snapshot_trailing, options_.snapshot_trailing_bytes);
  const uint64_t most = entries_within(index, kMostTrailing * options_.snapshot_trailing,
                                       kMostTrailingBytes * options_.snapshot_trailing_bytes);
  for (const Member& peer : members_.all) {
    if (peer.id == options_.self || role_.role != Role::kLeader || !net_->can_send(peer.id))
      continue;
    const uint64_t match = xce_core_match(core_, peer.id);
    if (match > 0 && match < index && index - match <= most)
      trailing = std::max(trailing, index - match);
  }
  for (const auto& [peer, sending] : sending_)
    if (sending.index < index) trailing = std::max(trailing, index - sending.index);
  return std::min<uint64_t>(trailing, UINT32_MAX / 2);
}

// How many entries up to `index` take at most so many bytes; `entries` of them at most.
uint64_t Node::entries_within(uint64_t index, uint64_t entries, size_t bytes) const {
  uint64_t n = 0;
  for (size_t sum = 0; n < entries && n < index && log_.has(index - n); ++n) {
    sum += entry_item_size(log_.at(index - n).data.size());
    if (sum > bytes) break;
  }
  return n;
}

// What the log holds beside entries.
std::string Node::checkpoint() const {
  std::string items;
  append_term_vote_item(xce_core_term(core_), xce_core_vote(core_), &items);
  for (const auto& [node, instance] : instances_) append_instance_item(node, instance, &items);
  return items;
}

}  // namespace xce::consensus
