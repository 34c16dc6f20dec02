#include "e2e/demo/ledger.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "libxce/model/types.h"

namespace xce::e2e {
namespace {

constexpr size_t kMaxFindings = 20;

}  // namespace

void Ledger::acknowledged(uint64_t first, uint32_t count, const std::string& outcome,
                          bool requeue) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto now = Clock::now();
  if (last_ != Clock::time_point{})
    longest_gap_ms_ =
        std::max(longest_gap_ms_, std::chrono::duration<double, std::milli>(now - last_).count());
  last_ = now;
  for (uint64_t id = first; id < first + count; ++id)
    if (!acknowledged_.emplace(id, Expected{outcome, requeue}).second) ++given_twice_;
}

void Ledger::reset_gap() {
  std::lock_guard<std::mutex> lock(mutex_);
  last_ = {};
}

size_t Ledger::count() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return acknowledged_.size();
}

std::vector<uint64_t> Ledger::ids() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint64_t> out;
  for (const auto& [id, expected] : acknowledged_) out.push_back(id);
  return out;
}

// Lines are "job.attempt" at a begin and "job.attempt-" at an end, in the order of the writes.
std::map<uint64_t, Ledger::Runs> Ledger::read_runs() const {
  std::map<uint64_t, Runs> out;
  std::ifstream in(run_file_);
  for (std::string line; std::getline(in, line);) {
    char* at = nullptr;
    const uint64_t id = std::strtoull(line.c_str(), &at, 10);
    const auto attempt =
        static_cast<uint32_t>(*at == '.' ? std::strtoull(at + 1, &at, 10) : uint64_t{1});
    Runs& runs = out[id];
    if (*at != '-') {
      ++runs.starts[attempt];
    } else if (runs.starts.rbegin() != runs.starts.rend() &&
               runs.starts.rbegin()->first > attempt) {
      runs.overlapped = true;  // it ended after a later one had begun
    }
  }
  return out;
}

void Ledger::compare_run(uint64_t id, const Runs& runs, Verdict* verdict) const {
  const auto expected = acknowledged_.find(id);
  const bool again = expected != acknowledged_.end() && expected->second.requeue;
  bool twice = runs.overlapped || (runs.starts.size() > 1 && !again);
  for (const auto& [attempt, starts] : runs.starts) twice = twice || starts > 1;
  if (again) verdict->attempts_again += static_cast<int>(runs.starts.size()) - 1;
  if (!twice) return;
  ++verdict->ran_twice;
  std::string what = absl::StrCat("job ", id, runs.overlapped ? " ran twice at once:" : " ran:");
  for (const auto& [attempt, starts] : runs.starts)
    absl::StrAppend(&what, " attempt ", attempt, " ", starts, " times");
  verdict->findings.push_back(what);
}

Verdict Ledger::compare(const std::map<uint64_t, JobRow>& jobs) const {
  std::lock_guard<std::mutex> lock(mutex_);
  Verdict verdict;
  const std::map<uint64_t, Runs> runs = read_runs();
  verdict.acknowledged = acknowledged_.size();
  verdict.given_twice = given_twice_;
  verdict.failed_calls = failed_calls_;
  verdict.longest_gap_ms = longest_gap_ms_;
  std::vector<std::string>& findings = verdict.findings;
  for (const auto& [acked, expected] : acknowledged_) {
    const auto job = jobs.find(acked);
    if (job == jobs.end()) {
      ++verdict.lost;
      findings.push_back(absl::StrCat("job ", acked, " is lost"));
      continue;
    }
    const std::string state = name_of(static_cast<JobState>(job->second.state));
    if (!expected.outcome.empty() && state != expected.outcome) {
      ++verdict.wrong_outcome;
      findings.push_back(absl::StrCat("job ", acked, " is ", state, ", not ", expected.outcome,
                                      ": ", job->second.reason));
    }
    if (state == "COMPLETED" && runs.count(acked) == 0) {
      ++verdict.never_ran;
      findings.push_back(absl::StrCat("job ", acked, " completed and never ran"));
    }
  }
  for (const auto& [known, job] : jobs) {
    ++verdict.outcomes[name_of(static_cast<JobState>(job.state))];
    if (acknowledged_.count(known) != 0) continue;
    ++verdict.unexpected;
    findings.push_back(absl::StrCat("job ", known, " of ", job.name, " was never acknowledged"));
  }
  for (const auto& [id, run] : runs) compare_run(id, run, &verdict);
  if (findings.size() > kMaxFindings) findings.resize(kMaxFindings);
  return verdict;
}

}  // namespace xce::e2e
