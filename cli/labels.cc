#include "cli/labels.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/exit_code.h"
#include "cli/parse.h"
#include "cli/words.h"
#include "libxce/model/types.h"

namespace xce::cli {

// The numbers of the C ABI and of the model are those of client.capnp.
static_assert(XCE_JOB_LOST == static_cast<int>(JobState::kLost));
static_assert(XCE_HOST_GONE == static_cast<int>(HostState::kGone));

const char* state_word(xce_job_state_t state) { return name_of(static_cast<JobState>(state)); }
const char* host_state_word(xce_host_state_t state) {
  return name_of(static_cast<HostState>(state));
}

const char* desired_word(xce_desired_t desired) {
  switch (desired) {
    case XCE_DESIRED_RUN: return "run";
    case XCE_DESIRED_SUSPEND: return "suspend";
    case XCE_DESIRED_KILL: return "kill";
  }
  return "run";
}

const char* dependency_word(xce_dependency_kind_t kind) {
  switch (kind) {
    case XCE_DEP_AFTER: return "after";
    case XCE_DEP_AFTEROK: return "afterok";
    case XCE_DEP_AFTERNOTOK: return "afternotok";
    case XCE_DEP_AFTERANY: return "afterany";
    case XCE_DEP_SINGLETON: return "singleton";
  }
  return "after";
}

Colour state_colour(xce_job_state_t state) {
  switch (state) {
    case XCE_JOB_PENDING:
    case XCE_JOB_HELD: return Colour::kYellow;
    case XCE_JOB_STARTING:
    case XCE_JOB_RUNNING: return Colour::kGreen;
    case XCE_JOB_SUSPENDED: return Colour::kCyan;
    case XCE_JOB_COMPLETED: return Colour::kDim;
    case XCE_JOB_KILLED: return Colour::kMagenta;
    case XCE_JOB_FAILED:
    case XCE_JOB_TIMEOUT:
    case XCE_JOB_LOST: return Colour::kRed;
  }
  return Colour::kNone;
}

Colour host_colour(xce_host_state_t state) {
  switch (state) {
    case XCE_HOST_UP: return Colour::kGreen;
    case XCE_HOST_DRAINED: return Colour::kYellow;
    case XCE_HOST_UNREACHABLE:
    case XCE_HOST_GONE: return Colour::kRed;
  }
  return Colour::kNone;
}

absl::StatusOr<uint32_t> parse_states(std::string_view text) {
  uint32_t bits = 0;
  for (const std::string& word : split_commas(text)) {
    JobState state;
    if (word == "alive") {
      bits |= kAliveStates;
    } else if (word == "ended") {
      bits |= kEndedStates;
    } else if (parse_job_state(word, &state)) {
      bits |= 1u << static_cast<int>(state);
    } else {
      std::string all;
      for (int i = 0; i < kJobStates; ++i)
        absl::StrAppend(&all, name_of(static_cast<JobState>(i)), ", ");
      return absl::InvalidArgumentError(
          absl::StrCat("'", word, "' is no state; the states are ", all, "alive, ended"));
    }
  }
  if (bits == 0)
    return absl::InvalidArgumentError("no state is named; write running or pending,held");
  return bits;
}

bool is_ended(const xce_job_t& job) { return job.state >= XCE_JOB_COMPLETED; }
bool is_waiting(const xce_job_t& job) {
  return job.state == XCE_JOB_PENDING || job.state == XCE_JOB_HELD;
}

std::string id_of(const xce_job_t& job) {
  return format_job_id(job.id, job.array_id, job.array_index);
}

int64_t run_ms(const xce_job_t& job, int64_t now_ms) {
  if (job.start_ms == 0 || is_waiting(job)) return -1;
  const int64_t end = job.end_ms != 0 ? job.end_ms : now_ms;
  return end > job.start_ms ? end - job.start_ms : 0;
}

std::string hosts_of(const xce_job_t& job) {
  std::string out;
  for (size_t i = 0; i < job.nallocs; ++i)
    absl::StrAppend(&out, i == 0 ? "" : ",", job.allocs[i].host);
  return out;
}

bool is_stuck(const xce_job_t& job) {
  if (job.state == XCE_JOB_HELD) return true;
  if (job.state != XCE_JOB_PENDING || job.reason == nullptr) return false;
  for (const std::string_view start :
       {"dependency can never be met", "no host has ", "no single host "})
    if (std::string_view(job.reason).substr(0, start.size()) == start) return true;
  return false;
}

std::string place_of(const xce_job_t& job) {
  const std::string reason = job.reason == nullptr ? "" : job.reason;
  if (is_waiting(job)) return reason.empty() ? "" : absl::StrCat("(", reason, ")");
  std::string out = hosts_of(job);
  if (job.spec.step.job_id != 0) absl::StrAppend(&out, " in job ", job.spec.step.job_id);
  if (!is_ended(job)) {
    if (job.desired == XCE_DESIRED_KILL) absl::StrAppend(&out, " (being killed)");
    return out;
  }
  if (job.state == XCE_JOB_COMPLETED) return out;
  const std::string how =
      job.state == XCE_JOB_FAILED && (reason.empty() || job.exit_code != 0)
          ? absl::StrCat("exit ", exit_code_words(job.exit_code, job.exit_signal))
          : reason;
  if (!how.empty()) absl::StrAppend(&out, out.empty() ? "" : " ", "(", how, ")");
  return out;
}

std::string gres_words(const xce_gres_t* gres, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ",", gres[i].name, ":", gres[i].count);
    if (gres[i].nindices == 0) continue;
    const std::vector<uint32_t> which(gres[i].indices, gres[i].indices + gres[i].nindices);
    absl::StrAppend(&out, " (", absl::StrJoin(which, ","), ")");
  }
  return out;
}

}  // namespace xce::cli
