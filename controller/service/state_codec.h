// The replicated state as bytes: a row of Cap'n Proto records (libxce/schema/snapshot.capnp), each
// behind its length. Not PURE only because of Cap'n Proto; no I/O, no locks of its own: fit for a
// forked child.
#ifndef XCE_CONTROLLER_SERVICE_STATE_CODEC_H_
#define XCE_CONTROLLER_SERVICE_STATE_CODEC_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "controller/state/state.h"

namespace xce::service {

// Takes the next bytes; false: no more are wanted.
using ByteSink = std::function<bool(std::string_view)>;
// Gives up to n further bytes; 0: no more.
using ByteSource = std::function<size_t(char* to, size_t n)>;

// Writes the whole state; a body that several jobs share is written once. False: the sink wanted no
// more.
bool save_state(const state::State& state, const ByteSink& sink);

// Reads what save_state wrote. DataLoss: it makes no sense; FailedPrecondition: a newer version
// wrote it. *version: of what wrote it; from kDepartedApart on, jobs that had departed are not in
// the state, but in the history.
inline constexpr uint16_t kDepartedApart = 2;
absl::StatusOr<std::unique_ptr<state::State>> load_state(const ByteSource& source,
                                                         uint16_t* version = nullptr);

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_STATE_CODEC_H_
