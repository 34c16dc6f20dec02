// The inside of Consensus: drives the Raft core, carries out its updates, and keeps the rules that
// the core leaves to its caller. In eight files: node.cc (life, disk, updates), node_client.cc
// (proposals, reads, applying, transfer), node_peer.cc (messages, fast failover), node_members.cc
// (who belongs to the cluster), node_backup.cc, node_start.cc, node_snapshot.cc and
// node_install.cc.
#ifndef XCE_CONTROLLER_CONSENSUS_NODE_H_
#define XCE_CONTROLLER_CONSENSUS_NODE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "controller/consensus/consensus.h"
#include "controller/consensus/core.h"
#include "controller/consensus/data_dir.h"
#include "controller/consensus/failover.h"
#include "controller/consensus/log_writer.h"
#include "controller/consensus/memory_log.h"
#include "controller/consensus/snapshot_file.h"
#include "controller/consensus/snapshot_installer.h"
#include "controller/consensus/snapshot_taker.h"
#include "controller/consensus/surroundings.h"

namespace xce::consensus {

inline constexpr size_t kMaxRecordBytes = size_t{4} << 20;  // of the log, at most

inline xce_core_snapshot core_snapshot(const SnapshotMeta& meta) {
  return {meta.index, meta.term, meta.conf_index, meta.conf.data(), meta.conf.size()};
}

class Node final : private Transport::Events {
 public:
  Node(std::unique_ptr<Surroundings> around, Options options, StateMachine* state_machine,
       Listener* listener);
  ~Node() override;

  absl::Status start();
  void stop();
  void propose(std::string entry, std::function<void(Outcome)> done);
  void barrier(std::function<void(bool)> done);
  void transfer(NodeId to, std::function<void(absl::Status)> done);
  void adopt_peer(int fd, const std::string& already_read, std::shared_ptr<net::TlsSession> tls);

  void resume() {
    if (running()) settle();
  }
  void fail(absl::Status status);

  const RoleInfo& role() const { return role_; }
  uint64_t applied() const { return applied_; }
  uint64_t commit() const { return commit_; }
  uint64_t last_index() const { return log_.last_index(); }
  uint64_t first_index() const { return log_.first_index(); }
  uint64_t snapshot_index() const { return log_.snapshot_index(); }
  std::vector<PeerStatus> peers() const;
  DiskStatus disk() const;
  const Members& members() const { return members_; }
  void change_members(const MemberChange& wish, std::function<void(absl::Status)> done);
  void backup(BackupDone done);
  uint64_t cluster_id() const { return dir_ ? dir_->cluster() : 0; }
  uint64_t boot_id() const { return boot_; }

 private:
  // ---- node_start.cc
  absl::Status check_options();
  absl::Status open_log();
  absl::Status check_founders() const;
  absl::Status load_snapshot(LogContents* log, SnapshotMeta* meta);
  absl::Status read_snapshot(uint64_t index, SnapshotMeta* meta,
                             std::unique_ptr<StateMachine::Restored>* state);
  absl::Status reconcile(const SnapshotMeta& meta, LogContents* log);

  // ---- node.cc
  uint64_t now_ms() const;
  bool running() const { return core_ != nullptr && !failed_ && !stopped_; }
  // Takes what a call into the core returned; update is its update.
  void absorb(int result, const xce_core_update& update, const char* event);
  void take_entries(const xce_core_update& update);
  void send_messages(const xce_core_update& update);
  void send_append_entries(const xce_core_message& message);
  void send_or_hold(NodeId to, std::string frame);
  // Does what has become possible: applies, tells the role, answers reads, arms the timer. Ends
  // every event.
  void settle();
  void update_role();
  void arm_timer();
  void on_disk_progress();
  void on_timer();
  void leave_to_a_faster_disk();

  // ---- node_client.cc
  void come_round();
  void flush();
  void submit_proposals();
  void ask_voters();
  void submit_barrier();
  void count_answers();
  void submit(std::vector<LogEntry> entries);
  void apply_more();
  void apply_committed();
  void answer_waiters(uint64_t index, uint64_t term);
  void answer_reads();
  void give_up_waiters();
  void refuse_all();
  void check_transfer();

  // ---- node_peer.cc
  Hello own_hello() override;
  Greeting check_hello(const Hello& hello, bool dialled) override;
  void on_refused(uint64_t peer, const Hello& hello, const std::string& why) override;
  void on_message(uint64_t from, PeerMessage& message) override;
  void on_connected(uint64_t peer) override;
  void on_gone(uint64_t peer) override;
  void on_question(uint64_t from, const LeaderQuestion& question);
  void on_answer(uint64_t from, const LeaderQuestion& answer);
  void skip_known(xce_core_message* message) const;
  void receive_append(xce_core_message message);
  void tell_suspicion(bool now);
  void take_over();
  void run_failover();
  void leave_to_who_has_applied();

