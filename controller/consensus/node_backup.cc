// Backups: a snapshot that holds everything applied by now, for somebody to read.
#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/node.h"

namespace xce::consensus {

SnapshotCopy::~SnapshotCopy() { fs_->close(fd_); }

absl::StatusOr<std::string> SnapshotCopy::read(uint64_t offset, size_t n) const {
  std::string out(static_cast<size_t>(std::min<uint64_t>(n, bytes_ - std::min(offset, bytes_))),
                  '\0');
  for (size_t have = 0; have < out.size();) {
    const int64_t got = fs_->pread(fd_, out.data() + have, out.size() - have, offset + have);
    if (got <= 0) return file_error(got < 0 ? static_cast<int>(got) : -EIO, "read", "the snapshot");
    have += static_cast<size_t>(got);
  }
  return out;
}

void Node::backup(BackupDone done) {
  if (!running() || conf_.empty()) {
    done(absl::UnavailableError("this node has nothing to back up yet"));
    return;
  }
  backups_.push_back({applied_, std::move(done)});
  settle();
}

// Gives those who wait the newest snapshot, if it holds all that they want.
void Node::answer_backups() {
  while (!backups_.empty() && backups_.front().index <= log_.snapshot_index()) {
    Backup backup = std::move(backups_.front());
    backups_.pop_front();
    const std::string path = snapshot_path(snapshots_, log_.snapshot_index());
    const int fd = fs_->open(path, O_RDONLY, 0);
    const int64_t size = fd < 0 ? fd : fs_->size(fd);
    if (size <= 0) {
      if (fd >= 0) fs_->close(fd);
      backup.done(file_error(size < 0 ? static_cast<int>(size) : -EIO, "read", path));
      continue;
    }
    backup.done(std::make_unique<SnapshotCopy>(fs_, fd, log_.snapshot_index(),
                                               static_cast<uint64_t>(size)));
  }
}

void Node::refuse_backups(const absl::Status& status) {
  std::deque<Backup> backups;
  backups.swap(backups_);
  for (const Backup& backup : backups) backup.done(status);
}

}  // namespace xce::consensus
