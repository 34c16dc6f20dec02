#include "controller/consensus/snapshot_taker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "controller/consensus/file_system.h"
#include "controller/consensus/snapshot_file.h"
#include "libxce/base/crash_point.h"

namespace xce::consensus {
namespace {

constexpr int kFirstDescriptor = 3;  // standard input, output and error stay

// Everything below runs in the child. Exit status: 0, or an errno.

class ChildWriter {
 public:
  ChildWriter(const char* path, const std::function<int(SnapshotStep)>& hook)
      : path_(path), hook_(hook) {}

  void step(SnapshotStep step) const {
    if (!hook_) return;
    const int error = hook_(step);
    if (error != 0) fail(error);
  }
  [[noreturn]] void fail(int error) const {
    ::unlink(path_);
    ::_exit(error > 0 && error < 255 ? error : EIO);
  }
  void create() {
    fd_ = ::open(path_, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd_ < 0) ::_exit(errno);
  }
  void chunk(ChunkKind kind, std::string_view bytes) {
    out_.clear();
    append_chunk(kind, bytes, &chain_, &out_);
    const char* at = out_.data();
    for (size_t left = out_.size(); left > 0;) {
      const ssize_t n = ::write(fd_, at, left);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail(n < 0 ? errno : ENOSPC);
      at += n;
      left -= static_cast<size_t>(n);
    }
  }
  bool data(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), kSnapshotChunk - buffer_.size());
      buffer_.append(bytes.data(), n);
      bytes.remove_prefix(n);
      if (buffer_.size() == kSnapshotChunk) flush();
    }
    return true;
  }
  void flush() {
    if (buffer_.empty()) return;
    chunk(ChunkKind::kData, buffer_);
    total_ += buffer_.size();
    buffer_.clear();
    if (!half_) step(SnapshotStep::kTakeChunk);
    half_ = true;
  }
  void finish() {
    flush();
    chunk(ChunkKind::kTrailer, {reinterpret_cast<const char*>(&total_), sizeof total_});
    step(SnapshotStep::kTakeWritten);
    if (::fsync(fd_) < 0 || ::close(fd_) < 0) fail(errno);
    step(SnapshotStep::kTakeSynced);
  }

 private:
  const char* const path_;
  const std::function<int(SnapshotStep)>& hook_;
  int fd_ = -1;
  uint32_t chain_ = 0;
  uint64_t total_ = 0;
  bool half_ = false;
  std::string buffer_, out_;
};

void leave_parent_alone(pid_t parent) {
  // The parent's descriptors first: what it held must end when it ends.
  if (::syscall(SYS_close_range, kFirstDescriptor, ~0U, 0) != 0) {
    const long most = std::min(::sysconf(_SC_OPEN_MAX), 65536L);
    for (int fd = kFirstDescriptor; fd < most; fd++) ::close(fd);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(ECANCELED);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD, SIGUSR1, SIGUSR2})
    ::signal(number, SIG_DFL);
  ::signal(SIGXFSZ, SIG_IGN);
  (void)!::nice(10);
}

[[noreturn]] void run_child(pid_t parent, const std::string& directory,
                            const std::string& temporary, const std::string& path,
                            const SnapshotMeta& meta, const SnapshotTaker::Save& save,
                            const std::function<int(SnapshotStep)>& hook) {
  leave_parent_alone(parent);
  ChildWriter writer(temporary.c_str(), hook);
  writer.step(SnapshotStep::kTakeForked);
  writer.create();
  writer.chunk(ChunkKind::kHeader, encode_snapshot_meta(meta));
  writer.step(SnapshotStep::kTakeCreated);
  if (!save([&](std::string_view bytes) { return writer.data(bytes); })) writer.fail(ENOTSUP);
  writer.finish();
  crash_point("snapshot.before_rename");
  if (::rename(temporary.c_str(), path.c_str()) < 0) writer.fail(errno);
  crash_point("snapshot.after_rename");
  writer.step(SnapshotStep::kTakeRenamed);
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || ::fsync(fd) < 0) ::_exit(errno);
  ::_exit(0);
}

std::string temporary_path(const std::string& directory, uint64_t index) {
  return absl::StrCat(directory, "/", index, ".tmp");
}

}  // namespace

absl::Status ForkingSnapshotTaker::start(const SnapshotMeta& meta, const Save& save) {
  meta_ = meta;
  const std::string path = snapshot_path(directory_, meta.index);
  const std::string temporary = temporary_path(directory_, meta.index);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) run_child(parent, directory_, temporary, path, meta_, save, hook_);
  if (child < 0)
    return absl::ResourceExhaustedError(
        absl::StrCat("no process to write the snapshot: ", std::strerror(errno),
                     ". Raise the limits on processes and memory (vm.overcommit_memory)"));
  child_ = child;
  return absl::OkStatus();
}

std::optional<absl::Status> ForkingSnapshotTaker::poll() {
  int status = 0;
  pid_t ended;
  do {
    ended = ::waitpid(child_, &status, WNOHANG);
  } while (ended < 0 && errno == EINTR);
  if (ended == 0) return std::nullopt;
  child_ = 0;
  if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  remove_leftover();
  if (ended > 0 && WIFEXITED(status))
    return file_error(-WEXITSTATUS(status), "write", snapshot_path(directory_, meta_.index));
  return absl::AbortedError(
      ended > 0 && WIFSIGNALED(status)
          ? absl::StrCat("the process that wrote the snapshot was ended by signal ",
                         WTERMSIG(status),
                         WTERMSIG(status) == SIGKILL
                             ? "; if that was the kernel for want of memory, give it more"
                             : "")
          : std::string("the process that wrote the snapshot is lost"));
}

void ForkingSnapshotTaker::cancel() {
  if (child_ <= 0) return;
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = 0;
  remove_leftover();
}

void ForkingSnapshotTaker::remove_leftover() const {
  ::unlink(temporary_path(directory_, meta_.index).c_str());
}

}  // namespace xce::consensus
