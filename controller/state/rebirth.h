// A state from a backup, made fit to begin a new life. PURE.
//
// Between the backup and now the old cluster went on: it gave out job ids and attempt numbers,
// answered writes, dispatched jobs. Nothing of that is known here, and the workers and clients that
// saw it are still there. So that no work is done twice and no old word is taken for a new one:
//
//   waiting jobs     are held, unless it is known that nothing ran since: they may have run
//   jobs on a host   go on where they still run, and are reported lost where they do not; none is
//                    started again by itself, not even one that asked for it
//   ids, attempts, scheduler's epochs, log indexes   go on far above what the old cluster can have
//                    used
//   sessions         are forgotten, and clients from before are too old to be new: a write that
//   they
//                    send again gets OUTCOME_UNKNOWN
//   submit keys      stay: the same key is still the same job
#ifndef XCE_CONTROLLER_STATE_REBIRTH_H_
#define XCE_CONTROLLER_STATE_REBIRTH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/state/state.h"

namespace xce::state {

inline constexpr uint64_t kRebirthIndexes = uint64_t{1} << 40;
inline constexpr JobId kRebirthJobIds = 10000000;
inline constexpr uint32_t kRebirthAttempts = 1000;
inline constexpr uint64_t kRebirthEpochs = 1000;

struct Rebirth {
  Index index = 0;           // of the new life's beginning: as the old one's + kRebirthIndexes
  bool hold_waiting = true;  // false: it is known that no job has started since the backup
  std::string when;          // of the backup, in words, for the jobs' reasons
};

// DataLoss: the parts of the old state do not fit together.
absl::StatusOr<std::unique_ptr<State>> reborn(const State& old, const Rebirth& how);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_REBIRTH_H_
