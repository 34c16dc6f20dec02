// The disk's thread: what the consensus thread queues is put on disk in order, everything queued
// meanwhile as one record and one write (group commit). The consensus thread never waits for the
// disk.
#ifndef XCE_CONTROLLER_CONSENSUS_LOG_WRITER_H_
#define XCE_CONTROLLER_CONSENSUS_LOG_WRITER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "controller/consensus/log_store.h"
#include "libxce/base/histogram.h"

namespace xce::consensus {

class LogWriter {
 public:
  // wake is called on the writer's thread after progress() has changed; it must be thread safe and
  // quick. max_record_bytes: queued items are put into one record up to about this size. ask: for a
  // simulation; then there is no thread, it is called whenever something is queued, and
  // write_some() is what writes.
  LogWriter(std::unique_ptr<LogStore> store, size_t max_record_bytes, std::function<void()> wake,
            std::function<void()> ask = nullptr);
  ~LogWriter();  // as stop()
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Queues items (see log_format.h; at most max_record_bytes). Returns a ticket, higher than all
  // before it. highest_index: of the entries among the items, 0 if there are none.
  uint64_t enqueue(std::string items, uint64_t highest_index = 0);
  // Queues items after which segments whose entries all have an index up to `index` are removed
  // (see LogStore::remove_through). They must hold all that the log holds beside entries.
  uint64_t enqueue_compaction(std::string items, uint64_t index);

  struct Progress {
    uint64_t durable = 0;  // every ticket up to this one is on disk
    absl::Status error;    // once not OK nothing more is written, and durable stays
    absl::Status cleanup;  // of the last removal of segments; it does no harm if that failed
  };
  // Thread safe.
  Progress progress() const;

  // Writes one record of what is queued, as the thread does, and wakes. False: nothing is queued,
  // or this or an earlier write failed. Only for who gave `ask`.
  bool write_some();

  // Bytes queued and not yet on disk. Thread safe.
  size_t backlog() const;

  // Times of the writes with their syncs so far, in seconds. Thread safe.
  Histogram write_times() const;

  // Lets the write under way finish, drops what is queued behind it, and joins the thread.
  void stop();

 private:
  struct Item {
    uint64_t ticket;
    std::string bytes;
    uint64_t highest_index;
    uint64_t remove_through;
  };
  uint64_t add(Item item);
  void run();

  const size_t max_record_bytes_;
  const std::function<void()> wake_;
  const std::function<void()> ask_;
  std::unique_ptr<LogStore> store_;  // the thread's
  mutable std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<Item> queue_;  // guarded by mutex_, as are the next ones
  size_t backlog_ = 0;
  uint64_t last_ticket_ = 0;
  Progress progress_;
  Histogram write_times_{
      {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5}};
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_LOG_WRITER_H_
