// The log in memory, for sending to followers and for applying: what follows the newest snapshot,
// and some entries before it for followers that are a little behind. PURE.
#ifndef XCE_CONTROLLER_CONSENSUS_MEMORY_LOG_H_
#define XCE_CONTROLLER_CONSENSUS_MEMORY_LOG_H_

#include <cstdint>
#include <deque>
#include <utility>

#include "controller/consensus/log_format.h"

namespace xce::consensus {

class MemoryLog {
 public:
  MemoryLog() = default;
  // Entries from `first` on, and the index and term of the newest snapshot (0: none). first is at
  // most snapshot_index + 1, and the entries, if any, reach snapshot_index.
  explicit MemoryLog(std::deque<LogEntry> entries, uint64_t first = 1, uint64_t snapshot_index = 0,
                     uint64_t snapshot_term = 0)
      : first_(first),
        snapshot_index_(snapshot_index),
        snapshot_term_(snapshot_term),
        entries_(std::move(entries)) {}

  uint64_t first_index() const { return first_; }
  uint64_t last_index() const { return first_ + entries_.size() - 1; }
  uint64_t last_term() const { return entries_.empty() ? snapshot_term_ : entries_.back().term; }
  bool has(uint64_t index) const { return index >= first_ && index <= last_index(); }
  // 0 when it is not known.
  uint64_t term_at(uint64_t index) const {
    return has(index)                 ? entries_[index - first_].term
           : index == snapshot_index_ ? snapshot_term_
                                      : 0;
  }
  // Only for an index that the log has.
  const LogEntry& at(uint64_t index) const { return entries_[index - first_]; }
  void append(LogEntry entry) { entries_.push_back(std::move(entry)); }
  // Removes entries from `index` on.
  void truncate(uint64_t index) {
    if (has(index)) entries_.resize(index - first_);
  }

  uint64_t snapshot_index() const { return snapshot_index_; }
  // A snapshot of what is applied up to `index`, which the log has, is on disk. Entries up to
  // `forget` go.
  void snapshot_taken(uint64_t index, uint64_t forget) {
    snapshot_term_ = term_at(index);
    snapshot_index_ = index;
    while (!entries_.empty() && first_ <= forget) {
      entries_.pop_front();
      first_++;
    }
  }

 private:
  uint64_t first_ = 1;
  uint64_t snapshot_index_ = 0;
  uint64_t snapshot_term_ = 0;
  std::deque<LogEntry> entries_;
};

// An entry as the log holds it: padded to a multiple of 8 bytes; the last byte says by how many, 1
// to 8.
inline std::string pad_entry(std::string entry) {
  const size_t pad = 8 - entry.size() % 8;
  entry.append(pad, static_cast<char>(pad));
  return entry;
}

// The entry without its padding; empty if it has none that is right.
inline std::string_view strip_padding(std::string_view padded) {
  const size_t pad = padded.empty() ? 0 : static_cast<unsigned char>(padded.back());
  if (pad < 1 || pad > 8 || pad > padded.size()) return {};
  return padded.substr(0, padded.size() - pad);
}

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_MEMORY_LOG_H_
