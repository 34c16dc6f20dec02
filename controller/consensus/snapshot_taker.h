// Takes a snapshot without stopping the loop: a forked child has the state as of the fork (the
// kernel copies what the parent changes) and writes it to <index>.tmp, syncs, renames it to
// <index>.snap, syncs the directory, and exits.
//
// The child closes every descriptor at once, so that a primary's connections, port and lock end
// with its process even while the child lives, and the child dies with its parent. It calls nothing
// that takes a lock of ours and does not log. Thread: the consensus thread.
#ifndef XCE_CONTROLLER_CONSENSUS_SNAPSHOT_TAKER_H_
#define XCE_CONTROLLER_CONSENSUS_SNAPSHOT_TAKER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "controller/consensus/consensus.h"
#include "controller/consensus/snapshot_format.h"

namespace xce::consensus {

class SnapshotTaker {
 public:
  using Save = std::function<bool(const std::function<bool(std::string_view)>&)>;

  // hook: see Options::snapshot_hook; may be empty.
  SnapshotTaker(std::string directory, std::function<int(SnapshotStep)> hook)
      : directory_(std::move(directory)), hook_(std::move(hook)) {}
  ~SnapshotTaker() { cancel(); }
  SnapshotTaker(const SnapshotTaker&) = delete;
  SnapshotTaker& operator=(const SnapshotTaker&) = delete;

  // Forks the child, which calls `save`. Not while busy(). Errors: ResourceExhausted (no process,
  // no memory).
  absl::Status start(const SnapshotMeta& meta, const Save& save);
  bool busy() const { return child_ > 0; }
  const SnapshotMeta& meta() const { return meta_; }
  // To be called now and then while busy(): how it ended, once it has. Errors say what to do.
  std::optional<absl::Status> poll();
  // Kills the child, if there is one, and removes what it wrote.
  void cancel();

 private:
  void remove_leftover() const;

  const std::string directory_;
  const std::function<int(SnapshotStep)> hook_;
  SnapshotMeta meta_;
  pid_t child_ = 0;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_SNAPSHOT_TAKER_H_
