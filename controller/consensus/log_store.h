// The log's files in data_dir/log: segments, and the mark. Format and recovery rules are in
// log_format.h.
//
// Calls block on the disk. Not thread safe: it belongs to whoever opened it, then to the log
// writer's thread. A helper thread of its own makes the next segment in advance, so that an append
// never waits for 8 MiB of zeros.
#ifndef XCE_CONTROLLER_CONSENSUS_LOG_STORE_H_
#define XCE_CONTROLLER_CONSENSUS_LOG_STORE_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/consensus/file_system.h"
#include "controller/consensus/log_format.h"

namespace xce::consensus {

inline constexpr size_t kSegmentBytes = size_t{8} << 20;

class LogStore {
 public:
  // The most that one append may hold for segments of this size, in bytes of items.
  static size_t max_items(size_t segment_bytes) { return segment_bytes - 2 * kSector; }

  // Opens (or makes) the log in `directory` and reads it. `salt` is the one that it was or will be
  // written with. DataLoss: the log is damaged. Other errors: see file_error. The messages name the
  // file and the way out.
  static absl::StatusOr<std::unique_ptr<LogStore>> open(FileSystem* fs,
                                                        const std::string& directory, uint64_t salt,
                                                        size_t segment_bytes);
  ~LogStore();
  LogStore(const LogStore&) = delete;
  LogStore& operator=(const LogStore&) = delete;

  // What the log held when it was opened; to be moved out.
  LogContents& contents() { return contents_; }
  bool had_torn_tail() const { return had_torn_tail_; }

  // Puts one record on disk; returns once it is there. After an error nothing more may be appended.
  // highest_index: of the entries among the items, 0 if there are none.
  absl::Status append(std::string_view items, uint64_t highest_index = 0);

  // Removes the segments at the front whose entries all have an index up to `index`, never the one
  // in use. What they hold beside entries must have been appended again. A segment that cannot be
  // removed stays for the next time.
  absl::Status remove_through(uint64_t index);

  // The salt of a log that exists in `directory`, or 0 when there is none. Reads the first segment
  // only.
  static absl::StatusOr<uint64_t> existing_salt(FileSystem* fs, const std::string& directory);
  // Removes every file of a log.
  static absl::Status remove(FileSystem* fs, const std::string& directory);

 private:
  LogStore(FileSystem* fs, std::string directory, uint64_t salt, size_t segment_bytes);
  absl::Status load();
  absl::Status clear_torn(uint64_t segment, size_t from);
  absl::Status next_segment();
  std::string segment_path(uint64_t number) const;
  absl::StatusOr<int> make_segment(uint64_t number);
  void prepare_in_background(uint64_t number);
  void write_mark();

  FileSystem* const fs_;
  const std::string directory_;
  const uint64_t salt_;
  const size_t segment_bytes_;
  LogContents contents_;
  LogTail tail_;
  bool had_torn_tail_ = false;
  std::map<uint64_t, uint64_t>
      highest_index_;             // of the entries ever put into each segment, by its number
  uint64_t highest_segment_ = 0;  // highest number of a file that exists
  int fd_ = -1;                   // the segment in use
  bool header_due_ = false;       // its first record must carry the segment's header with it
  int mark_fd_ = -1;

  // The segment made in advance. The thread exists only while it makes one.
  std::thread maker_;
  std::mutex mutex_;
  bool made_ = false;                 // guarded by mutex_
  absl::StatusOr<int> made_fd_ = -1;  // guarded by mutex_
  uint64_t making_ = 0;               // number under way or made, 0: none; owner's thread only
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_LOG_STORE_H_
