// An ended job as bytes: one row of the history. The entry that it departed with, then the job as
// Cap'n Proto (client.capnp), with script, arguments and environment. No I/O, no locks.
#ifndef XCE_CONTROLLER_HISTORY_RECORD_H_
#define XCE_CONTROLLER_HISTORY_RECORD_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "libxce/model/command.h"

namespace xce::history {

std::string encode_record(Index departed, const Job& job);

// The entry that it departed with; 0 if these are no record's bytes.
Index departed_of(std::string_view record);

// The job, or nothing if it does not match the filter (see xce::matches), which is told without
// reading all of it. DataLoss: these are no record's bytes.
absl::StatusOr<std::optional<Job>> read_if(std::string_view record, const JobFilter& filter);

}  // namespace xce::history

#endif  // XCE_CONTROLLER_HISTORY_RECORD_H_
