// Backup files, read; and data directories that begin with the state of one. I/O, blocking.
#ifndef XCE_CONTROLLER_CONSENSUS_BACKUP_FILE_H_
#define XCE_CONTROLLER_CONSENSUS_BACKUP_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/consensus/backup_format.h"

namespace xce::consensus {

class FileSystem;
class SnapshotReader;

// Reads a backup from its beginning to its end and checks all of it on the way.
class BackupReader {
 public:
  // fs: nullptr: the operating system's. Errors name the file: NotFound, InvalidArgument (no
  // backup), FailedPrecondition (a newer version wrote it), DataLoss (damaged).
  static absl::StatusOr<std::unique_ptr<BackupReader>> open(FileSystem* fs,
                                                            const std::string& path);
  ~BackupReader();

  const BackupHeader& header() const { return header_; }
  uint64_t term() const;  // of the last entry in it
  // The next bytes of the state, at most n; 0 at its end and after an error.
  size_t read(char* to, size_t n);
  // To be called after the last read(): whether everything was there and right.
  absl::Status finish();

 private:
  BackupReader() = default;

  BackupHeader header_;
  std::unique_ptr<SnapshotReader> snapshot_;
};

struct Founding {
  std::string data_dir;
  uint64_t self = 0;  // the only member, for now
  std::string host;   // where it is found
  uint16_t port = 0;
  uint64_t index = 0;  // everything up to here is in the state
  uint64_t term = 0;   // > 0
  size_t segment_bytes = size_t{8} << 20;
};
// Makes a data directory of a new cluster that begins with a state, which `save` writes. Its id is
// drawn, so that nothing of another cluster fits it. FailedPrecondition: the directory is not
// empty. Until it has returned OK, a controller does not start on what is there.
absl::Status found_with_state(
    FileSystem* fs, const Founding& founding,
    const std::function<bool(const std::function<bool(std::string_view)>& write)>& save);

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_BACKUP_FILE_H_
