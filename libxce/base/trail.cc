// See trail.h.
#include "libxce/base/trail.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace xce {

std::string outcomes_by_candidate(const std::string& trail) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::pair<std::string, int>>> outcomes;
  const std::vector<std::string> items = absl::StrSplit(trail, "; ", absl::SkipEmpty());
  for (const std::string_view item : items) {
    const size_t space = item.find(' ');
    if (space == std::string_view::npos) continue;  // cut off: the trail has a limited size
    const std::string candidate(item.substr(0, space));
    std::string_view what = item.substr(space + 1);
    what = what.substr(0, what.rfind(" at "));
    auto [it, fresh] = outcomes.try_emplace(candidate);
    if (fresh) order.push_back(candidate);
    auto same = std::find_if(it->second.begin(), it->second.end(),
                             [what](const auto& o) { return o.first == what; });
    if (same != it->second.end()) {
      ++same->second;
    } else {
      it->second.emplace_back(std::string(what), 1);
    }
  }
  std::vector<std::string> words;
  for (const std::string& candidate : order) {
    std::vector<std::string> parts;
    for (const auto& [what, times] : outcomes[candidate])
      parts.push_back(times > 1 ? absl::StrCat(what, " (", times, " times)") : what);
    words.push_back(absl::StrCat(candidate, " ", absl::StrJoin(parts, ", ")));
  }
  return absl::StrJoin(words, "; ");
}

std::string candidate_line(int index, int count, const std::string& host, uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return absl::StrCat("controller candidate ", index + 1, " of ", count, ": ", v6 ? "[" : "", host,
                      v6 ? "]:" : ":", port);
}

std::string unreached_line(int attempt, const std::string& trail, bool waiting) {
  return absl::StrCat("no controller serves yet (attempt ", attempt, "): ",
                      trail.empty() ? "none was tried in time" : outcomes_by_candidate(trail),
                      waiting ? "; waiting for a cluster" : "");
}

}  // namespace xce
