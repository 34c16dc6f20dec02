#include "controller/consensus/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace xce::consensus {
namespace {

constexpr int kLockTries = 100;
constexpr unsigned kLockPauseUs = 10000;

template <class T>
T result(T value) {
  return value < 0 ? static_cast<T>(-errno) : value;
}

class PosixFileSystem final : public FileSystem {
 public:
  int open(const std::string& path, int flags, int mode) override {
    return result(::open(path.c_str(), flags | O_CLOEXEC, mode));
  }
  int64_t pwrite(int fd, const void* bytes, size_t n, uint64_t offset) override {
    ssize_t rv;
    do {
      rv = ::pwrite(fd, bytes, n, static_cast<off_t>(offset));
    } while (rv < 0 && errno == EINTR);
    return result<int64_t>(rv);
  }
  int64_t pread(int fd, void* bytes, size_t n, uint64_t offset) override {
    ssize_t rv;
    do {
      rv = ::pread(fd, bytes, n, static_cast<off_t>(offset));
    } while (rv < 0 && errno == EINTR);
    return result<int64_t>(rv);
  }
  int64_t size(int fd) override {
    struct stat status;
    return ::fstat(fd, &status) < 0 ? -errno : static_cast<int64_t>(status.st_size);
  }
  int fdatasync(int fd) override { return result(::fdatasync(fd)); }
  int fsync(int fd) override { return result(::fsync(fd)); }
  int close(int fd) override { return result(::close(fd)); }
  int rename(const std::string& from, const std::string& to) override {
    return result(::rename(from.c_str(), to.c_str()));
  }
  int unlink(const std::string& path) override { return result(::unlink(path.c_str())); }
  int mkdir(const std::string& path, int mode) override {
    const int rv = ::mkdir(path.c_str(), static_cast<mode_t>(mode));
    return rv < 0 && errno == EEXIST ? 0 : result(rv);
  }
  // A process that has just been killed may take a moment to let go.
  int lock(int fd) override {
    for (int tries = 0;; ++tries) {
      const int rv = result(::flock(fd, LOCK_EX | LOCK_NB));
      if (rv != -EWOULDBLOCK || tries == kLockTries) return rv;
      ::usleep(kLockPauseUs);
    }
  }
  int list(const std::string& path, std::vector<std::string>* names) override {
    DIR* dir = ::opendir(path.c_str());
    if (dir == nullptr) return -errno;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names->push_back(name);
    }
    ::closedir(dir);
    return 0;
  }
};

}  // namespace

FileSystem* posix_file_system() {
  static FileSystem* const fs = new PosixFileSystem;
  return fs;
}

absl::Status file_error(int negative_errno, std::string_view what, const std::string& path) {
  const int code = -negative_errno;
  std::string message =
      absl::StrCat("cannot ", std::string(what), " ", path, ": ", std::strerror(code));
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(absl::StrCat(
          message, ". Free space on that file system, then start this controller again."));
    case EIO:
      return absl::DataLossError(absl::StrCat(message,
                                              ". The disk does not keep what is written to it: "
                                              "look at the kernel's log and replace the disk, then "
                                              "bring this node back with `xce cluster replace`."));
    case EROFS:
      return absl::UnavailableError(
          absl::StrCat(message,
                       ". Linux makes a file system read-only after an error: look at the kernel's "
                       "log, repair and remount "
                       "it, then start this controller again."));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat(message, ". Give the user that runs the controller access to it."));
    case ENOENT: return absl::NotFoundError(message);
    default: return absl::InternalError(message);
  }
}

absl::Status write_fully(FileSystem* fs, int fd, std::string_view bytes, uint64_t offset,
                         const std::string& path) {
  while (!bytes.empty()) {
    const int64_t n = fs->pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0) return file_error(static_cast<int>(n), "write", path);
    if (n == 0) return file_error(-ENOSPC, "write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> read_file(FileSystem* fs, const std::string& path) {
  const int fd = fs->open(path, O_RDONLY, 0);
  if (fd < 0) return file_error(fd, "open", path);
  std::string content;
  constexpr size_t kChunk = size_t{1} << 20;
  for (;;) {
    const size_t have = content.size();
    content.resize(have + kChunk);
    const int64_t n = fs->pread(fd, content.data() + have, kChunk, have);
    content.resize(have + static_cast<size_t>(n > 0 ? n : 0));
    if (n < 0) {
      fs->close(fd);
      return file_error(static_cast<int>(n), "read", path);
    }
    if (n == 0) break;
  }
  fs->close(fd);
  return content;
}

absl::Status sync_directory(FileSystem* fs, const std::string& path) {
  const int fd = fs->open(path, O_RDONLY | O_DIRECTORY, 0);
  if (fd < 0) return file_error(fd, "open", path);
  const int rv = fs->fsync(fd);
  fs->close(fd);
  return rv < 0 ? file_error(rv, "sync", path) : absl::OkStatus();
}

absl::Status replace_file(FileSystem* fs, const std::string& directory, const std::string& name,
                          std::string_view content) {
  const std::string path = directory + "/" + name;
  const std::string temporary = path + ".tmp";
  const int fd = fs->open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) return file_error(fd, "create", temporary);
  absl::Status status = write_fully(fs, fd, content, 0, temporary);
  if (status.ok()) {
    const int rv = fs->fsync(fd);
    if (rv < 0) status = file_error(rv, "sync", temporary);
  }
  fs->close(fd);
  if (!status.ok()) return status;
  const int rv = fs->rename(temporary, path);
  if (rv < 0) return file_error(rv, "rename", temporary);
  return sync_directory(fs, directory);
}

}  // namespace xce::consensus
