// Who this worker is: a number that belongs to its data directory. The controllers give a host's
// name to one worker only (controller/state/hosts.h). I/O.
#ifndef XCE_WORKER_AGENT_IDENTITY_H_
#define XCE_WORKER_AGENT_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace xce::worker {

inline constexpr char kWorkerIdFile[] = "worker_id";  // in the data directory

// The number of `data_dir`, made at random when first asked for. `given` (not ""): an operator's
// text that stands for it, for hosts whose data directory does not outlive a restart.
absl::StatusOr<uint64_t> worker_id(const std::string& data_dir, const std::string& given);

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_IDENTITY_H_
