// A backup file: this header, then a snapshot file (snapshot_format.h) as it is, then the history
// of ended jobs. PURE.
#ifndef XCE_CONTROLLER_CONSENSUS_BACKUP_FORMAT_H_
#define XCE_CONTROLLER_CONSENSUS_BACKUP_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace xce::consensus {

inline constexpr size_t kBackupHeaderSize = 64;
inline constexpr uint32_t kBackupVersion = 1;

struct BackupHeader {
  uint64_t cluster = 0;
  uint64_t index = 0;           // everything up to this entry is in it
  int64_t time_ms = 0;          // when it was taken, since the epoch
  uint64_t snapshot_bytes = 0;  // what follows
  uint64_t history_bytes = 0;   // and behind it (history::Store::export_to)
};

std::string encode_backup_header(const BackupHeader& header);
// The first bytes of a file. InvalidArgument: this is no backup; FailedPrecondition: a newer
// version wrote it; DataLoss: it is damaged. The messages do not name the file.
absl::StatusOr<BackupHeader> decode_backup_header(std::string_view bytes);

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_BACKUP_FORMAT_H_
