// Takes a snapshot without stopping the loop. ForkingSnapshotTaker: a forked child has the state as
// of the fork (the kernel copies what the parent changes) and writes it to <index>.tmp, syncs,
// renames it to <index>.snap, syncs the directory, and exits.
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

  virtual ~SnapshotTaker() = default;
  // Begins; `save` gets the state as it is now, later or at once. Not while busy(). Errors:
  // ResourceExhausted (no process, no memory).
  virtual absl::Status start(const SnapshotMeta& meta, const Save& save) = 0;
  virtual bool busy() const = 0;
  virtual const SnapshotMeta& meta() const = 0;
  // To be called now and then while busy(): how it ended, once it has. Errors say what to do.
  virtual std::optional<absl::Status> poll() = 0;
  // Ends the one under way, if there is one, and removes what it wrote.
  virtual void cancel() = 0;
};

class ForkingSnapshotTaker final : public SnapshotTaker {
 public:
  // hook: see Options::snapshot_hook; may be empty.
  ForkingSnapshotTaker(std::string directory, std::function<int(SnapshotStep)> hook)
      : directory_(std::move(directory)), hook_(std::move(hook)) {}
  ~ForkingSnapshotTaker() override { cancel(); }
  ForkingSnapshotTaker(const ForkingSnapshotTaker&) = delete;
  ForkingSnapshotTaker& operator=(const ForkingSnapshotTaker&) = delete;

  absl::Status start(const SnapshotMeta& meta, const Save& save) override;
  bool busy() const override { return child_ > 0; }
  const SnapshotMeta& meta() const override { return meta_; }
  std::optional<absl::Status> poll() override;
  void cancel() override;

 private:
  void remove_leftover() const;

  const std::string directory_;
  const std::function<int(SnapshotStep)> hook_;
  SnapshotMeta meta_;
  pid_t child_ = 0;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_SNAPSHOT_TAKER_H_
