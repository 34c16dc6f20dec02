// The log in memory: all of it, for sending to followers and for applying. PURE.
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
  explicit MemoryLog(std::deque<LogEntry> entries) : entries_(std::move(entries)) {}

  uint64_t first_index() const { return first_; }
  uint64_t last_index() const { return first_ + entries_.size() - 1; }
  uint64_t last_term() const { return entries_.empty() ? 0 : entries_.back().term; }
  bool has(uint64_t index) const { return index >= first_ && index <= last_index(); }
  // 0 when there is no such entry.
  uint64_t term_at(uint64_t index) const { return has(index) ? entries_[index - first_].term : 0; }
  // Only for an index that the log has.
  const LogEntry& at(uint64_t index) const { return entries_[index - first_]; }
  void append(LogEntry entry) { entries_.push_back(std::move(entry)); }
  // Removes entries from `index` on.
  void truncate(uint64_t index) {
    if (has(index)) entries_.resize(index - first_);
  }

 private:
  uint64_t first_ = 1;
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
