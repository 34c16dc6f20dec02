// The operating system's files with a loss of power: what was not synced is gone. Thread safe.
//
// A write to a descriptor opened without O_DSYNC lasts once that file was synced; a new file's name
// lasts once its directory was. Renames and new directories are taken as lasting.
#ifndef XCE_CONTROLLER_CONSENSUS_LOSSY_FILE_SYSTEM_H_
#define XCE_CONTROLLER_CONSENSUS_LOSSY_FILE_SYSTEM_H_

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "controller/consensus/forwarding_file_system.h"

namespace xce::consensus {

class LossyFileSystem final : public ForwardingFileSystem {
 public:
  // Takes back everything that would not have lasted. Nobody may have a file open.
  void lose_power() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::reverse(unsynced_.begin(), unsynced_.end());
    for (const Write& write : unsynced_) {
      const int fd = real_->open(write.path, O_WRONLY, 0);
      if (fd < 0) continue;
      real_->pwrite(fd, write.before.data(), write.before.size(), write.offset);
      real_->close(fd);
    }
    for (const std::string& path : unnamed_) real_->unlink(path);
    unsynced_.clear();
    unnamed_.clear();
  }

  int open(const std::string& path, int flags, int mode) override {
    struct stat ignored;
    const bool fresh = (flags & O_CREAT) != 0 && ::stat(path.c_str(), &ignored) != 0;
    const int fd = real_->open(path, flags, mode);
    if (fd < 0) return fd;
    const std::lock_guard<std::mutex> lock(mutex_);
    open_[fd] = {path, (flags & O_DSYNC) != 0};
    if (fresh) unnamed_.insert(path);
    return fd;
  }
  int64_t pwrite(int fd, const void* bytes, size_t n, uint64_t offset) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Open& file = open_[fd];
    if (!file.synced) {
      std::string before(n, '\0');
      const int reader = real_->open(file.path, O_RDONLY, 0);
      if (reader >= 0) {
        real_->pread(reader, before.data(), n, offset);
        real_->close(reader);
      }
      unsynced_.push_back({file.path, offset, std::move(before)});
    }
    return real_->pwrite(fd, bytes, n, offset);
  }
  int fdatasync(int fd) override { return synced(fd, real_->fdatasync(fd)); }
  int fsync(int fd) override { return synced(fd, real_->fsync(fd)); }
  int close(int fd) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      open_.erase(fd);
    }
    return real_->close(fd);
  }

 private:
  struct Open {
    std::string path;
    bool synced = false;
  };
  struct Write {
    std::string path;
    uint64_t offset;
    std::string before;
  };

  int synced(int fd, int result) {
    if (result < 0) return result;
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string& path = open_[fd].path;
    unsynced_.erase(std::remove_if(unsynced_.begin(), unsynced_.end(),
                                   [&](const Write& write) { return write.path == path; }),
                    unsynced_.end());
    for (auto it = unnamed_.begin(); it != unnamed_.end();)
      it = it->substr(0, it->rfind('/')) == path ? unnamed_.erase(it) : std::next(it);
    return result;
  }

  std::mutex mutex_;
  std::map<int, Open> open_;
  std::vector<Write> unsynced_;
  std::set<std::string> unnamed_;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_LOSSY_FILE_SYSTEM_H_
