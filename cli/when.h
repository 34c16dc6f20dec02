// Points in time as people type them. Reads the time zone; "now" is an argument.
#ifndef XCE_CLI_WHEN_H_
#define XCE_CLI_WHEN_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace xce::cli {

// "2h", "3d", "1h30m": so long ago; "now", "today", "yesterday" (their midnight); "14:30" and
// "14:30:05" today; "2026-11-30", "2026-11-30 14:30", "2026-11-30T14:30:05" in local time, with a Z
// at the end in UTC. In milliseconds since the epoch. The error shows what would be right.
absl::StatusOr<int64_t> parse_when(std::string_view text, int64_t now_ms);

}  // namespace xce::cli

#endif  // XCE_CLI_WHEN_H_
