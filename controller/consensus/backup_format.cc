#include "controller/consensus/backup_format.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "libxce/base/crc32c.h"

namespace xce::consensus {
namespace {

constexpr char kMagic[8] = {'X', 'C', 'E', ' ', 'B', 'A', 'K', '\n'};

struct RawHeader {
  char magic[8];
  uint32_t version;
  uint32_t crc;  // of the header with this field zero
  uint64_t cluster;
  uint64_t index;
  int64_t time_ms;
  uint64_t snapshot_bytes;
  uint64_t history_bytes;
  uint64_t reserved;
};
static_assert(sizeof(RawHeader) == kBackupHeaderSize);

uint32_t crc_of(RawHeader header) {
  header.crc = 0;
  return crc32c(0, {reinterpret_cast<const char*>(&header), sizeof header});
}

}  // namespace

std::string encode_backup_header(const BackupHeader& header) {
  RawHeader raw{};
  std::memcpy(raw.magic, kMagic, sizeof kMagic);
  raw.version = kBackupVersion;
  raw.cluster = header.cluster;
  raw.index = header.index;
  raw.time_ms = header.time_ms;
  raw.snapshot_bytes = header.snapshot_bytes;
  raw.history_bytes = header.history_bytes;
  raw.crc = crc_of(raw);
  return std::string(reinterpret_cast<const char*>(&raw), sizeof raw);
}

absl::StatusOr<BackupHeader> decode_backup_header(std::string_view bytes) {
  RawHeader raw;
  if (bytes.size() < sizeof raw || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return absl::InvalidArgumentError("it is no backup of an XCE cluster");
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (crc_of(raw) != raw.crc)
    return absl::DataLossError("its header is damaged. Use another backup");
  if (raw.version > kBackupVersion)
    return absl::FailedPreconditionError(
        absl::StrCat("it was written by a newer version of XCE (backup format ", raw.version,
                     "; this one knows ", kBackupVersion, "). Restore it with that version"));
  return BackupHeader{raw.cluster, raw.index, raw.time_ms, raw.snapshot_bytes, raw.history_bytes};
}

}  // namespace xce::consensus
