@0xd3f0a1c86b2e4975;
# What controllers say to one another: one PeerMessage per frame, on the connection that the sender has dialled. The
# one answer on that connection is the other side's hello. Unknown message kinds are ignored (rolling upgrades).
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("xce::wire");

struct PeerMessage {
  union {
    hello @0 :Hello;
    requestVote @1 :RequestVote;
    requestVoteResult @2 :RequestVoteResult;
    appendEntries @3 :AppendEntries;
    appendEntriesResult @4 :AppendEntriesResult;
    timeoutNow @5 :TimeoutNow;
    installSnapshot @6 :InstallSnapshot;
    suspect @7 :Suspect;
    ping @8 :Void;
    snapshotPiece @9 :SnapshotPiece;
    snapshotAck @10 :SnapshotAck;
    stillLeading @11 :StillLeading;
    stillFollowing @12 :StillFollowing;
  }
}

struct Hello {
  nodeId @0 :UInt64;
  clusterId @1 :UInt64;      # hash of the log's first entry
  instanceHi @2 :UInt64;     # names the data directory
  instanceLo @3 :UInt64;
  bootId @4 :UInt64;         # names the process
  advertise @5 :Text;        # host:port
  serving @6 :Bool;          # false: this node has stopped taking part (its disk failed, say)
  refused @7 :Text;          # not empty: why the other side's hello was refused
  retry @8 :Bool;            # refused only until the sender has reached the other side by itself: dial again soon
  removed @9 :Bool;          # refused as no member, by the committed configuration of confIndex
  confIndex @10 :UInt64;     # the sender's newest committed configuration
  historyIndex @11 :UInt64;   # the sender's history of ended jobs is on its disk up to this entry
}

struct RequestVote {
  term @0 :UInt64;
  lastLogIndex @1 :UInt64;
  lastLogTerm @2 :UInt64;
  disruptLeader @3 :Bool;
  preVote @4 :Bool;
  version @5 :UInt8;
}

struct RequestVoteResult {
  term @0 :UInt64;
  voteGranted @1 :Bool;
  preVote @2 :Bool;
  features @3 :UInt16;
  capacity @4 :UInt16;
  version @5 :UInt8;
}

struct LogEntry {
  term @0 :UInt64;
  type @1 :UInt8;
  data @2 :Data;             # a multiple of 8 bytes
}

struct AppendEntries {
  term @0 :UInt64;
  prevLogIndex @1 :UInt64;
  prevLogTerm @2 :UInt64;
  leaderCommit @3 :UInt64;
  entries @4 :List(LogEntry);
  version @5 :UInt8;
}

struct AppendEntriesResult {
  term @0 :UInt64;
  rejected @1 :UInt64;
  lastLogIndex @2 :UInt64;
  features @3 :UInt16;
  capacity @4 :UInt16;
  version @5 :UInt8;
}

struct TimeoutNow {
  term @0 :UInt64;
  lastLogIndex @1 :UInt64;
  lastLogTerm @2 :UInt64;
  version @3 :UInt8;
}

struct InstallSnapshot {     # reserved: snapshots go in pieces, see SnapshotPiece
  term @0 :UInt64;
  lastIndex @1 :UInt64;
  lastTerm @2 :UInt64;
}

struct Suspect {             # "the primary's process is gone"
  term @0 :UInt64;
  primary @1 :UInt64;
  lastLogTerm @2 :UInt64;    # of the sender's last entry
  lastLogIndex @3 :UInt64;
  applied @4 :UInt64;        # index up to which the sender had applied when it began to suspect
}

struct StillLeading {        # a primary asks: "are you in my term?"; who is not says nothing
  term @0 :UInt64;
  seq @1 :UInt64;            # rises with each question of this term
}

struct StillFollowing {      # the answer, sent after the question has come
  term @0 :UInt64;
  seq @1 :UInt64;
}

struct SnapshotPiece {       # of the primary's newest snapshot file, in order, to a node that is too far behind
  transfer @0 :UInt64;       # names this transfer; another one starts anew
  term @1 :UInt64;           # in which the sender leads
  index @2 :UInt64;          # of the snapshot
  total @3 :UInt64;          # bytes of the file
  offset @4 :UInt64;
  data @5 :Data;
  fileBytes @6 :UInt64;      # of total, the snapshot file's; then comes the history that goes with it. 0: all
}

struct SnapshotAck {         # also sent now and then while the snapshot is being loaded
  transfer @0 :UInt64;
  received @1 :UInt64;       # bytes of it that are written
  refused @2 :Text;          # not empty: why it cannot be taken now
}
