#include "controller/consensus/node.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/uv_surroundings.h"
#include "libxce/base/crash_point.h"

namespace xce::consensus {
namespace {

constexpr uint64_t kLateMs = 20;           // a timer that comes so late tells of a pause
constexpr uint64_t kStallMs = 1500;        // of the disk of a primary, before it looks for another
constexpr uint64_t kLeaveAgainMs = 10000;  // disks that are all slow must not pass the role around
constexpr size_t kMaxHeldBytes = size_t{32} << 20;

}  // namespace

Node::Node(std::unique_ptr<Surroundings> around, Options options, StateMachine* state_machine,
           Listener* listener)
    : around_(std::move(around)),
      options_(std::move(options)),
      state_machine_(state_machine),
      listener_(listener),
      boot_(around_->random() | 1),
      fs_(options_.fs != nullptr ? options_.fs : posix_file_system()),
      failover_(options_.self) {}

Node::~Node() {
  stop();
  xce_core_free(core_);
}

uint64_t Node::now_ms() const { return around_->now_ns() / 1000000; }

absl::Status Node::start() {
  absl::Status status = check_options();
  if (!status.ok()) return status;
  // A connection may end while we write to it; libuv reports that, unless the signal kills us
  // first.
  struct sigaction action;
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL)
    ::signal(SIGPIPE, SIG_IGN);
  disk_waker_ = around_->waker([this] { on_disk_progress(); });
  status = open_log();
  if (!status.ok()) {
    stop();
    return status;
  }
  timer_ = around_->timer([this] { on_timer(); });
  turns_ = around_->turns([this] { flush(); }, [this] { apply_more(); });
  const unsigned user_timeout_ms =
      static_cast<unsigned>(std::max(1000, 4 * options_.election_timeout_ms));
  net_ = around_->transport(this, user_timeout_ms, options_.seed ^ boot_, options_.tls);
  connect_members();
  settle();
  return absl::OkStatus();
}

void Node::stop() {
  if (stopped_) return;
  stopped_ = true;
  if (net_ != nullptr) net_->close();
  timer_.reset();
  turns_.reset();
  child_timer_.reset();
  if (taker_ != nullptr) taker_->cancel();
  installer_.reset();
  leaving_.clear();
  end_all_sending();
  writer_.reset();
  disk_waker_.reset();
  role_ = RoleInfo{};
  refuse_all();
  dir_.reset();
}

void Node::fail(absl::Status status) {
  if (failed_ || stopped_) return;
  failed_ = true;
  spdlog::critical("consensus: this node stops serving: {}", status.ToString());
  if (net_ != nullptr) net_->hang_up();
  if (timer_ != nullptr) timer_->stop();
  if (turns_ != nullptr) turns_->set_busy(false);
  held_.clear();
  held_bytes_ = 0;
  if (taker_ != nullptr) taker_->cancel();
  give_up_install();
  end_all_sending();
  role_ = RoleInfo{};
  listener_->on_role(role_);
  refuse_all();
  if (!stopped_) listener_->on_fatal(std::move(status));
}

void Node::on_timer() {
  if (!running()) return;
  const uint64_t now = now_ms();
  if (now > timer_due_ms_ + kLateMs && !timer_deferred_) {
    // The loop, or the whole machine, stood still. Heartbeats and answers may lie unread in the
    // sockets: read first, or a pause of ours looks like the silence of the others.
    timer_deferred_ = true;
    arm_timer();
    return;
  }
  timer_deferred_ = false;
  if (now >= xce_core_timeout_at(core_)) {
    xce_core_update update;
    const int rv = xce_core_timeout(core_, now, &update);
    absorb(rv, update, "timeout");
  }
  if (running()) check_sending();
  if (running()) leave_to_a_faster_disk();
  settle();
}

