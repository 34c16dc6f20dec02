// The few file operations that the log needs, as a seam where tests put faults.
//
// Every call returns a value >= 0 or a negative errno. Implementations are thread safe.
#ifndef XCE_CONTROLLER_CONSENSUS_FILE_SYSTEM_H_
#define XCE_CONTROLLER_CONSENSUS_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xce::consensus {

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // open(2) with O_CLOEXEC added. Returns a descriptor.
  virtual int open(const std::string& path, int flags, int mode) = 0;
  // pwrite(2): may write less than asked for.
  virtual int64_t pwrite(int fd, const void* bytes, size_t n, uint64_t offset) = 0;
  virtual int64_t pread(int fd, void* bytes, size_t n, uint64_t offset) = 0;
  virtual int64_t size(int fd) = 0;
  virtual int fdatasync(int fd) = 0;
  virtual int fsync(int fd) = 0;
  virtual int close(int fd) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int unlink(const std::string& path) = 0;
  virtual int mkdir(const std::string& path, int mode) = 0;  // 0 also when it exists
  virtual int lock(int fd) = 0;                              // exclusive, waiting a second at most
  // Names in a directory, without "." and "..".
  virtual int list(const std::string& path, std::vector<std::string>* names) = 0;
  // Whether those who use it may do so from threads of their own; not in a simulation.
  virtual bool threads() const { return true; }
};

// The operating system's files. Never destroyed.
FileSystem* posix_file_system();

// A status for a failed operation: names what was tried and the file, and for the common errors
// what to do about it.
absl::Status file_error(int negative_errno, std::string_view what, const std::string& path);

// Writes all of `bytes`, going on after short writes. OK, or file_error's status.
absl::Status write_fully(FileSystem* fs, int fd, std::string_view bytes, uint64_t offset,
                         const std::string& path);

// A whole file's content. NotFound when there is none.
absl::StatusOr<std::string> read_file(FileSystem* fs, const std::string& path);

// Replaces a small file so that after a crash it holds either the old or the new content.
absl::Status replace_file(FileSystem* fs, const std::string& directory, const std::string& name,
                          std::string_view content);

// Syncs a directory, so that names made in it stay.
absl::Status sync_directory(FileSystem* fs, const std::string& path);

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_FILE_SYSTEM_H_
