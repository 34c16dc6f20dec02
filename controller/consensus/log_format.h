// The log as bytes: how records are written, and what can be read back. PURE: no file, no clock.
//
// A log is a row of segments of one size, zero filled when made. A segment starts with a header in
// its first sector; records follow, each starting on a sector. One record is what one write put on
// disk: a batch of items (term and vote, entries, a truncation, a peer's instance). A record is
// written only after the one before it is on disk, and its checksum covers the checksum of that
// one. From this follows the rule by which damage and a crash are told apart:
//
//   A record that does not check out, or zeros, with any valid later record behind it: the log is
//   damaged. The same with nothing behind it: the last write was torn by a crash, and nobody was
//   told that it succeeded. It is cut off - unless the mark says that it had been on disk: then the
//   log is damaged.
//
// Segments are removed from the front once a snapshot stands for their entries; before that, what
// the log holds beside entries is written again at its end. So a log may begin anywhere, and its
// first entries tell where.
//
// The mark is a small file that the writer updates after each completed write, without syncing it.
// All checksums are seeded with the log's salt (random, private to the node), so that no entry's
// content can look like a record.
#ifndef XCE_CONTROLLER_CONSENSUS_LOG_FORMAT_H_
#define XCE_CONTROLLER_CONSENSUS_LOG_FORMAT_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace xce::consensus {

inline constexpr size_t kSector = 512;
inline constexpr size_t kRecordHeaderSize = 64;
inline constexpr size_t kMarkSize = 32;
inline constexpr uint32_t kLogVersion = 1;

// One entry of the replicated log. `data` is a multiple of 8 bytes (that is how the Raft core wants
// it).
struct LogEntry {
  uint64_t term = 0;
  uint16_t type = 0;  // XCE_ENTRY_*
  std::string data;
};

// Names a data directory: made at random when it is first used.
struct InstanceId {
  uint64_t hi = 0;
  uint64_t lo = 0;
  bool operator==(const InstanceId& other) const { return hi == other.hi && lo == other.lo; }
  bool operator!=(const InstanceId& other) const { return !(*this == other); }
};

// The data directory that a peer was last seen with, and the tag that it had among the members then
// (members.h): for another tag it counts for nothing.
struct KnownInstance {
  InstanceId id;
  uint64_t tag = 0;
};

// What a log says once it has been read.
struct LogContents {
  uint64_t term = 0;
  uint64_t vote = 0;
  uint64_t first_index = 0;  // of entries[0], or of the next one to come; 0: not known
  std::deque<LogEntry> entries;
  std::map<uint64_t, KnownInstance> instances;  // by node
};

// Where the next record goes.
struct LogTail {
  uint64_t segment = 0;   // number of the segment in use; 0: none yet
  size_t offset = 0;      // bytes, a multiple of kSector
  uint64_t next_seq = 1;  // sequence number of the next record
  uint32_t chain = 0;     // checksum that the next record continues
};

// Items of a record, appended to `out`. append_entries_item appends entries first_index ...;
// further entries are added with append_entry, whose number must be `count`.
void append_term_vote_item(uint64_t term, uint64_t vote, std::string* out);
void append_truncate_item(uint64_t from_index, std::string* out);
// "The log starts anew, after index": a snapshot up to there was installed.
void append_reset_item(uint64_t index, std::string* out);
void append_instance_item(uint64_t node, const KnownInstance& instance, std::string* out);
void append_entries_item(uint64_t first_index, uint32_t count, std::string* out);
void append_entry(uint64_t term, uint16_t type, std::string_view data, std::string* out);
// Bytes that append_entry takes for data of this size.
size_t entry_item_size(size_t data_size);

// Size on disk of a record with this payload, a multiple of kSector.
size_t record_size(size_t payload_size);

// The bytes of a record with these items, padded to whole sectors; advances tail's next_seq and
// chain, not its offset.
std::string encode_record(uint64_t salt, std::string_view items, LogTail* tail);

// The first sector of segment `number`, whose first record will be tail's next.
std::string encode_segment_header(uint64_t salt, uint64_t number, const LogTail& tail);

// The salt in a segment's first sector, or nullopt when the sector is no valid header.
std::optional<uint64_t> read_salt(std::string_view first_sector);

// The mark: "every record up to seq is on disk".
std::string encode_mark(uint64_t salt, uint64_t seq);
std::optional<uint64_t> decode_mark(uint64_t salt, std::string_view bytes);

// Reads segments in the order of their numbers and tells what the log holds.
class LogReplay {
 public:
  // way_out: what an operator should do about a damaged log; it ends every such error message.
  LogReplay(uint64_t salt, std::string way_out) : salt_(salt), way_out_(std::move(way_out)) {}

  // Takes in the next segment. DataLoss: the log is damaged; the message names the file, the offset
  // and the way out. FailedPrecondition: written by a newer version.
  absl::Status add(uint64_t number, std::string_view file, std::string_view bytes);

  // To be called after the last segment. DataLoss: records that the mark covers are not there.
  absl::Status finish(std::optional<uint64_t> mark);

  LogContents& contents() { return contents_; }
  // Of each segment with records, by number: the highest index of an entry that was ever in it.
  const std::map<uint64_t, uint64_t>& highest_index() const { return highest_index_; }
  const LogTail& tail() const { return tail_; }
  // Whether a torn write follows the tail: the bytes behind the tail must be cleared before
  // anything is appended.
  bool torn() const { return torn_; }
  // Number of the segment whose bytes behind the tail need clearing; it may be one past
  // tail().segment.
  uint64_t torn_segment() const { return torn_segment_; }

 private:
  absl::Status damage(std::string_view what) const;
  absl::Status read_records(std::string_view file, std::string_view bytes);
  absl::Status apply_items(std::string_view file, size_t offset, std::string_view items);
  bool later_record_in(std::string_view bytes, size_t from) const;

  uint64_t salt_;
  std::string way_out_;
  LogContents contents_;
  std::map<uint64_t, uint64_t> highest_index_;
  LogTail tail_;
  bool ended_ = false;  // zeros or a bad record was met: nothing valid may follow
  bool torn_ = false;
  uint64_t torn_segment_ = 0;
  std::string end_file_;  // where that was
  size_t end_offset_ = 0;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_LOG_FORMAT_H_