// A primary whose disk has stopped for seconds holds up every write, since it applies only what it
// has stored; the others' disks are as good. So it hands over, if another one has stored more.
void Node::leave_to_a_faster_disk() {
  const uint64_t now = now_ms();
  if (pending_writes_.empty() || now < disk_heard_ms_ + kStallMs || now < no_leaving_before_ms_ ||
      transfer_ || xce_core_state(core_) != XCE_STATE_LEADER)
    return;
  bool another = false;
  for (const PeerStatus& peer : peers())
    another = another ||
              (peer.connected && xce_core_is_voter(core_, peer.id) && peer.match_index > stored_);
  if (!another) return;
  no_leaving_before_ms_ = now + kLeaveAgainMs;
  spdlog::error(
      "consensus: the disk under {} has not finished a write for {} ms; handing the primary role "
      "over. Look at the disk: nothing is lost, but this node falls behind",
      options_.data_dir, now - disk_heard_ms_);
  transfer(0, [](const absl::Status& status) {
    if (!status.ok())
      spdlog::warn("consensus: nobody has taken over: {}", std::string(status.message()));
  });
}

void Node::arm_timer() {
  if (!running() || timer_ == nullptr) return;
  uint64_t at = xce_core_timeout_at(core_);
  const uint64_t now = now_ms();
  if (failover_.suspecting()) at = std::min(at, last_told_ms_ + kSuspicionRepeatMs);
  const uint64_t delay = at > now ? at - now : 1;
  timer_due_ms_ = now + delay;
  timer_->start(delay);
}

void Node::absorb(int result, const xce_core_update& update, const char* event) {
  if (!running()) return;
  if (result == XCE_CORE_IGNORED) return;
  if (result != XCE_CORE_OK) {
    fail(absl::InternalError(
        absl::StrCat("Raft refuses to go on after ", event, ": ", xce_core_strerror(result),
                     ". The log in ", options_.data_dir,
                     "/log contradicts the cluster's: move the directory aside and bring this node "
                     "back with `xce cluster replace ",
                     options_.self, "`.")));
    return;
  }
  if ((update.flags & (XCE_UPDATE_TERM | XCE_UPDATE_VOTE)) != 0) {
    crash_point("vote.before_write");
    std::string items;
    append_term_vote_item(xce_core_term(core_), xce_core_vote(core_), &items);
    meta_ticket_ = writer_->enqueue(std::move(items));
  }
  if ((update.flags & XCE_UPDATE_STATE) != 0) own_first_ = 0;
  if ((update.flags & XCE_UPDATE_ENTRIES) != 0) take_entries(update);
  if (!running()) return;
  send_messages(update);
  commit_ = std::max(commit_, xce_core_commit(core_));
}

void Node::take_entries(const xce_core_update& update) {
  const uint64_t first = update.entries_index;
  if (first == 0 || first > log_.last_index() + 1 || first <= applied_) {
    fail(absl::InternalError(absl::StrCat(
        "Raft wants entries written at index ", first, ", the log ends at ", log_.last_index(),
        " and is applied up to ", applied_, ". Please report this.")));
    return;
  }
  std::string items;
  bool members_moved = false;
  if (first <= log_.last_index()) {
    // Writes under way of what is now gone must never count as stored.
    append_truncate_item(first, &items);
    log_.truncate(first);
    members_moved = forget_changes_from(first);
    stored_ = std::min(stored_, first - 1);
    while (!pending_writes_.empty() && pending_writes_.back().first >= first)
      pending_writes_.pop_back();
    if (!pending_writes_.empty() && pending_writes_.back().last >= first)
      pending_writes_.back().last = first - 1;
  }
  const size_t max_item =
      std::min(kMaxRecordBytes, LogStore::max_items(options_.segment_bytes)) / 2;
  unsigned at = 0;
  while (at < update.n_entries) {
    // As many entries as go into one record; nearly always all of them.
    size_t bytes = 0;
    unsigned n = 0;
    while (at + n < update.n_entries &&
           (n == 0 || bytes + entry_item_size(update.entries[at + n].len) <= max_item)) {
      bytes += entry_item_size(update.entries[at + n].len);
      n++;
    }
    items.reserve(items.size() + bytes + 32);
    append_entries_item(first + at, n, &items);
    for (unsigned i = 0; i < n; i++) {
      const xce_core_entry& e = update.entries[at + i];
      const std::string_view data(static_cast<const char*>(e.data), e.len);
      append_entry(e.term, static_cast<uint16_t>(e.type), data, &items);
      log_.append({e.term, static_cast<uint16_t>(e.type), std::string(data)});
      if (e.type != XCE_ENTRY_CHANGE) continue;
      changes_[log_.last_index()] = std::string(data);
      members_moved = true;
    }
    if (pending_writes_.empty()) disk_heard_ms_ = now_ms();
    const uint64_t ticket = writer_->enqueue(std::move(items), first + at + n - 1);
    items.clear();
    pending_writes_.push_back({ticket, first + at, first + at + n - 1});
    at += n;
  }
  if (xce_core_state(core_) == XCE_STATE_LEADER && own_first_ == 0) own_first_ = first;
  if (members_moved) members_changed();
}

