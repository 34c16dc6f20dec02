// Messages between controllers, to and from bytes. PURE.
//
// A peer is authenticated, but not believed: every count, length and number is checked before it is
// used.
#ifndef XCE_CONTROLLER_CONSENSUS_PEER_CODEC_H_
#define XCE_CONTROLLER_CONSENSUS_PEER_CODEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "controller/consensus/core.h"
#include "controller/consensus/log_format.h"

namespace xce::consensus {

// The most bytes of entries that one AppendEntries frame carries, unless a single entry is larger.
inline constexpr size_t kMaxAppendBytes = size_t{1} << 20;
// The largest entry, in bytes, padding included: it must fit into one frame.
inline constexpr size_t kMaxEntryBytes = (size_t{4} << 20) - (size_t{64} << 10);
// The most entries that one AppendEntries frame carries.
inline constexpr unsigned kMaxAppendEntries = 16384;
// The most bytes of a snapshot in one frame.
inline constexpr size_t kMaxSnapshotPiece = size_t{128} << 10;

struct Hello {
  uint64_t node = 0;
  uint64_t cluster = 0;
  InstanceId instance;
  uint64_t boot = 0;
  std::string advertise;
  bool serving = true;
  std::string refused;  // why the receiver's hello was refused; empty: it was not
  // Of a refusal: only until the sender has reached the receiver by itself.
  bool retry = false;
  // Of a refusal: by the committed configuration of conf_index the receiver is no member.
  bool removed = false;
  uint64_t conf_index = 0;  // the sender's newest committed configuration
  uint64_t history = 0;     // see StateMachine::holds()
};

struct Suspect {
  uint64_t term = 0;
  uint64_t primary = 0;
  uint64_t last_term = 0;
  uint64_t last_index = 0;
  uint64_t applied = 0;
};

// "Are you still in my term?", or the answer "yes".
struct LeaderQuestion {
  uint64_t term = 0;
  uint64_t seq = 0;  // rises with each question of a process
  bool operator==(const LeaderQuestion& o) const { return term == o.term && seq == o.seq; }
};

struct SnapshotPiece {
  uint64_t transfer = 0;
  uint64_t term = 0;
  uint64_t index = 0;
  uint64_t total = 0;
  uint64_t offset = 0;
  std::string data;         // at most kMaxSnapshotPiece
  uint64_t file_bytes = 0;  // of total, those of the snapshot's file; the rest is history
};

struct SnapshotAck {
  uint64_t transfer = 0;
  uint64_t received = 0;
  std::string refused;
};

// A decoded message. Movable, not copyable: the entries' data lie in `words`.
struct PeerMessage {
  enum Kind {
    kNone,
    kHello,
    kRaft,
    kSuspect,
    kPing,
    kSnapshotPiece,
    kSnapshotAck,
    kStillLeading,
    kStillFollowing,
    kUnknown
  };
  Kind kind = kNone;
  Hello hello;
  Suspect suspect;
  LeaderQuestion question;  // kStillLeading, kStillFollowing
  SnapshotPiece piece;
  SnapshotAck ack;
  xce_core_message raft{};              // kRaft; raft.peer is for the receiver to fill in
  std::vector<xce_core_entry> entries;  // raft.entries points here
  std::vector<uint64_t> words;

  PeerMessage() = default;
  PeerMessage(PeerMessage&&) = default;
  PeerMessage& operator=(PeerMessage&&) = default;
};

// Appends a whole frame to `out`.
void append_hello_frame(const Hello& hello, std::string* out);
void append_suspect_frame(const Suspect& suspect, std::string* out);
void append_still_leading_frame(const LeaderQuestion& question, std::string* out);
void append_still_following_frame(const LeaderQuestion& answer, std::string* out);
void append_ping_frame(std::string* out);
void append_snapshot_piece_frame(const SnapshotPiece& piece, std::string* out);
void append_snapshot_ack_frame(const SnapshotAck& ack, std::string* out);
// message.entries must point to message.n_entries entries, of at most kMaxEntryBytes together or
// kMaxAppendBytes.
void append_raft_frame(const xce_core_message& message, std::string* out);

// Reads a frame's payload. InvalidArgument: it breaks the protocol; the message says where.
absl::Status decode_peer_message(std::vector<uint64_t> payload, PeerMessage* out);

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_PEER_CODEC_H_
