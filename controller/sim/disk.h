// A disk in memory that loses its power: what was not synced may be gone, sector by sector; names
// made in a directory that was not synced may be gone, the newest first. It also gets full, fails,
// and lets its process die after any operation.
//
// A process that is killed loses nothing that it has written: that is the kernel's.
#ifndef XCE_CONTROLLER_SIM_DISK_H_
#define XCE_CONTROLLER_SIM_DISK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/consensus/file_system.h"
#include "controller/sim/random.h"

namespace xce::sim {

class Disk final : public consensus::FileSystem {
 public:
  // ---- faults
  // From now on writes and syncs fail with this errno (0: none does).
  void fail_writes(int error) { write_error_ = error; }
  // After so many more changing operations nothing changes any more, and died() is true: the
  // process is to be killed before it tells anybody. 0: never.
  void die_after(uint64_t operations) { left_ = operations; }
  bool died() const { return died_; }
  // Only so many more bytes are written, silently: a write cut short by a kill. -1: all.
  void cut_after(int64_t bytes) { bytes_left_ = bytes; }
  // As die_after, but the last of them does not sync: for the write during which the power goes.
  void tear_after(uint64_t operations) {
    left_ = operations;
    tears_ = true;
  }
  // Nothing changes any more: for the destructors of a process that was killed.
  void freeze() { frozen_ = true; }
  // The process is gone: its files are closed, its locks free, the faults but fail_writes() over.
  void process_ended();
  // And the power with it.
  void lose_power(Random* random);

  // ---- FileSystem
  int open(const std::string& path, int flags, int mode) override;
  int64_t pwrite(int fd, const void* bytes, size_t n, uint64_t offset) override;
  int64_t pread(int fd, void* bytes, size_t n, uint64_t offset) override;
  int64_t size(int fd) override;
  int fdatasync(int fd) override { return fsync(fd); }
  int fsync(int fd) override;
  int close(int fd) override;
  int rename(const std::string& from, const std::string& to) override;
  int unlink(const std::string& path) override;
  int mkdir(const std::string& path, int mode) override;
  int lock(int fd) override;
  int list(const std::string& path, std::vector<std::string>* names) override;
  bool threads() const override { return false; }

 private:
  struct File {
    bool directory = false;
    std::string data;             // as the process sees it
    std::string durable;          // as it would be after a loss of power
    std::set<uint64_t> unsynced;  // sectors that differ, perhaps
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;
  struct Open {
    std::shared_ptr<File> file;
    std::string path;
    bool dsync;
  };
  struct NameChange {  // not synced yet
    enum Kind { kMake, kRemove, kRename } kind;
    std::string path;
    std::string to;
    std::shared_ptr<File> file;
  };

  // Whether an operation that changes something takes effect.
  bool takes_effect();
  void change_name(NameChange change);
  static void apply(const NameChange& change, Names* names);
  static void sync_sector(File* file, uint64_t sector);
  static void sync(File* file);

  Names names_;
  Names durable_names_;
  std::vector<NameChange> changes_;  // of names, in order
  std::map<int, Open> open_;
  std::set<std::string> locked_;
  int next_fd_ = 3;
  int write_error_ = 0;
  uint64_t left_ = 0;
  int64_t bytes_left_ = -1;
  bool died_ = false, frozen_ = false, tears_ = false, syncs_ = true;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_DISK_H_