void Node::on_disk_progress() {
  if (!running() || writer_ == nullptr) return;
  const LogWriter::Progress progress = writer_->progress();
  if (progress.durable > durable_ticket_) {
    durable_ticket_ = progress.durable;
    disk_heard_ms_ = now_ms();
    while (!held_.empty() && held_.front().ticket <= durable_ticket_) {
      held_bytes_ -= held_.front().frame.size();
      net_->send(held_.front().to, std::move(held_.front().frame));
      held_.pop_front();
    }
    uint64_t persisted = 0;
    while (!pending_writes_.empty() && pending_writes_.front().ticket <= durable_ticket_) {
      persisted = pending_writes_.front().last;
      pending_writes_.pop_front();
    }
    if (persisted > stored_) {
      stored_ = persisted;
      xce_core_update update;
      const int rv = xce_core_persisted(core_, now_ms(), persisted, &update);
      absorb(rv, update, "a write");
    }
  }
  if (!progress.error.ok()) {
    fail(progress.error);
    return;
  }
  if (!progress.cleanup.ok() && progress.cleanup != cleanup_) {
    spdlog::error("consensus: old segments of the log stay for now: {}",
                  std::string(progress.cleanup.message()));
    cleanup_ = progress.cleanup;
  }
  check_installer();
  if (running()) settle();
}

void Node::send_messages(const xce_core_update& update) {
  for (unsigned i = 0; i < update.n_messages; i++) {
    const xce_core_message& m = update.messages[i];
    if (net_ == nullptr || !net_->can_send(m.peer)) continue;
    if (m.type == XCE_MSG_INSTALL_SNAPSHOT) {
      send_snapshot(m.peer);
    } else if (m.type == XCE_MSG_APPEND_ENTRIES) {
      send_append_entries(m);
    } else {
      std::string frame;
      append_raft_frame(m, &frame);
      if (!frame.empty()) send_or_hold(m.peer, std::move(frame));
    }
  }
}

// What the core sends as one message may be larger than a frame: it goes as several, each of which
// stands for itself.
void Node::send_append_entries(const xce_core_message& message) {
  xce_core_message part = message;
  std::vector<xce_core_entry> entries;
  const uint64_t end = message.prev_log_index + message.n_entries;
  if (end > log_.last_index()) {
    fail(absl::InternalError(
        "Raft wants entries sent that the log does not have. Please report this."));
    return;
  }
  do {
    entries.clear();
    size_t bytes = 0;
    while (part.prev_log_index + entries.size() < end && entries.size() < kMaxAppendEntries) {
      const LogEntry& e = log_.at(part.prev_log_index + entries.size() + 1);
      if (!entries.empty() && bytes + e.data.size() > kMaxAppendBytes) break;
      bytes += e.data.size() + 32;
      entries.push_back({e.term, e.type, e.data.data(), e.data.size()});
    }
    part.entries = entries.data();
    part.n_entries = static_cast<unsigned>(entries.size());
    std::string frame;
    append_raft_frame(part, &frame);
    send_or_hold(part.peer, std::move(frame));
    part.prev_log_index += entries.size();
    part.prev_log_term = log_.term_at(part.prev_log_index);
    // What does not fit is left out; the follower refuses what comes after the gap, and Raft fills
    // it.
  } while (part.prev_log_index < end && net_->can_send(part.peer));
}

void Node::send_or_hold(NodeId to, std::string frame) {
  if (meta_ticket_ <= durable_ticket_) {
    net_->send(to, std::move(frame));
  } else if (held_bytes_ + frame.size() <= kMaxHeldBytes) {
    held_bytes_ += frame.size();
    held_.push_back({meta_ticket_, to, std::move(frame)});
  }
}

