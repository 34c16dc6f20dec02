// The history of ended jobs: those that have departed from the replicated state, on this
// controller's disk. Each controller keeps its own, and all keep the same: the state machine says
// which jobs depart with which entry of the log.
//
// A writer thread puts rows into the store as they come, without waiting for the disk: what a crash
// takes away is written again when the log is replayed. keep() asks for safety up to an entry, for
// the log may be shortened only up to kept(). A reader thread answers find(). A third thread lives
// while rows are packed for another node.
//
// Thread: the consensus thread, unless said otherwise; nothing but open() blocks.
#ifndef XCE_CONTROLLER_HISTORY_HISTORY_H_
#define XCE_CONTROLLER_HISTORY_HISTORY_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "controller/history/archive.h"
#include "controller/history/store.h"

namespace xce::history {

struct Options {
  size_t backlog_bytes = size_t{64} << 20;  // of rows not yet written; with more, full()
  uint64_t max_jobs = 0;                    // see Store::open
  // For tests: called on the writer's thread before it writes what it has taken, and before it
  // syncs.
  std::function<void()> before_write, before_sync;
};

class History final : public Archive {
 public:
  // post: runs something on the consensus thread, from any thread. failed: called there when the
  // disk fails, once; nothing is kept any more then. drained: called there when it is no longer
  // full().
  History(Options options, std::function<void(std::function<void()>)> post,
          std::function<void(absl::Status)> failed, std::function<void()> drained);
  ~History() override;  // what is queued is dropped; waits for the disk
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Opens the store in `directory` and starts the threads. Blocks. Before anything else.
  absl::Status open(const std::string& directory);

  void add(Index index, std::vector<Job> jobs) override;
  void find(Query query, std::function<void(absl::StatusOr<Page>)> done) override;

  // So much is queued that no more should be added for now.
  bool full() const { return full_; }
  // Everything that departed with entries up to `index` is to be made safe soon. Nothing more of
  // them will be added.
  void keep(Index index);
  // Any thread: everything that departed with entries up to this one is safe on the disk.
  Index kept() const { return kept_.load(); }
  // Any thread: it is in the store, at least.
  Index written() const { return store_ == nullptr ? 0 : store_->written(); }

  // Packs the rows that departed after the entry `after` into a file for unpack() of another node,
  // and calls `done` with its path on the consensus thread. One at a time; Unavailable: one is
  // being packed.
  void pack(Index after, std::function<void(absl::StatusOr<std::string>)> done);
  // Any thread; blocks. Takes the rows of such a file, which is used up.
  absl::Status unpack(const std::string& path);

 private:
  struct Added {
    Index index = 0;  // an entry with its rows; or, without rows, one to be safe up to
    std::vector<Row> rows;
    bool sync = false;
    size_t bytes = 0;
  };
  struct Question {
    Query query;
    std::function<void(absl::StatusOr<Page>)> done;
  };

  void write_loop();
  absl::Status write(std::deque<Added> added);
  void read_loop();
  absl::StatusOr<Page> answer(const Query& query);
  void fail(const absl::Status& status);  // any thread

  const Options options_;
  const std::function<void(std::function<void()>)> post_;
  const std::function<void(absl::Status)> failed_;
  const std::function<void()> drained_;
  std::string directory_;
  std::unique_ptr<Store> store_;
  std::atomic<Index> kept_{0};
  std::atomic<bool> full_{false};
  std::atomic<bool> broken_{false};
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;
  std::condition_variable to_write_, to_read_;
  std::deque<Added> queue_;  // guarded by mutex_, as are the next ones
  size_t backlog_ = 0;       // bytes queued or being written
  // Queued or being written, for find().
  std::map<JobId, std::shared_ptr<const Job>> unwritten_;
  std::deque<Question> questions_;
  std::thread writer_, reader_, packer_;
  std::atomic<bool> packing_{false};
  uint64_t packs_ = 0;
};

}  // namespace xce::history

#endif  // XCE_CONTROLLER_HISTORY_HISTORY_H_
