#include "scheduler/sim/swf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace xce::sched {
namespace {

constexpr size_t kFields = 18;
constexpr std::array<const char*, kFields> kNames = {
    "job number",     "submit time",      "wait time", "run time",
    "processors",     "cpu time",         "memory",    "requested processors",
    "requested time", "requested memory", "status",    "user",
    "group",          "executable",       "queue",     "partition",
    "preceding job",  "think time"};
enum Field {
  kNumber = 0,
  kSubmit = 1,
  kRun = 3,
  kProcs = 4,
  kAskedProcs = 7,
  kAskedTime = 8,
  kStatus = 10,
  kUser = 11
};

// Years of seconds are far below this; a larger number is a mistake, and sums must not overflow.
constexpr double kLargest = 1e12;

using Line = std::array<int64_t, kFields>;

absl::StatusOr<Line> parse_line(std::string_view text, const std::string& where) {
  const std::vector<std::string> words = absl::StrSplit(
      absl::string_view(text.data(), text.size()), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.size() != kFields) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": ", words.size(), words.size() == 1 ? " field" : " fields",
                     " where a job has 18 (Standard Workload Format)"));
  }
  Line line;
  for (size_t i = 0; i < kFields; ++i) {
    double value;  // some archives have averages with decimals
    if (!absl::SimpleAtod(words[i], &value) || !std::isfinite(value)) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": field ", i + 1, " (", kNames[i],
                                                     ") is not a number: '", words[i].substr(0, 40),
                                                     "'"));
    }
    if (std::abs(value) > kLargest) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": field ", i + 1, " (", kNames[i],
                       ") is out of range: ", words[i].substr(0, 40)));
    }
    line[i] = static_cast<int64_t>(value);
  }
  return line;
}

// The number of a header line such as "; MaxProcs: 256", or 0.
uint32_t header_number(std::string_view comment, const char* name) {
  absl::string_view text =
      absl::StripAsciiWhitespace(absl::string_view(comment.data(), comment.size()));
  if (!absl::StartsWithIgnoreCase(text, absl::StrCat(name, ":"))) return 0;
  text.remove_prefix(std::string_view(name).size() + 1);
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  uint32_t number = 0;
  return !words.empty() && absl::SimpleAtoi(words[0], &number) ? number : 0;
}

}  // namespace

absl::StatusOr<Trace> parse_swf(std::string_view text, const std::string& file) {
  Trace trace;
  uint32_t max_procs = 0, max_nodes = 0;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const size_t first = row.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) continue;
    row.remove_prefix(first);
    if (row[0] == ';') {
      const std::string_view comment = row.substr(
          row.find_first_not_of(';') == std::string_view::npos ? row.size()
                                                               : row.find_first_not_of(';'));
      max_procs = std::max(max_procs, header_number(comment, "MaxProcs"));
      max_nodes = std::max(max_nodes, header_number(comment, "MaxNodes"));
      continue;
    }
    const std::string where = absl::StrCat(file, " line ", number);
    const absl::StatusOr<Line> parsed = parse_line(row, where);
    if (!parsed.ok()) return parsed.status();
    const Line& line = *parsed;
    if (line[kSubmit] < 0)
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": a job needs a submit time, 0 or later"));
    if (line[kStatus] >= 2 && line[kStatus] <= 4) {
      ++trace.partial;
      continue;
    }
    const int64_t cpus = line[kAskedProcs] > 0 ? line[kAskedProcs] : line[kProcs];
    if (cpus > std::numeric_limits<int32_t>::max())
      return absl::InvalidArgumentError(absl::StrCat(where, ": a job of ", cpus, " processors"));
    if (line[kRun] < 0 || cpus <= 0 || (line[kRun] == 0 && line[kStatus] == 5)) {
      ++trace.no_run_time;
      continue;
    }
    TraceJob job;
    job.number = line[kNumber];
    job.submit_s = line[kSubmit];
    job.run_s = line[kRun];
    job.cpus = static_cast<uint32_t>(cpus);
    job.user = line[kUser];
    if (line[kAskedTime] <= 0) ++trace.no_estimate;
    if (line[kAskedTime] > 0 && line[kAskedTime] < job.run_s) ++trace.raised;
    job.estimate_s = std::max<int64_t>({line[kAskedTime], job.run_s, 1});
    trace.jobs.push_back(job);
  }
  if (trace.jobs.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": no job with a run time and processors in it"));
  trace.cpus = max_procs > 0 ? max_procs : max_nodes;
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.submit_s < b.submit_s; });
  return trace;
}

}  // namespace xce::sched
