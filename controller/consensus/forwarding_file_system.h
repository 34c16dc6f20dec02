// A FileSystem for tests that does as the real one does: what misbehaves derives from it and says
// only where. Thread: as FileSystem.
#ifndef XCE_CONTROLLER_CONSENSUS_FORWARDING_FILE_SYSTEM_H_
#define XCE_CONTROLLER_CONSENSUS_FORWARDING_FILE_SYSTEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "controller/consensus/file_system.h"

namespace xce::consensus {

class ForwardingFileSystem : public FileSystem {
 public:
  int open(const std::string& path, int flags, int mode) override {
    return real_->open(path, flags, mode);
  }
  int64_t pwrite(int fd, const void* bytes, size_t n, uint64_t offset) override {
    return real_->pwrite(fd, bytes, n, offset);
  }
  int64_t pread(int fd, void* bytes, size_t n, uint64_t offset) override {
    return real_->pread(fd, bytes, n, offset);
  }
  int64_t size(int fd) override { return real_->size(fd); }
  int fdatasync(int fd) override { return real_->fdatasync(fd); }
  int fsync(int fd) override { return real_->fsync(fd); }
  int close(int fd) override { return real_->close(fd); }
  int rename(const std::string& from, const std::string& to) override {
    return real_->rename(from, to);
  }
  int unlink(const std::string& path) override { return real_->unlink(path); }
  int mkdir(const std::string& path, int mode) override { return real_->mkdir(path, mode); }
  int lock(int fd) override { return real_->lock(fd); }
  int list(const std::string& path, std::vector<std::string>* names) override {
    return real_->list(path, names);
  }

 protected:
  FileSystem* const real_ = posix_file_system();
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_FORWARDING_FILE_SYSTEM_H_
