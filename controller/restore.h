// xce_controller --restore: a backup becomes the data directory of a new cluster. I/O, blocking;
// once, before anything else runs.
#ifndef XCE_CONTROLLER_RESTORE_H_
#define XCE_CONTROLLER_RESTORE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/consensus/consensus.h"

namespace xce {

struct Restore {
  std::string file;
  bool keep_pending = false;  // it is known that no job has started since the backup
};

// Checks the whole backup, then makes options.data_dir: a cluster whose only member is
// options.self. Nothing is made of a file that will not do. What was done, in words; or what is
// wrong and the way out.
absl::StatusOr<std::string> restore(const Restore& what, const consensus::Options& options);

}  // namespace xce

#endif  // XCE_CONTROLLER_RESTORE_H_
