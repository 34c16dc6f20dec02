// The outbox: what this host has launched and what it has to report, on disk before anybody hears
// of it.
//
// One append-only file. A launch is written before its shepherd is started, so that an attempt is
// started once at most, also over a power cut. A report is written before it is sent and kept until
// the controller confirms its sequence number; numbers rise by one over restarts. Everything that
// one turn of the supervisor's loop adds shares one fdatasync (commit).
//
// Threads: add_*, commit, confirm and rebase belong to the supervisor's thread; pending, confirmed
// and the like may be called from any.
#ifndef XCE_WORKER_AGENT_OUTBOX_H_
#define XCE_WORKER_AGENT_OUTBOX_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "libxce/model/command.h"
#include "worker/lifecycle/lifecycle.h"

namespace xce::worker {

// Whether a report is the last one of its attempt.
bool is_final(const Report& report);

class Outbox {
 public:
  struct LaunchState {
    std::string boot_id;  // of the boot it was launched in
    bool start_reported = false, suspend_reported = false;
  };

  // Opens or makes the file `path`, cutting off a torn tail. `compact_bytes`: size from which
  // confirmed records are dropped. FailedPrecondition when the file is damaged before its end, with
  // the way out.
  static absl::StatusOr<std::unique_ptr<Outbox>> open(const std::string& path,
                                                      size_t compact_bytes = 4 << 20);
  ~Outbox();

  void add_launch(Key key, const std::string& boot_id);
  // Gives the report its sequence number.
  void add_report(Report report);
  // Puts everything added on disk; only then do reports become pending and launches final. On
  // failure nothing is lost: the next call writes a fresh file. Cheap when nothing was added.
  // A full disk is met with the room that keep_reserve set aside.
  absl::Status commit();
  // Sets room aside for that, once; to be called while the disk has some.
  void keep_reserve();

  // Drops the reports up to `seq`, which the controller has applied, and gives those that were last
  // ones of their attempts.
  std::vector<Key> confirm(uint64_t seq);
  // After a join and confirm(applied): makes the numbers go on from what the controller has
  // applied. It changes something only when one side has lost its data; reports already confirmed
  // then stay dropped.
  void rebase(uint64_t applied);

  // Reports on disk with numbers above `after`, at most `max`, in order.
  std::vector<Report> pending(uint64_t after, size_t max) const;
  uint64_t confirmed() const;
  uint64_t last_seq() const;
  // Launched attempts whose last report has not been added yet.
  std::map<Key, LaunchState> launches() const;
  // Last reports that wait for confirmation.
  std::vector<Report> unconfirmed_finals() const;

 private:
  Outbox(std::string path, size_t compact_bytes)
      : path_(std::move(path)), compact_bytes_(compact_bytes) {}
  absl::Status load();
  void note_report(const Report& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string whole_state() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status write_buffer();
  absl::Status rewrite();
  std::string reserve() const { return path_ + ".reserve"; }

  const std::string path_;
  const size_t compact_bytes_;
  int fd_ = -1;
  size_t file_bytes_ = 0;
  bool broken_ = false;      // the file's end is unknown: rewrite it
  std::string buffer_;       // encoded, not yet written
  bool needs_sync_ = false;  // the buffer holds more than confirmations

  mutable absl::Mutex mutex_;
  std::deque<Report> reports_ ABSL_GUARDED_BY(mutex_);  // unconfirmed, in order
  std::map<Key, LaunchState> launches_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_seq_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t confirmed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t durable_seq_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_OUTBOX_H_
