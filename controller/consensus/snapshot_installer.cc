#include "controller/consensus/snapshot_installer.h"

#include <fcntl.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/snapshot_file.h"

namespace xce::consensus {

SnapshotInstaller::SnapshotInstaller(Environment environment, Source source)
    : environment_(std::move(environment)),
      source_(source),
      temporary_(
          absl::StrCat(environment_.directory, "/install-", absl::Hex(source.transfer), ".tmp")),
      thread_([this] { run(); }) {}

SnapshotInstaller::~SnapshotInstaller() {
  give_up();
  thread_.join();
}

void SnapshotInstaller::give_up() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopping_ = true;
  wanted_.notify_one();
}

void SnapshotInstaller::add(std::string piece) {
  taken_ += piece.size();
  const std::lock_guard<std::mutex> lock(mutex_);
  pieces_.push_back(std::move(piece));
  wanted_.notify_one();
}

SnapshotInstaller::Result SnapshotInstaller::take_result() { return std::move(result_); }

absl::Status SnapshotInstaller::step(SnapshotStep step) const {
  if (stopping_) return absl::CancelledError("given up");
  const int error = environment_.hook ? environment_.hook(step) : 0;
  return error == 0 ? absl::OkStatus() : file_error(-error, "write", temporary_);
}

void SnapshotInstaller::run() {
  FileSystem* const fs = environment_.fs;
  const int fd = fs->open(temporary_, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  absl::Status status = fd < 0 ? file_error(fd, "create", temporary_) : receive(fd);
  if (fd >= 0) fs->close(fd);
  if (status.ok()) status = install(&result_.meta, &result_.state);
  if (!status.ok()) {
    result_.state.reset();
    (void)fs->unlink(temporary_);
  }
  result_.status = std::move(status);
  done_ = true;
  environment_.wake();
}

absl::Status SnapshotInstaller::receive(int fd) {
  absl::Status status = step(SnapshotStep::kInstallBegun);
  uint64_t at = 0;
  while (status.ok() && at < source_.total) {
    std::string piece;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wanted_.wait(lock, [this] { return stopping_ || !pieces_.empty(); });
      if (stopping_) return absl::CancelledError("given up");
      piece = std::move(pieces_.front());
      pieces_.pop_front();
    }
    status = write_fully(environment_.fs, fd, piece, at, temporary_);
    at += piece.size();
    written_ = at;
    environment_.wake();
    if (status.ok()) status = step(SnapshotStep::kInstallPiece);
  }
  if (!status.ok()) return status;
  const int rv = environment_.fs->fsync(fd);
  if (rv < 0) return file_error(rv, "sync", temporary_);
  return step(SnapshotStep::kInstallReceived);
}

absl::Status SnapshotInstaller::install(SnapshotMeta* meta,
                                        std::unique_ptr<StateMachine::Restored>* state) {
  auto reader = SnapshotReader::open(environment_.fs, temporary_);
  if (!reader.ok()) return reader.status();
  *meta = (*reader)->meta();
  if (meta->cluster != environment_.cluster || meta->index != source_.index)
    return absl::DataLossError(absl::StrCat("the snapshot from node ", source_.from,
                                            " is another one than was announced"));
  auto loaded = environment_.state_machine->load(
      [&](char* to, size_t n) { return stopping_ ? size_t{0} : (*reader)->read(to, n); });
  absl::Status status = (*reader)->finish();
  if (!status.ok()) return status;
  if (!loaded.ok()) return loaded.status();
  *state = *std::move(loaded);
  status = step(SnapshotStep::kInstallLoaded);
  if (!status.ok()) return status;
  const std::string path = snapshot_path(environment_.directory, meta->index);
  const int rv = environment_.fs->rename(temporary_, path);
  if (rv < 0) return file_error(rv, "rename", temporary_);
  status = sync_directory(environment_.fs, environment_.directory);
  if (!status.ok()) return status;
  return step(SnapshotStep::kInstallRenamed);
}

}  // namespace xce::consensus
