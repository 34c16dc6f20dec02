// The operating system's files with faults that a test can ask for. Thread safe.
#ifndef XCE_CONTROLLER_CONSENSUS_FAULTY_FILE_SYSTEM_H_
#define XCE_CONTROLLER_CONSENSUS_FAULTY_FILE_SYSTEM_H_

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "controller/consensus/forwarding_file_system.h"

namespace xce::consensus {

class FaultyFileSystem final : public ForwardingFileSystem {
 public:
  // From now on every write fails with this errno (0: none does).
  void fail_writes(int error) {
    set([&] { write_error_ = error; });
  }
  // Each write takes at most so many bytes (0: all).
  void shorten_writes(size_t bytes) {
    set([&] { max_write_ = bytes; });
  }
  // Only so many more bytes can be written; then the disk is full.
  void limit_space(int64_t bytes) {
    set([&] { space_ = bytes; });
  }
  // Writes to the log wait until release_writes().
  void block_writes() {
    set([&] { blocked_ = true; });
  }
  void release_writes() {
    set([&] { blocked_ = false; });
  }
  // How many writes of at least a sector have been asked for.
  int writes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return writes_;
  }

  int64_t pwrite(int fd, const void* bytes, size_t n, uint64_t offset) override {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (n >= 512) writes_++;
      changed_.wait(lock, [this] { return !blocked_; });
      if (write_error_ != 0) return -write_error_;
      if (max_write_ != 0) n = std::min(n, max_write_);
      if (space_ >= 0) {
        if (space_ == 0) return -ENOSPC;
        n = std::min(n, static_cast<size_t>(space_));
        space_ -= static_cast<int64_t>(n);
      }
    }
    return real_->pwrite(fd, bytes, n, offset);
  }

 private:
  template <class F>
  void set(F change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change();
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int write_error_ = 0;
  size_t max_write_ = 0;
  int64_t space_ = -1;
  bool blocked_ = false;
  int writes_ = 0;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_FAULTY_FILE_SYSTEM_H_