  // ---- node_members.cc
  void members_changed();
  bool forget_changes_from(uint64_t index);
  void settle_changes_up_to(const xce_core_message& append);
  bool change_committed() const { return changes_.empty(); }
  uint64_t newest_conf_index() const {
    return changes_.empty() ? conf_index_ : changes_.rbegin()->first;
  }
  void forget_contacts();
  void note_caught_up(uint64_t leader_commit);
  void connect_members();
  const Member* known(NodeId id) const;
  Greeting check_newcomer(const Hello& hello, bool dialled);
  Greeting make_contact(const Hello& hello, bool dialled);
  void remember_instance(const Member& member, const InstanceId& instance);
  MemberView member_view() const;
  void hand_over_to_leave(int tries, std::function<void(absl::Status)> done);
  void begin_change(const MemberChange& wish, const MemberPlan& plan,
                    std::function<void(absl::Status)> done);
  void tend_members();
  void step_change();
  void check_candidate();
  void promote();
  void correct_own_address();
  bool submit_members(const Members& members);
  void end_change(const absl::Status& status);

  // ---- node_backup.cc
  void answer_backups();
  void refuse_backups(const absl::Status& status);

  // ---- node_snapshot.cc
  struct Sending {  // a snapshot on its way to a node
    uint64_t transfer = 0;
    uint64_t index = 0;
    uint64_t term = 0;
    int fd = -1;
    uint64_t file_bytes = 0;  // of the snapshot's file
    int history_fd = -1;      // what goes with it, removed from its directory already; -1: nothing
    bool packing = false;     // that is being made
    uint64_t total = 0;       // bytes of both
    uint64_t sent = 0;
    uint64_t acked = 0;
    uint64_t heard_ms = 0;
  };
  bool snapshot_due() const;
  void take_snapshot_if_due();
  void look_after_child();
  void snapshot_failed(const absl::Status& status);
  void snapshot_taken(const SnapshotMeta& meta);
  uint64_t trailing_for(uint64_t index) const;
  uint64_t entries_within(uint64_t index, uint64_t entries, size_t bytes) const;
  std::string checkpoint() const;

  // ---- node_install.cc
  void send_snapshot(NodeId to);
  void send_packed(NodeId to, uint64_t transfer, const absl::StatusOr<std::string>& history);
  void pump_snapshot(NodeId to, Sending* sending);
  void end_sending(NodeId to, uint64_t pause_ms);
  void end_all_sending();
  void check_sending();
  void on_snapshot_ack(NodeId from, const SnapshotAck& ack);
  void on_snapshot_piece(NodeId from, SnapshotPiece& piece);
  void send_snapshot_ack(NodeId to, const SnapshotAck& ack);
  void check_installer();
  void give_up_install();
  void finish_install();
  void adopt_snapshot(const SnapshotMeta& meta, StateMachine::Restored* state);

  const std::unique_ptr<Surroundings> around_;
  Options options_;
  StateMachine* const state_machine_;
  Listener* const listener_;
  const uint64_t boot_;

  FileSystem* const fs_;
  xce_core* core_ = nullptr;
  std::unique_ptr<DataDir> dir_;
  std::unique_ptr<LogWriter> writer_;
  std::unique_ptr<Transport> net_;
  std::unique_ptr<Surroundings::Timer> timer_;
  std::unique_ptr<Surroundings::Turns>
      turns_;  // busy while there is more to apply than one turn may take
  std::unique_ptr<Surroundings::Waker> disk_waker_;
  bool stopped_ = false;
  bool failed_ = false;
  uint64_t timer_due_ms_ = 0;
  bool timer_deferred_ = false;
  bool settling_ = false;
  bool settle_again_ = false;

  // The log, and what of it is safe where.
  MemoryLog log_;
  uint64_t stored_ = 0;  // on our disk up to here, as the core has been told
  uint64_t commit_ = 0;  // the core's can go back for a moment; this does not
  uint64_t applied_ = 0;
  bool apply_later_ = false;  // this turn has had its share; `turns_` goes on
  struct PendingWrite {
    uint64_t ticket;
    uint64_t first;
    uint64_t last;
  };
  std::deque<PendingWrite>
      pending_writes_;  // entries on their way to the disk; cut down by truncations
  uint64_t durable_ticket_ = 0;
  uint64_t disk_heard_ms_ = 0;  // when the disk last finished, or was given, something to write
  uint64_t no_leaving_before_ms_ = 0;
  uint64_t meta_ticket_ = 0;  // of the newest term and vote: no message leaves before it is durable
  struct HeldMessage {
    uint64_t ticket;
    NodeId to;
    std::string frame;
  };
  std::deque<HeldMessage> held_;
  size_t held_bytes_ = 0;

