// Consensus among the controllers: a replicated log of opaque entries, applied in order to a state
// machine.
//
// Raft (core.h) over our own log (log_store.h), our own connections (peer_net.h) and a fast path
// for a primary whose process has died (failover.h). Everything here runs on one libuv loop and
// must be called on its thread, which is called the consensus thread below; the disk has a thread
// of its own. Callbacks come on the consensus thread and may call back into Consensus, stop()
// included.
#ifndef XCE_CONTROLLER_CONSENSUS_CONSENSUS_H_
#define XCE_CONTROLLER_CONSENSUS_CONSENSUS_H_

#include <uv.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/consensus/members.h"
#include "libxce/base/histogram.h"

namespace xce::net {
class TlsCredentials;
class TlsSession;
}  // namespace xce::net

namespace xce::consensus {

class FileSystem;
class Node;
class Surroundings;

using NodeId = uint64_t;  // > 0

struct Peer {
  NodeId id = 0;
  std::string host;
  uint16_t port = 0;
};

// kUnavailable: not started, stopped, or the disk has failed.
enum class Role { kUnavailable, kFollower, kCandidate, kLeader };

// Where a snapshot is on its way; for tests that interrupt it. Take steps come in the forked child,
// but kTakeDone; install steps on the installer's thread, but kInstallTaken. Those two come on the
// consensus thread.
enum class SnapshotStep {
  kTakeForked,
  kTakeCreated,
  kTakeChunk,
  kTakeWritten,
  kTakeSynced,
  kTakeRenamed,
  kTakeDone,
  kInstallBegun,
  kInstallPiece,
  kInstallReceived,
  kInstallLoaded,
  kInstallRenamed,
  kInstallTaken
};

struct Options {
  NodeId self = 0;
  // Of a new data directory: all founders, this node included, at most 9; they make the cluster's
  // id. With `join`: controllers of the cluster that this node is to join, itself or not. Later the
  // log says who the members are, and this is only looked at to find that a directory is another
  // cluster's.
  std::vector<Peer> peers;
  bool join = false;  // a new data directory begins empty, and waits for change_members()
  // Where the others find this node, if it is not among the peers; the only member of a cluster
  // changes its address to this.
  std::string advertise_host;
  uint16_t advertise_port = 0;
  // Where to dial a peer instead of its own address.
  std::map<NodeId, std::pair<std::string, uint16_t>> dial;
  std::string data_dir;
  int heartbeat_ms = 30;
  int election_timeout_ms =
      300;  // a follower stands after 1 to 2 times this without a word from the leader
  FileSystem* fs = nullptr;  // nullptr: the operating system's
  uint64_t seed = 0;         // of election timers and pauses; give each node another one
  // For connections between the nodes; null: without TLS. Each node's certificate names its id.
  std::shared_ptr<net::TlsCredentials> tls;
  size_t segment_bytes = size_t{8}
                         << 20;  // of a log segment; must stay the same for a data directory
  size_t snapshot_log_bytes =
      size_t{64} << 20;  // of entries applied since the last snapshot, until the next; 0: never
  uint64_t snapshot_trailing =
      8192;  // entries before a snapshot that stay for followers that are behind
  size_t snapshot_trailing_bytes = size_t{16} << 20;  // of those, at most: they are in memory
  uint64_t snapshot_retry_ms = 30000;                 // after one that failed
  std::function<int(SnapshotStep)>
      snapshot_hook;  // for tests: returns 0, or the errno to fail with
};

struct RoleInfo {
  Role role = Role::kUnavailable;
  uint64_t term = 0;
  NodeId leader = 0;  // of this term; 0: not known
  bool ready =
      false;  // leader, an entry of its own term is committed, and everything before it is applied
  bool operator==(const RoleInfo& o) const {
    return role == o.role && term == o.term && leader == o.leader && ready == o.ready;
  }
  bool operator!=(const RoleInfo& o) const { return !(*this == o); }
};

// How things stand with another node.
struct PeerStatus {
  NodeId id = 0;
  bool connected = false;    // we can send to it
  uint64_t match_index = 0;  // its log is known to equal ours up to here; 0 unless this node leads
  uint64_t lag = 0;          // entries that it is behind; 0 unless this node leads
  int64_t last_contact_ms = -1;  // since it was last heard from; -1: never
};

// How the log's disk does.
struct DiskStatus {
  Histogram write_s;           // time of each write with its sync, in seconds
  uint64_t backlog_bytes = 0;  // queued and not yet on disk
};

// What became of a proposal.
struct Outcome {
  enum Kind {
    kApplied,     // committed and applied at index
    kNotApplied,  // never will be: it was not proposed, or an entry of another term was applied at
                  // its index
    kUnknown      // the role was lost, or the node stopped, before it could be told
  };
  Kind kind = kUnknown;
  uint64_t index = 0;  // 0 if it was not proposed
  uint64_t term = 0;
};

class StateMachine {
 public:
  virtual ~StateMachine() = default;
  // Applies a committed entry. Called in index order, once per index and run of the process;
  // indexes of entries that are not proposals (barriers, configurations) are left out. `entry` is
  // valid during the call.
  virtual void apply(uint64_t index, uint64_t term, std::string_view entry) = 0;

