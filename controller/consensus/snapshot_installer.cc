#include "controller/consensus/snapshot_installer.h"

#include <fcntl.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/snapshot_file.h"
#include "libxce/base/crash_point.h"

namespace xce::consensus {

SnapshotInstaller::SnapshotInstaller(Environment environment, Source source)
    : environment_(std::move(environment)),
      source_(source),
      temporary_(
          absl::StrCat(environment_.directory, "/install-", absl::Hex(source.transfer), ".tmp")),
      history_(
          absl::StrCat(environment_.directory, "/history-", absl::Hex(source.transfer), ".tmp")) {
  if (environment_.ask)
    environment_.ask();
  else
    thread_ = std::thread([this] { run(); });
}

SnapshotInstaller::~SnapshotInstaller() {
  give_up();
  if (thread_.joinable()) thread_.join();
  if (fd_ >= 0) environment_.fs->close(fd_);
  if (history_fd_ >= 0) environment_.fs->close(history_fd_);
}

void SnapshotInstaller::give_up() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    wanted_.notify_one();
  }
  if (environment_.ask) environment_.ask();
}

void SnapshotInstaller::add(std::string piece) {
  taken_ += piece.size();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pieces_.push_back(std::move(piece));
    wanted_.notify_one();
  }
  if (environment_.ask) environment_.ask();
}

SnapshotInstaller::Result SnapshotInstaller::take_result() { return std::move(result_); }

absl::Status SnapshotInstaller::step(SnapshotStep step) const {
  if (stopping_) return absl::CancelledError("given up");
  const int error = environment_.hook ? environment_.hook(step) : 0;
  return error == 0 ? absl::OkStatus() : file_error(-error, "write", temporary_);
}

bool SnapshotInstaller::has_work_locked() const {
  return !done_ && (phase_ != Phase::kPieces || stopping_ || !pieces_.empty());
}

bool SnapshotInstaller::has_work() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return has_work_locked();
}

void SnapshotInstaller::run() {
  while (!done_) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wanted_.wait(lock, [this] { return has_work_locked(); });
    }
    work();
  }
}

void SnapshotInstaller::work() {
  FileSystem* const fs = environment_.fs;
  absl::Status status;
  const bool last = phase_ == Phase::kInstall;
  switch (phase_) {
    case Phase::kCreate: status = create(); break;
    case Phase::kPieces: status = take_piece(); break;
    case Phase::kInstall: status = install(&result_.meta, &result_.state); break;
  }
  if (status.ok() && !last) {
    phase_ = at_ < source_.total ? Phase::kPieces : Phase::kInstall;
    return;
  }
  for (int* fd : {&fd_, &history_fd_}) {
    if (*fd >= 0) fs->close(*fd);
    *fd = -1;
  }
  if (source_.file_bytes < source_.total) (void)fs->unlink(history_);
  if (!status.ok()) {
    result_.state.reset();
    (void)fs->unlink(temporary_);
  }
  result_.status = std::move(status);
  done_ = true;
  environment_.wake();
}

absl::Status SnapshotInstaller::create() {
  fd_ = environment_.fs->open(temporary_, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd_ < 0) return file_error(fd_, "create", temporary_);
  if (source_.file_bytes < source_.total) {
    history_fd_ = environment_.fs->open(history_, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (history_fd_ < 0) return file_error(history_fd_, "create", history_);
  }
  return step(SnapshotStep::kInstallBegun);
}

absl::Status SnapshotInstaller::take_piece() {
  std::string piece;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return absl::CancelledError("given up");
    piece = std::move(pieces_.front());
    pieces_.pop_front();
  }
  // A piece is of one of the two.
  const bool history = at_ >= source_.file_bytes;
  if (!history && piece.size() > source_.file_bytes - at_)
    return absl::DataLossError("a piece of the snapshot reaches beyond its file");
  const absl::Status status =
      history ? write_fully(environment_.fs, history_fd_, piece, at_ - source_.file_bytes, history_)
              : write_fully(environment_.fs, fd_, piece, at_, temporary_);
  at_ += piece.size();
  written_ = at_;
  environment_.wake();
  crash_point("install.piece");
  return status.ok() ? step(SnapshotStep::kInstallPiece) : status;
}

absl::Status SnapshotInstaller::install(SnapshotMeta* meta,
                                        std::unique_ptr<StateMachine::Restored>* state) {
  if (const int rv = environment_.fs->fsync(fd_); rv < 0) return file_error(rv, "sync", temporary_);
  if (history_fd_ >= 0) {
    const int rv = environment_.fs->fsync(history_fd_);
    if (rv < 0) return file_error(rv, "sync", history_);
  }
  absl::Status status = step(SnapshotStep::kInstallReceived);
  // First the history: a state that leaves out more than is there is not loaded. What is taken is
  // right even if the snapshot is not.
  if (status.ok() && history_fd_ >= 0) status = environment_.state_machine->unpack(history_);
  if (!status.ok()) return status;
  auto reader = SnapshotReader::open(environment_.fs, temporary_);
  if (!reader.ok()) return reader.status();
  *meta = (*reader)->meta();
  if (meta->cluster != environment_.cluster || meta->index != source_.index)
    return absl::DataLossError(absl::StrCat("the snapshot from node ", source_.from,
                                            " is another one than was announced"));
  auto loaded = environment_.state_machine->load(
      [&](char* to, size_t n) { return stopping_ ? size_t{0} : (*reader)->read(to, n); });
  status = (*reader)->finish();
  if (!status.ok()) return status;
  if (!loaded.ok()) return loaded.status();
  *state = *std::move(loaded);
  status = step(SnapshotStep::kInstallLoaded);
  if (!status.ok()) return status;
  const std::string path = snapshot_path(environment_.directory, meta->index);
  crash_point("install.before_rename");
  const int rv = environment_.fs->rename(temporary_, path);
  if (rv < 0) return file_error(rv, "rename", temporary_);
  status = sync_directory(environment_.fs, environment_.directory);
  if (!status.ok()) return status;
  crash_point("install.after_rename");
  return step(SnapshotStep::kInstallRenamed);
}

}  // namespace xce::consensus
