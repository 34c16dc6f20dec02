// When to stop waiting for a primary whose process is gone (DESIGN "Fast failover"). PURE.
//
// A standby that has seen for itself that the primary's process is gone suspects it and says so to
// the other voters, with the position of its log. When a majority of the voters, itself included,
// suspect the same primary in the same term, the one with the highest position stands for election
// at once; the others wait for its request. Of nodes with equal logs that is the one that has
// applied most: one that was started just now may have its whole log still to apply, and must do so
// before it can serve. Without such a majority nothing happens: one standby alone, or one with a
// cut cable, never deposes a live primary.
#ifndef XCE_CONTROLLER_CONSENSUS_FAILOVER_H_
#define XCE_CONTROLLER_CONSENSUS_FAILOVER_H_

#include <cstdint>
#include <map>

namespace xce::consensus {

inline constexpr uint64_t kSuspicionLifetimeMs = 500;
inline constexpr uint64_t kSuspicionRepeatMs = 100;

// The end of a node's log, and how much of it was applied when the node began to suspect: as told
// to the others, or two nodes might order themselves differently. The longest log wins, then what
// is applied; the id only breaks ties, so that two nodes never stand at once.
struct LogPosition {
  uint64_t term = 0;
  uint64_t index = 0;
  uint64_t applied = 0;
};

class Failover {
 public:
  explicit Failover(uint64_t self) : self_(self) {}

  // The primary of a term, as the node knows it; 0: it knows none. A change of either forgets all
  // suspicions.
  void observe(uint64_t term, uint64_t primary);

  // This node has found the primary's process gone, or has heard from it again.
  void set_suspecting(bool suspecting);
  bool suspecting() const { return suspecting_; }

  // Another voter says that it suspects. What it says of another term or primary is ignored. It
  // must say so again within kSuspicionLifetimeMs for as long as it does: a voter that has found
  // the primary alive falls silent.
  void on_suspect(uint64_t from, uint64_t term, uint64_t primary, LogPosition position,
                  uint64_t now_ms);

  // Whether this node, whose log ends at `own`, is to stand now, in a cluster of `voters`.
  bool should_stand(LogPosition own, unsigned voters, uint64_t now_ms) const;

  uint64_t term() const { return term_; }
  uint64_t primary() const { return primary_; }

 private:
  const uint64_t self_;
  uint64_t term_ = 0;
  uint64_t primary_ = 0;
  bool suspecting_ = false;
  struct Claim {
    LogPosition position;
    uint64_t made_ms;
  };
  std::map<uint64_t, Claim> others_;  // voters that suspect as well, and where their logs end
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_FAILOVER_H_
