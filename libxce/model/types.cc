#include "libxce/model/types.h"

#include <array>

#include "absl/strings/match.h"

namespace xce {
namespace {

constexpr std::array<const char*, kJobStates> kStateNames = {
    "PENDING",   "HELD",   "STARTING", "RUNNING", "SUSPENDED",
    "COMPLETED", "FAILED", "KILLED",   "TIMEOUT", "LOST"};
constexpr std::array<const char*, 4> kHostNames = {"UP", "DRAINED", "UNREACHABLE", "GONE"};
constexpr std::array<const char*, 6> kRoleNames = {"none",      "user",      "worker",
                                                   "scheduler", "apiserver", "controller"};
constexpr std::array<const char*, 5> kDependencyNames = {"after", "afterok", "afternotok",
                                                         "afterany", "singleton"};

template <size_t N, typename E>
const char* pick(const std::array<const char*, N>& names, E value) {
  const auto i = static_cast<size_t>(value);
  return i < N ? names[i] : "?";
}

}  // namespace

const char* name_of(JobState state) { return pick(kStateNames, state); }
const char* name_of(HostState state) { return pick(kHostNames, state); }
const char* name_of(Role role) { return pick(kRoleNames, role); }
const char* name_of(DependencyKind kind) { return pick(kDependencyNames, kind); }

bool parse_job_state(std::string_view word, JobState* state) {
  for (size_t i = 0; i < kStateNames.size(); ++i) {
    if (absl::EqualsIgnoreCase(absl::string_view(word.data(), word.size()), kStateNames[i])) {
      *state = static_cast<JobState>(i);
      return true;
    }
  }
  return false;
}

}  // namespace xce
