// The words and colours of libxce's enumerations, and what can be told from a job. Pure.
#ifndef XCE_CLI_LABELS_H_
#define XCE_CLI_LABELS_H_

#include <xce/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/table.h"

namespace xce::cli {

inline constexpr uint32_t kAliveStates = (1u << XCE_JOB_COMPLETED) - 1;
inline constexpr uint32_t kEndedStates = ((1u << (XCE_JOB_LOST + 1)) - 1) & ~kAliveStates;

const char* state_word(xce_job_state_t state);            // "RUNNING"
const char* host_state_word(xce_host_state_t state);      // "UP"
const char* desired_word(xce_desired_t desired);          // "run"
const char* dependency_word(xce_dependency_kind_t kind);  // "afterok"
Colour state_colour(xce_job_state_t state);
Colour host_colour(xce_host_state_t state);

// "running,failed", "alive", "ended" as bits of 1 << state.
absl::StatusOr<uint32_t> parse_states(std::string_view text);

bool is_ended(const xce_job_t& job);
bool is_waiting(const xce_job_t& job);  // pending or held
// "17" or "17[3]".
std::string id_of(const xce_job_t& job);
// Whether it will not start by itself: held, or no host and no future can satisfy it.
bool is_stuck(const xce_job_t& job);
// How long it has run, or ran; -1 when it never started. now_ms: the primary's clock.
int64_t run_ms(const xce_job_t& job, int64_t now_ms);
// Where it is or was, why it waits, or how it ended: a table's last column.
std::string place_of(const xce_job_t& job);
std::string hosts_of(const xce_job_t& job);
std::string gres_words(const xce_gres_t* gres, size_t n);

}  // namespace xce::cli

#endif  // XCE_CLI_LABELS_H_
