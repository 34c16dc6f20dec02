// Snapshots in data_dir/snapshots: <index>.snap is whole and on disk, *.tmp is a leftover of one
// that never was. I/O, blocking; each object belongs to one thread.
#ifndef XCE_CONTROLLER_CONSENSUS_SNAPSHOT_FILE_H_
#define XCE_CONTROLLER_CONSENSUS_SNAPSHOT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/consensus/file_system.h"
#include "controller/consensus/snapshot_format.h"

namespace xce::consensus {

std::string snapshot_path(const std::string& directory, uint64_t index);

// Makes the directory, removes leftovers, and lists the snapshots by falling index.
absl::StatusOr<std::vector<uint64_t>> open_snapshots(FileSystem* fs, const std::string& directory);

// Removes the snapshots below `keep_from`. Those that cannot be removed stay.
void remove_snapshots_below(FileSystem* fs, const std::string& directory, uint64_t keep_from);

// Reads a snapshot from its beginning to its end and checks all of it on the way.
class SnapshotReader {
 public:
  // Reads the header. from: where in the file the snapshot begins. DataLoss: the file is damaged;
  // the message names it, without a way out.
  static absl::StatusOr<std::unique_ptr<SnapshotReader>> open(FileSystem* fs,
                                                              const std::string& path,
                                                              uint64_t from = 0);
  ~SnapshotReader();
  SnapshotReader(const SnapshotReader&) = delete;
  SnapshotReader& operator=(const SnapshotReader&) = delete;

  const SnapshotMeta& meta() const { return meta_; }
  // The next bytes of the state, at most n; 0 at its end and after an error.
  size_t read(char* to, size_t n);
  // To be called after the last read(): whether everything was there. DataLoss names the file.
  absl::Status finish();

 private:
  SnapshotReader(FileSystem* fs, std::string path, int fd)
      : fs_(fs), path_(std::move(path)), fd_(fd) {}
  // Reads the next chunk into chunk_.
  absl::Status next(ChunkKind* kind);
  absl::Status damaged(std::string_view what) const;

  FileSystem* const fs_;
  const std::string path_;
  const int fd_;
  SnapshotMeta meta_;
  uint64_t offset_ = 0;  // of the next chunk in the file
  uint32_t chain_ = 0;
  std::string chunk_;
  size_t at_ = 0;  // in chunk_
  uint64_t data_bytes_ = 0;
  bool ended_ = false;  // the trailer was read
  absl::Status status_;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_SNAPSHOT_FILE_H_
