#include "controller/consensus/backup_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/data_dir.h"
#include "controller/consensus/file_system.h"
#include "controller/consensus/members.h"
#include "controller/consensus/snapshot_file.h"
#include "controller/consensus/snapshot_format.h"

namespace xce::consensus {
namespace {

absl::Status named(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", std::string(status.message())));
}

// Writes a snapshot file in chunks.
class ChunkWriter {
 public:
  ChunkWriter(FileSystem* fs, int fd, std::string path)
      : fs_(fs), fd_(fd), path_(std::move(path)) {}

  void chunk(ChunkKind kind, std::string_view bytes) {
    std::string out;
    append_chunk(kind, bytes, &chain_, &out);
    if (status_.ok()) status_ = write_fully(fs_, fd_, out, offset_, path_);
    offset_ += out.size();
  }
  bool data(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), kSnapshotChunk - buffer_.size());
      buffer_.append(bytes.data(), n);
      bytes.remove_prefix(n);
      if (buffer_.size() == kSnapshotChunk) flush();
    }
    return status_.ok();
  }
  absl::Status finish() {
    flush();
    chunk(ChunkKind::kTrailer, {reinterpret_cast<const char*>(&total_), sizeof total_});
    if (status_.ok())
      if (const int rv = fs_->fsync(fd_); rv < 0) status_ = file_error(rv, "sync", path_);
    return status_;
  }

 private:
  void flush() {
    if (buffer_.empty()) return;
    chunk(ChunkKind::kData, buffer_);
    total_ += buffer_.size();
    buffer_.clear();
  }

  FileSystem* const fs_;
  const int fd_;
  const std::string path_;
  absl::Status status_;
  std::string buffer_;
  uint64_t offset_ = 0;
  uint64_t total_ = 0;
  uint32_t chain_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BackupReader>> BackupReader::open(FileSystem* fs,
                                                                 const std::string& path) {
  if (fs == nullptr) fs = posix_file_system();
  const int fd = fs->open(path, O_RDONLY, 0);
  if (fd < 0) return file_error(fd, "open", path);
  std::string first(kBackupHeaderSize, '\0');
  const int64_t got = fs->pread(fd, first.data(), first.size(), 0);
  const int64_t size = fs->size(fd);
  fs->close(fd);
  if (got < 0) return file_error(static_cast<int>(got), "read", path);
  first.resize(static_cast<size_t>(got));
  const auto header = decode_backup_header(first);
  if (!header.ok()) return named(header.status(), path);
  const uint64_t bytes = kBackupHeaderSize + header->snapshot_bytes + header->history_bytes;
  if (size < 0 || static_cast<uint64_t>(size) < bytes)
    return absl::DataLossError(absl::StrCat(path, " is cut short: it has ", size, " of ", bytes,
                                            " bytes. Use another backup"));
  auto snapshot = SnapshotReader::open(fs, path, kBackupHeaderSize);
  if (!snapshot.ok()) return snapshot.status();
  if ((*snapshot)->meta().index != header->index || (*snapshot)->meta().cluster != header->cluster)
    return absl::DataLossError(absl::StrCat(path, ": its header is another backup's"));
  std::unique_ptr<BackupReader> reader(new BackupReader);
  reader->header_ = *header;
  reader->snapshot_ = *std::move(snapshot);
  return reader;
}

BackupReader::~BackupReader() = default;
uint64_t BackupReader::term() const { return snapshot_->meta().term; }
size_t BackupReader::read(char* to, size_t n) { return snapshot_->read(to, n); }
absl::Status BackupReader::finish() { return snapshot_->finish(); }

absl::Status found_with_state(
    FileSystem* fs, const Founding& founding,
    const std::function<bool(const std::function<bool(std::string_view)>& write)>& save) {
  if (fs == nullptr) fs = posix_file_system();
  Members members;
  members.all.push_back({founding.self, founding.host, founding.port, 0, true});
  SnapshotMeta meta;
  meta.index = meta.conf_index = founding.index;
  meta.term = founding.term;
  meta.conf = encode_members(members);
  meta.cluster = random_u64() | 1;
  return DataDir::found_after(
      fs, founding.data_dir, founding.self, meta.cluster, founding.index, founding.term,
      founding.segment_bytes, [&](const std::string& directory) -> absl::Status {
        const auto there = open_snapshots(fs, directory);
        if (!there.ok()) return there.status();
        const std::string path = snapshot_path(directory, meta.index);
        const std::string temporary = path + ".tmp";
        const int fd = fs->open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0) return file_error(fd, "create", temporary);
        ChunkWriter writer(fs, fd, temporary);
        writer.chunk(ChunkKind::kHeader, encode_snapshot_meta(meta));
        const bool saved = save([&](std::string_view bytes) { return writer.data(bytes); });
        absl::Status status = writer.finish();
        if (status.ok() && !saved) status = absl::AbortedError("the state could not be written");
        fs->close(fd);
        if (!status.ok()) (void)fs->unlink(temporary);
        if (!status.ok()) return status;
        if (const int rv = fs->rename(temporary, path); rv < 0)
          return file_error(rv, "rename", temporary);
        return sync_directory(fs, directory);
      });
}

}  // namespace xce::consensus
