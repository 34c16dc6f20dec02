// A small cluster's state for fuzz targets, and what must hold of any state.
#ifndef XCE_FUZZ_STATE_CHECK_H_
#define XCE_FUZZ_STATE_CHECK_H_

#include <memory>

#include "controller/state/state.h"
#include "libxce/model/command.h"

namespace xce::fuzz {

Identity identity(Role role);

// A state with a queue, a host with a running job, a pending array and a scheduler.
std::unique_ptr<state::State> small_state();

// Its invariants hold, and a snapshot of it is equal to it.
void check_state(const state::State& state);

}  // namespace xce::fuzz

#endif  // XCE_FUZZ_STATE_CHECK_H_
