#include "controller/consensus/snapshot_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace xce::consensus {
namespace {

std::string name_of(uint64_t index) {
  char name[32];
  std::snprintf(name, sizeof name, "%012" PRIu64 ".snap", index);
  return name;
}

absl::StatusOr<std::vector<uint64_t>> list(FileSystem* fs, const std::string& directory,
                                           bool remove_leftovers) {
  std::vector<std::string> names;
  const int rv = fs->list(directory, &names);
  if (rv < 0) return file_error(rv, "list", directory);
  std::vector<uint64_t> found;
  for (const std::string& name : names) {
    uint64_t index = 0;
    if (std::sscanf(name.c_str(), "%" SCNu64 ".snap", &index) == 1 && index > 0 &&
        name == name_of(index))
      found.push_back(index);
    if (remove_leftovers && absl::EndsWith(name, ".tmp")) (void)fs->unlink(directory + "/" + name);
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

}  // namespace

std::string snapshot_path(const std::string& directory, uint64_t index) {
  return directory + "/" + name_of(index);
}

absl::StatusOr<std::vector<uint64_t>> open_snapshots(FileSystem* fs, const std::string& directory) {
  const int rv = fs->mkdir(directory, 0700);
  if (rv < 0) return file_error(rv, "create", directory);
  // The log will lean on what is in it.
  absl::Status status = sync_directory(fs, directory.substr(0, directory.rfind('/')));
  if (!status.ok()) return status;
  return list(fs, directory, true);
}

void remove_snapshots_below(FileSystem* fs, const std::string& directory, uint64_t keep_from) {
  const auto found = list(fs, directory, false);
  if (!found.ok()) return;
  for (const uint64_t index : *found)
    if (index < keep_from) (void)fs->unlink(snapshot_path(directory, index));
}

absl::StatusOr<std::unique_ptr<SnapshotReader>> SnapshotReader::open(FileSystem* fs,
                                                                     const std::string& path,
                                                                     uint64_t from) {
  const int fd = fs->open(path, O_RDONLY, 0);
  if (fd < 0) return file_error(fd, "open", path);
  std::unique_ptr<SnapshotReader> reader(new SnapshotReader(fs, path, fd));
  reader->offset_ = from;
  ChunkKind kind = ChunkKind::kData;
  absl::Status status = reader->next(&kind);
  if (!status.ok()) return status;
  if (kind != ChunkKind::kHeader) return reader->damaged("it does not begin with a header");
  auto meta = decode_snapshot_meta(reader->chunk_);
  if (absl::IsFailedPrecondition(meta.status()))
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": ", std::string(meta.status().message())));
  if (!meta.ok()) return reader->damaged(std::string(meta.status().message()));
  reader->meta_ = *std::move(meta);
  reader->chunk_.clear();
  return reader;
}

SnapshotReader::~SnapshotReader() { fs_->close(fd_); }

absl::Status SnapshotReader::damaged(std::string_view what) const {
  return absl::DataLossError(absl::StrCat("snapshot ", path_, " is damaged near offset ", offset_,
                                          ": ", std::string(what)));
}

absl::Status SnapshotReader::next(ChunkKind* kind) {
  const auto read_at = [&](char* to, size_t n, uint64_t offset) -> absl::Status {
    while (n > 0) {
      const int64_t got = fs_->pread(fd_, to, n, offset);
      if (got < 0) return file_error(static_cast<int>(got), "read", path_);
      if (got == 0) return damaged("it is cut short");
      to += got;
      n -= static_cast<size_t>(got);
      offset += static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  };
  char head[kSnapshotChunkHeader];
  absl::Status status = read_at(head, sizeof head, offset_);
  if (!status.ok()) return status;
  const auto header = read_chunk_header({head, sizeof head});
  if (!header.ok()) return damaged(std::string(header.status().message()));
  chunk_.resize(header->length);
  at_ = 0;
  status = read_at(chunk_.data(), chunk_.size(), offset_ + sizeof head);
  if (!status.ok()) return status;
  if (!chunk_holds(*header, chunk_, &chain_)) return damaged("a chunk's checksum is wrong");
  offset_ += sizeof head + chunk_.size();
  *kind = header->kind;
  return absl::OkStatus();
}

size_t SnapshotReader::read(char* to, size_t n) {
  while (at_ == chunk_.size() && !ended_ && status_.ok()) {
    ChunkKind kind = ChunkKind::kData;
    status_ = next(&kind);
    if (!status_.ok()) break;
    if (kind == ChunkKind::kData) {
      data_bytes_ += chunk_.size();
    } else if (kind == ChunkKind::kTrailer && chunk_.size() == sizeof data_bytes_ &&
               std::memcmp(chunk_.data(), &data_bytes_, sizeof data_bytes_) == 0) {
      ended_ = true;
      chunk_.clear();
    } else {
      status_ = damaged("its trailer makes no sense");
    }
  }
  if (!status_.ok() || ended_) return 0;
  n = std::min(n, chunk_.size() - at_);
  std::memcpy(to, chunk_.data() + at_, n);
  at_ += n;
  return n;
}

absl::Status SnapshotReader::finish() {
  char byte;
  if (status_.ok() && !ended_ && read(&byte, 1) != 0)
    status_ = damaged("it holds more than the state");
  return status_;
}

}  // namespace xce::consensus