void Node::settle() {
  if (settling_) {
    settle_again_ = true;
    return;
  }
  settling_ = true;
  do {
    settle_again_ = false;
    if (running()) apply_committed();
    if (running()) update_role();
    if (running()) answer_reads();
    if (running()) check_transfer();
    if (running()) tend_members();
    if (running()) take_over();
    if (running()) run_failover();
    if (running()) leave_to_who_has_applied();
    if (running()) take_snapshot_if_due();
  } while (settle_again_ && running());
  settling_ = false;
  arm_timer();
}

void Node::update_role() {
  RoleInfo now;
  now.term = xce_core_term(core_);
  switch (xce_core_state(core_)) {
    case XCE_STATE_LEADER:
      now.role = Role::kLeader;
      now.leader = options_.self;
      break;
    case XCE_STATE_CANDIDATE: now.role = Role::kCandidate; break;
    default:
      now.role = Role::kFollower;
      if (heard_term_ == now.term) now.leader = heard_leader_;
  }
  if (now.role == Role::kLeader && own_first_ == 0) {
    // The core adds an entry of the new term only if something is uncommitted; a leader needs one
    // in any case.
    submit({{now.term, XCE_ENTRY_BARRIER, std::string(8, '\0')}});
    if (!running()) return;
  }
  now.ready = now.role == Role::kLeader && own_first_ != 0 && applied_ >= own_first_;
  failover_.observe(now.term, now.leader);
  if (now == role_) {
    give_up_waiters();
    return;
  }
  const RoleInfo before = role_;
  role_ = now;
  if (before.role == Role::kLeader && (now.role != Role::kLeader || now.term != before.term)) {
    lost_role_ms_ = now_ms();
    barrier_in_flight_ = 0;
    std::deque<Read> reads;
    reads.swap(reads_in_flight_);
    for (Read& read : reads) read.done(false);
  }
  if (before.role != now.role || before.leader != now.leader)
    spdlog::info("consensus: node {} is {} in term {}, leader {}", options_.self,
                 now.role == Role::kLeader      ? "leader"
                 : now.role == Role::kCandidate ? "candidate"
                                                : "follower",
                 now.term, now.leader);
  if (!stopped_) listener_->on_role(now);
  settle_again_ = true;
}

// ---- the public face

Consensus::Consensus(uv_loop_t* loop, Options options, StateMachine* state_machine,
                     Listener* listener)
    : Consensus(uv_surroundings(loop), std::move(options), state_machine, listener) {}
Consensus::Consensus(std::unique_ptr<Surroundings> around, Options options,
                     StateMachine* state_machine, Listener* listener)
    : node_(
          std::make_unique<Node>(std::move(around), std::move(options), state_machine, listener)) {}
Consensus::~Consensus() = default;
absl::Status Consensus::start() { return node_->start(); }
void Consensus::propose(std::string entry, std::function<void(Outcome)> done) {
  node_->propose(std::move(entry), std::move(done));
}
void Consensus::barrier(std::function<void(bool)> done) { node_->barrier(std::move(done)); }
void Consensus::adopt_peer(int fd, std::string already_read, std::shared_ptr<net::TlsSession> tls) {
  node_->adopt_peer(fd, already_read, std::move(tls));
}
void Consensus::transfer(NodeId to, std::function<void(absl::Status)> done) {
  node_->transfer(to, std::move(done));
}
void Consensus::resume() { node_->resume(); }
void Consensus::fail(absl::Status status) { node_->fail(std::move(status)); }
RoleInfo Consensus::role() const { return node_->role(); }
uint64_t Consensus::applied() const { return node_->applied(); }
uint64_t Consensus::commit() const { return node_->commit(); }
uint64_t Consensus::last_index() const { return node_->last_index(); }
uint64_t Consensus::first_index() const { return node_->first_index(); }
uint64_t Consensus::snapshot_index() const { return node_->snapshot_index(); }
std::vector<PeerStatus> Consensus::peers() const { return node_->peers(); }
void Consensus::backup(BackupDone done) { node_->backup(std::move(done)); }
const Members& Consensus::members() const { return node_->members(); }
void Consensus::change_members(const MemberChange& wish, std::function<void(absl::Status)> done) {
  node_->change_members(wish, std::move(done));
}
DiskStatus Consensus::disk() const { return node_->disk(); }
uint64_t Consensus::cluster_id() const { return node_->cluster_id(); }
uint64_t Consensus::boot_id() const { return node_->boot_id(); }
void Consensus::stop() { node_->stop(); }

}  // namespace xce::consensus
