#include "scheduler/sim/command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace xce::sched {
namespace {

absl::StatusOr<std::string> read_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  // A file without a single byte, and a directory, also end here.
  if (!file || text.str().empty()) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": ", errno != 0 ? strerror(errno) : "it is empty"));
  }
  return text.str();
}

std::string of(size_t n, const char* noun) { return absl::StrCat(n, " ", noun, n == 1 ? "" : "s"); }

int fail(const std::string& words) {
  fprintf(stderr, "xce_scheduler: %s\n", words.c_str());
  return 1;
}

bool put(const std::string& text) {
  return fwrite(text.data(), 1, text.size(), stdout) == text.size() && fflush(stdout) == 0;
}

}  // namespace

std::optional<Backfill> parse_policy(std::string_view name) {
  if (name == "fcfs" || name == "none") return Backfill::kNone;
  if (name == "easy") return Backfill::kEasy;
  if (name == "conservative") return Backfill::kConservative;
  return std::nullopt;
}

std::string report_text(const std::string& file, const Trace& trace, uint32_t cpus,
                        const std::vector<PolicyResult>& results) {
  std::string out =
      absl::StrCat(file, ": ", of(trace.jobs.size(), "job"), " on ", of(cpus, "processor"), "\n");
  if (trace.no_estimate > 0) {
    absl::StrAppend(&out, "  ", of(trace.no_estimate, "job"),
                    " without a requested time: the run time is taken\n");
  }
  if (trace.raised > 0) {
    absl::StrAppend(&out, "  ", of(trace.raised, "job"),
                    " ran longer than requested: the run time is taken\n");
  }
  if (trace.no_run_time > 0) {
    absl::StrAppend(&out, "  ", of(trace.no_run_time, "job"),
                    " left out: run time or processors are not known\n");
  }
  if (trace.partial > 0)
    absl::StrAppend(&out, "  ", of(trace.partial, "line"),
                    " left out: parts of jobs (status 2 to 4)\n");
  if (!results.empty() && results[0].result.impossible > 0) {
    absl::StrAppend(&out, "  ", of(results[0].result.impossible, "job"), " left out: more than ",
                    of(cpus, "processor"), "\n");
  }
  absl::StrAppend(&out, "\n",
                  "policy           jobs  wait mean   median      p95  slowdown mean  median"
                  "       p95  utilization    makespan\n");
  for (const auto& [policy, r] : results) {
    absl::StrAppendFormat(
        &out, "%-12s %8d %8.0f s %6.0f s %6.0f s %14.2f %7.2f %9.2f %11.2f%% %9d s\n", policy,
        r.jobs, r.mean_wait_s, r.median_wait_s, r.p95_wait_s, r.mean_bounded_slowdown,
        r.median_bounded_slowdown, r.p95_bounded_slowdown, 100 * r.utilization, r.makespan_s);
  }
  return out;
}

std::string report_json(const std::string& file, const Trace& trace, uint32_t cpus,
                        const std::vector<PolicyResult>& results) {
  using Json = nlohmann::ordered_json;
  Json policies = Json::array();
  for (const auto& [policy, r] : results) {
    policies.push_back(Json{
        {"policy", policy},
        {"jobs", r.jobs},
        {"impossible", r.impossible},
        {"backfilled", r.backfilled},
        {"wait_s",
         {{"mean", r.mean_wait_s},
          {"median", r.median_wait_s},
          {"p95", r.p95_wait_s},
          {"max", r.max_wait_s}}},
        {"bounded_slowdown",
         {{"mean", r.mean_bounded_slowdown},
          {"median", r.median_bounded_slowdown},
          {"p95", r.p95_bounded_slowdown}}},
        {"utilization", r.utilization},
        {"makespan_s", r.makespan_s},
    });
  }
  const Json json{{"trace", file},
                  {"jobs", trace.jobs.size()},
                  {"cpus", cpus},
                  {"without_estimate", trace.no_estimate},
                  {"estimate_raised", trace.raised},
                  {"without_run_time", trace.no_run_time},
                  {"partial_lines", trace.partial},
                  {"policies", policies}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int run_sim(const SimFlags& flags) {
  const absl::StatusOr<std::string> text = read_file(flags.trace);
  if (!text.ok()) return fail(std::string(text.status().message()));
  const absl::StatusOr<Trace> trace = parse_swf(*text, flags.trace);
  if (!trace.ok()) return fail(std::string(trace.status().message()));
  const uint32_t cpus = flags.cpus > 0 ? flags.cpus : trace->cpus;
  if (cpus == 0) {
    return fail(absl::StrCat(flags.trace,
                             ": has no MaxProcs and no MaxNodes header; give the number of "
                             "processors with --cpus N"));
  }
  std::vector<PolicyResult> results;
  for (const std::string& name : flags.policy) {
    SimOptions options;
    options.cpus = cpus;
    options.backfill = parse_policy(name).value_or(Backfill::kEasy);
    options.fair_share_half_life_s = flags.fair_share_half_life_s;
    results.push_back(PolicyResult{name, simulate(*trace, options)});
    if (results.back().result.jobs == 0) {
      return fail(absl::StrCat(flags.trace, ": every job needs more than ", of(cpus, "processor")));
    }
  }
  const bool written = put(flags.json ? report_json(flags.trace, *trace, cpus, results)
                                      : report_text(flags.trace, *trace, cpus, results));
  return written ? 0 : fail(absl::StrCat("cannot write the result: ", strerror(errno)));
}

int run_generate(const GenerateOptions& options) {
  return put(generate_swf(options))
             ? 0
             : fail(absl::StrCat("cannot write the trace: ", strerror(errno)));
}

}  // namespace xce::sched
