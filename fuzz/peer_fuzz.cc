// A message between controllers: read, and said again the same.
#include "controller/consensus/peer_codec.h"
#include "fuzz/fuzz.h"
#include "libxce/net/frame.h"

namespace {

using namespace xce::consensus;  // NOLINT: a test of one header

std::string again(const PeerMessage& message) {
  std::string frame;
  switch (message.kind) {
    case PeerMessage::kHello: append_hello_frame(message.hello, &frame); break;
    case PeerMessage::kRaft: append_raft_frame(message.raft, &frame); break;
    case PeerMessage::kSuspect: append_suspect_frame(message.suspect, &frame); break;
    case PeerMessage::kStillLeading: append_still_leading_frame(message.question, &frame); break;
    case PeerMessage::kStillFollowing:
      append_still_following_frame(message.question, &frame);
      break;
    case PeerMessage::kPing: append_ping_frame(&frame); break;
    case PeerMessage::kSnapshotPiece: append_snapshot_piece_frame(message.piece, &frame); break;
    case PeerMessage::kSnapshotAck: append_snapshot_ack_frame(message.ack, &frame); break;
    default: break;
  }
  return frame;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using xce::fuzz::require;
  PeerMessage first;
  if (!decode_peer_message(xce::fuzz::words(xce::fuzz::view(data, size)), &first).ok()) return 0;
  size_t bytes = 0;
  for (const xce_core_entry& entry : first.entries) {
    require(entry.len <= kMaxEntryBytes, "an entry is within its limit");
    bytes += entry.len;
    if (first.kind == PeerMessage::kRaft && entry.type == XCE_ENTRY_CHANGE)
      (void)xce_core_valid_configuration(entry.data, entry.len);
  }
  if (bytes > kMaxEntryBytes) return 0;  // pointers that share their target: no frame holds it
  const std::string frame = again(first);
  if (frame.empty()) return 0;
  PeerMessage second;
  require(decode_peer_message(
              xce::fuzz::words(std::string_view(frame).substr(xce::net::kFrameHeaderSize)), &second)
              .ok(),
          "what was read can be said again");
  require(first.kind == second.kind && first.raft.type == second.raft.type &&
              first.raft.term == second.raft.term && first.entries.size() == second.entries.size(),
          "and means the same");
  return 0;
}
