// A submission becomes jobs: one, or one per index of an array under consecutive ids. PURE.
#ifndef XCE_CONTROLLER_STATE_SUBMIT_H_
#define XCE_CONTROLLER_STATE_SUBMIT_H_

#include "controller/state/tables.h"

namespace xce::state {

inline constexpr size_t kMaxArrayTasks = 100000;
inline constexpr uint32_t kMaxNodes = 10000;
inline constexpr size_t kMaxTextBytes = 4096;  // of a name, a path, a comment

// Adds the jobs, or refuses with E_XCE_PERM, E_XCE_INVALID, E_XCE_NOENT (queue), E_XCE_BUSY, or
// E_XCE_DUP_JOB (submit key).
Result submit(Turn& turn, const Command& command, const JobSpec& spec);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_SUBMIT_H_
