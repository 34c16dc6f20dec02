// What people type: durations, sizes, array specs, job ids, resources, signals, quoted words. PURE.
//
// Every error says what is wrong with the text and shows what would be right.
#ifndef XCE_CLI_PARSE_H_
#define XCE_CLI_PARSE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace xce::cli {

inline constexpr uint32_t kMaxArrayTasks = 100000;  // tasks that one submission may ask for

// "90", "1:30", "1:02:03", "2-3", "2-3:04", "2-3:04:05", "90s", "10m", "2h", "1d", "1h30m" in
// seconds, at least 1.
absl::StatusOr<uint32_t> parse_duration_s(std::string_view text);

// As parse_duration_s, and also "500ms", "0.2", "1.5s", in milliseconds, at least 1.
absl::StatusOr<int64_t> parse_duration_ms(std::string_view text);

// "512" (MiB), "512M", "2G", "1.5GiB", "300K", "1T" in MiB, rounded up, at least 1.
absl::StatusOr<uint64_t> parse_memory_mb(std::string_view text);

// A whole number within [min, max].
absl::StatusOr<int64_t> parse_number(std::string_view text, int64_t min, int64_t max);

struct ArraySpec {
  std::vector<uint32_t> indices;  // ascending, each once
  uint32_t limit = 0;             // tasks that may run at once; 0: any
};
// "0-9", "1,3,5", "0-9:2", "0-99%4" and mixtures of these.
absl::StatusOr<ArraySpec> parse_array(std::string_view text);

// A job, a whole array, or tasks of an array.
struct JobRef {
  uint64_t id = 0;
  std::optional<std::vector<uint32_t>> indices;  // given: tasks of the array `id`
};
// "17", "17[3]", "17_3", "17[0-4]".
absl::StatusOr<JobRef> parse_job_ref(std::string_view text);
// As people write it: "17" or "17[3]".
std::string format_job_id(uint64_t id, uint64_t array_id, uint32_t array_index);

// "gpu", "gpu:2", "gpu:1,license:3" as names and counts, each name once.
absl::StatusOr<std::vector<std::pair<std::string, uint32_t>>> parse_gres(std::string_view text);

// "TERM", "sigterm", "15" as a signal number.
absl::StatusOr<uint32_t> parse_signal(std::string_view text);
// "SIGTERM" for 15; "signal 77" for one without a name.
std::string signal_name(uint32_t signal);

struct Warning {
  uint32_t signal = 0;
  uint32_t before_s = 0;
};
// "USR1@30": send SIGUSR1 30 seconds before the time limit.
absl::StatusOr<Warning> parse_warning(std::string_view text);

// Splits as a shell would: spaces, 'single' and "double" quotes, backslash; an unquoted # at the
// start of a word begins a comment. Nothing is expanded.
absl::StatusOr<std::vector<std::string>> split_words(std::string_view text);

// The one of `known` that `word` most likely means, or "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// Pieces between commas, without the empty ones.
std::vector<std::string> split_commas(std::string_view text);

}  // namespace xce::cli

#endif  // XCE_CLI_PARSE_H_