  // A state that was read from a snapshot and is not yet in use; or one that has been replaced.
  class Restored {
   public:
    virtual ~Restored() = default;
  };
  // Writes the whole state, piece by piece; false: it could not. Called in a forked child, which
  // has the state as it was: no locks, no logging, no other threads.
  virtual bool save(const std::function<bool(std::string_view)>& write) const {
    (void)write;
    return false;
  }
  // Makes a state of what save() wrote; `read` gives up to n further bytes, 0 at the end. Any
  // thread: it must not touch the present state.
  virtual absl::StatusOr<std::unique_ptr<Restored>> load(
      const std::function<size_t(char* to, size_t n)>& read) {
    (void)read;
    return absl::UnimplementedError("this state machine has no snapshots");
  }
  // Takes a loaded state into use: everything up to `index` is applied by it. What is left in
  // *state is destroyed on another thread.
  virtual void restore(uint64_t index, Restored* state) {
    (void)index;
    (void)state;
  }

  // ---- What it keeps on the disk by itself and leaves out of snapshots (history). The defaults
  // keep nothing. A snapshot counts only once kept() has come up to it; load() returns OutOfRange
  // for one that holds() does not come up to, and an older one is tried.

  // Called once, in start(), when the directory is this node's and before load().
  virtual absl::Status open(const std::string& data_dir) {
    (void)data_dir;
    return absl::OkStatus();
  }
  // False: apply() should not be called now; Consensus::resume() tells when it may be again.
  virtual bool takes_more() const { return true; }
  // Asks that what it keeps of entries up to `index`, which are applied, get safe on the disk; and
  // how far that has come.
  virtual void keep(uint64_t index) { (void)index; }
  virtual uint64_t kept() const { return UINT64_MAX; }
  // It has what it keeps of every entry up to this one.
  virtual uint64_t holds() const { return 0; }
  // Makes a file of what it keeps of entries after `after`, to go to another node with a snapshot.
  // done: later, on the consensus thread; an empty path: there is nothing. The caller removes it.
  virtual void pack(uint64_t after, std::function<void(absl::StatusOr<std::string> path)> done) {
    (void)after;
    done(std::string());
  }
  // Takes what another node's pack() made. Any thread; blocks. The file is used up.
  virtual absl::Status unpack(const std::string& path) {
    (void)path;
    return absl::UnimplementedError("this state machine keeps nothing beside its snapshots");
  }
};

class Listener {
 public:
  virtual ~Listener() = default;
  // Called after every change of what role() returns.
  virtual void on_role(const RoleInfo& role) { (void)role; }
  // The node has stopped taking part, for good: its disk failed, or its log contradicts the
  // leader's. The message names the file and what to do. Only stop() is of use afterwards.
  virtual void on_fatal(absl::Status status) { (void)status; }
};

// A snapshot's file, open for reading: it stays readable when newer ones take its place.
class SnapshotCopy {
 public:
  // Takes the descriptor over.
  SnapshotCopy(FileSystem* fs, int fd, uint64_t index, uint64_t bytes)
      : fs_(fs), fd_(fd), index_(index), bytes_(bytes) {}
  ~SnapshotCopy();
  SnapshotCopy(const SnapshotCopy&) = delete;
  SnapshotCopy& operator=(const SnapshotCopy&) = delete;
  uint64_t index() const { return index_; }  // everything up to this entry is in it
  uint64_t bytes() const { return bytes_; }
  // At most n bytes from offset on; blocking, but what was written just now is in memory.
  absl::StatusOr<std::string> read(uint64_t offset, size_t n) const;

