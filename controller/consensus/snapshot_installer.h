// Receives a snapshot from the primary: writes the pieces to a temporary file, syncs it, reads it
// back into a state of its own, checking all of it, and only then gives the file its name. All that
// on a thread of its own, so that the loop goes on. Public members: the consensus thread. A
// simulation has no thread: it calls work() instead (Environment::ask).
#ifndef XCE_CONTROLLER_CONSENSUS_SNAPSHOT_INSTALLER_H_
#define XCE_CONTROLLER_CONSENSUS_SNAPSHOT_INSTALLER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "controller/consensus/consensus.h"
#include "controller/consensus/file_system.h"
#include "controller/consensus/snapshot_format.h"

namespace xce::consensus {

class SnapshotInstaller {
 public:
  struct Source {
    NodeId from = 0;
    uint64_t transfer = 0;    // number of this transfer, the sender's choice
    uint64_t term = 0;        // in which the sender leads
    uint64_t index = 0;       // of the snapshot
    uint64_t total = 0;       // bytes of the file and of the history that goes with it
    uint64_t file_bytes = 0;  // of the file
  };
  struct Result {
    absl::Status status;
    SnapshotMeta meta;
    std::unique_ptr<StateMachine::Restored> state;
  };
  struct Environment {
    FileSystem* fs = nullptr;
    std::string directory;
    uint64_t cluster = 0;
    StateMachine* state_machine = nullptr;  // for load(), which any thread may call
    std::function<int(SnapshotStep)> hook;
    std::function<void()>
        wake;  // called on the thread after written() has changed or done() become true
    // Set: there is no thread. Called whenever there may be something for work() to do.
    std::function<void()> ask;
  };

  SnapshotInstaller(Environment environment, Source source);
  ~SnapshotInstaller();  // gives up and waits for the thread, which may wait for the disk
  SnapshotInstaller(const SnapshotInstaller&) = delete;
  SnapshotInstaller& operator=(const SnapshotInstaller&) = delete;

  // Makes the thread end without a result, and remove its file, as soon as the disk lets it: then
  // it is done(). Returns at once.
  void give_up();

  const Source& source() const { return source_; }
  // Bytes handed to add() so far: where the next piece must start.
  uint64_t taken() const { return taken_; }
  void add(std::string piece);
  uint64_t written() const { return written_.load(); }
  // Everything has come; it is being loaded, or is done.
  bool complete() const { return taken_ == source_.total; }
  bool done() const { return done_.load(); }
  // Without a thread: whether there is something to do, and the next piece of it.
  bool has_work();
  void work();
  // Once done(): what it came to, once. On success the file has its name and its directory is
  // synced.
  Result take_result();

 private:
  enum class Phase { kCreate, kPieces, kInstall };
  void run();
  bool has_work_locked() const;
  absl::Status create();
  absl::Status take_piece();
  absl::Status install(SnapshotMeta* meta, std::unique_ptr<StateMachine::Restored>* state);
  absl::Status step(SnapshotStep step) const;

  const Environment environment_;
  const Source source_;
  const std::string temporary_, history_;  // paths
  uint64_t taken_ = 0;
  Phase phase_ = Phase::kCreate;  // this, fd_ and at_ are the thread's
  int fd_ = -1;
  int history_fd_ = -1;
  uint64_t at_ = 0;  // bytes in both files
  std::atomic<uint64_t> written_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<std::string> pieces_;  // guarded by mutex_
  Result result_;                   // the thread's until done_
  std::thread thread_;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_SNAPSHOT_INSTALLER_H_
