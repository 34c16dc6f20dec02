// The surroundings of a node that really runs: a libuv loop, threads, child processes, sockets.
#ifndef XCE_CONTROLLER_CONSENSUS_UV_SURROUNDINGS_H_
#define XCE_CONTROLLER_CONSENSUS_UV_SURROUNDINGS_H_

#include <uv.h>

#include <memory>

#include "controller/consensus/surroundings.h"

namespace xce::consensus {

// `loop` must outlive it, and run for one turn after its things have been destroyed.
std::unique_ptr<Surroundings> uv_surroundings(uv_loop_t* loop);

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_UV_SURROUNDINGS_H_