 private:
  FileSystem* const fs_;
  const int fd_;
  const uint64_t index_;
  const uint64_t bytes_;
};
using BackupDone = std::function<void(absl::StatusOr<std::unique_ptr<SnapshotCopy>>)>;

class Consensus {
 public:
  // None of the pointers is owned; all must outlive this object.
  Consensus(uv_loop_t* loop, Options options, StateMachine* state_machine, Listener* listener);
  // In other surroundings (surroundings.h): for a simulation.
  Consensus(std::unique_ptr<Surroundings> around, Options options, StateMachine* state_machine,
            Listener* listener);
  ~Consensus();  // as stop()
  Consensus(const Consensus&) = delete;
  Consensus& operator=(const Consensus&) = delete;

  // Opens the data directory and reads the log (blocking), then takes part. Entries from the log
  // are applied once they are known to be committed. Errors: InvalidArgument (options); what
  // DataDir::open returns, whose messages name the file and the way out. Makes the process ignore
  // SIGPIPE if it would die of it.
  absl::Status start();

  // Proposes an entry (at most kMaxEntryBytes - 8 bytes). All that is proposed in one turn of the
  // loop is one batch with one write to the disk. `done` is called once, never from within this
  // call; for an applied entry right after StateMachine::apply.
  void propose(std::string entry, std::function<void(Outcome)> done);

  // For linearizable reads: done(true) once everything that had been acknowledged by any leader
  // before this call is applied here, and this node was still leader of its term. It waits for an
  // entry of the own term that is submitted after this call; reads that wait share one.
  // done(false): not leader, or the role was lost.
  void barrier(std::function<void(bool ok)> done);

  // Takes over an accepted connection whose preamble said "peer", with what has been read from it
  // and decrypted, and its TLS session (null without TLS).
  void adopt_peer(int fd, std::string already_read, std::shared_ptr<net::TlsSession> tls = nullptr);

  // Hands leadership to a voter, or to the best one for 0. Proposals made meanwhile wait. Errors:
  // FailedPrecondition (not leader, or nobody to hand over to), DeadlineExceeded (it did not catch
  // up within the election timeout; this node still leads), Unavailable (another one took over, or
  // none has yet).
  void transfer(NodeId to_or_0, std::function<void(absl::Status)> done);

  // Adds, removes or replaces a controller (members.h); for the leader. The answer comes when that
  // is done: for one that was added or replaced, when it is a voter. What has begun goes on,
  // whoever leads. Errors: InvalidArgument, NotFound and FailedPrecondition (refused, nothing was
  // changed), Aborted (another change is under way), Unknown (see MemberChange::resent),
  // Unavailable (not leader, nothing was changed; also after leadership was handed over because
  // this node is to be removed: ask the new one), Cancelled (the role was lost on the way: ask the
  // new leader, saying that it was asked before).
  void change_members(const MemberChange& wish, std::function<void(absl::Status)> done);

  // A snapshot of everything that is applied now, taken for this if need be. Errors: what taking it
  // fails with; Unavailable: this node has stopped, or applied nothing yet.
  void backup(BackupDone done);

  // StateMachine::takes_more() is true again.
  void resume();
  // The state machine's own disk has failed: the node stops taking part, for good.
  void fail(absl::Status status);

  RoleInfo role() const;
  uint64_t applied() const;         // index
  uint64_t commit() const;          // index; never goes back
  uint64_t last_index() const;      // of the log, on disk or not
  uint64_t first_index() const;     // of the log: what is before it is only in the snapshot
  uint64_t snapshot_index() const;  // of the newest snapshot; 0: none
  std::vector<PeerStatus> peers() const;
  DiskStatus disk() const;  // empty before start() and after stop()
  // The members by the newest configuration in the log; empty: none is known yet.
  const Members& members() const;
  uint64_t cluster_id() const;
  uint64_t boot_id() const;  // of this process; random

  // Closes connections, answers everybody who waits (kUnknown, kNotApplied, false), and joins the
  // disk's thread. The loop must run on for one turn to release libuv's handles.
  void stop();

 private:
  std::unique_ptr<Node> node_;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_CONSENSUS_H_