  // Snapshots.
  std::string snapshots_;    // their directory
  absl::Status cleanup_;     // the last failure to remove old segments that was logged
  uint64_t conf_index_ = 0;  // the newest applied configuration
  std::string conf_;
  uint64_t applied_bytes_ = 0;      // of entries applied since the newest snapshot
  uint64_t bytes_in_snapshot_ = 0;  // of those, when the one under way began
  uint64_t snapshot_begun_ms_ = 0;
  uint64_t no_snapshot_before_ms_ = 0;
  std::unique_ptr<SnapshotTaker> taker_;
  std::optional<SnapshotMeta> unkept_;  // written, but the state machine has not kept() so much yet
  std::unique_ptr<Surroundings::Timer> child_timer_;
  struct Backup {  // somebody waits for a snapshot of everything up to index
    uint64_t index;
    BackupDone done;
  };
  std::deque<Backup> backups_;
  std::map<NodeId, Sending> sending_;
  std::map<NodeId, uint64_t> send_pause_;  // when to try again
  std::unique_ptr<SnapshotInstaller> installer_;
  std::vector<std::unique_ptr<SnapshotInstaller>> leaving_;  // given up, not yet ended
  uint64_t piece_ms_ = 0;                                    // when the last piece came
  uint64_t acked_ = 0;
  uint64_t ack_ms_ = 0;

  // The role.
  RoleInfo role_;
  NodeId heard_leader_ = 0;  // last leader that sent us entries or a heartbeat, and in which term
  uint64_t heard_term_ = 0;
  uint64_t own_first_ = 0;  // index of the first entry of our term while leader; 0: none yet
  uint64_t lost_role_ms_ = 0;

  // Who waits.
  struct Proposal {
    std::string entry;
    std::function<void(Outcome)> done;
  };
  std::vector<Proposal> proposals_;  // of this turn
  struct Waiter {
    uint64_t term;
    std::function<void(Outcome)> done;
  };
  std::multimap<uint64_t, Waiter> waiters_;       // by index
  std::vector<std::function<void(bool)>> reads_;  // have no entry yet that would serve them
  struct Read {
    uint64_t index;
    uint64_t term;
    std::function<void(bool)> done;
  };
  std::deque<Read> reads_in_flight_;
  // Reads that wait until a majority of the voters has said that it is still in our term: see
  // docs/decisions/reads-ask-the-majority.md.
  struct Question {
    LeaderQuestion asked;
    uint64_t index = 0;  // everything up to here must be applied as well
    uint64_t asked_ms = 0;
    std::set<NodeId> yes;
    std::vector<std::function<void(bool)>> reads;
  };
  std::optional<Question> question_;
  uint64_t question_seq_ = 0;
  uint64_t barrier_in_flight_ = 0;  // index of an entry submitted for reads alone; 0: none
  struct Transfer {
    NodeId to;
    uint64_t deadline_ms;
    std::function<void(absl::Status)> done;
  };
  std::optional<Transfer> transfer_;

  // The members.
  std::map<uint64_t, std::string> changes_;  // configurations in the log, not applied yet, by index
  Members members_;                          // of the newest configuration in the log
  Members committed_members_;                // of the newest one that is applied
  std::map<NodeId, std::pair<std::string, uint16_t>> dialled_;  // whom the transport dials, where
  // A node that joins reads of its past: until it has once applied all that its primary has, and is
  // a voter there, it does not believe that it was removed.
  bool caught_up_once_ = false;
  std::map<NodeId, Member> contacts_;  // whom to dial until they are members as we know them
  struct Change {                      // of the members, being carried out by this leader
    enum Step { kProbing, kTakingOut, kTakingIn, kCatchingUp } step = kProbing;
    MemberChange wish;
    Member member;       // as it is to be
    uint64_t index = 0;  // of the newest configuration submitted for it; 0: none
    uint64_t until_ms = 0;
    std::string problem;                 // with who answers at its address
    std::optional<InstanceId> instance;  // of who answers there
    std::vector<std::function<void(absl::Status)>> done;
  };
  std::optional<Change> change_;
  struct Round {  // of catching up: reaching `target` takes no longer than an election
    NodeId id = 0;
    uint64_t tag = 0;
    uint64_t target = 0;
    uint64_t begun_ms = 0;
  };
  Round round_;
  bool waits_to_join_ = false;  // and has said so

  // The peers.
  std::map<uint64_t, KnownInstance> instances_;
  std::map<uint64_t, uint64_t> last_contact_ms_;
  std::map<uint64_t, uint64_t> peer_holds_;  // what their state machines hold(), as they said hello
  Failover failover_;
  uint64_t applied_at_suspicion_ = 0;
  struct SaidApplied {
    uint64_t applied;
    uint64_t at_ms;
  };
  std::map<NodeId, SaidApplied> said_applied_;  // by those who suspect
  uint64_t left_in_term_ = 0;
  xce_core_message handed_over_{};     // the TIMEOUT_NOW of a primary that hands over to us
  uint64_t handed_over_until_ms_ = 0;  // 0: none
  uint64_t last_told_ms_ = 0;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_NODE_H_
