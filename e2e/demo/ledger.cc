#include "e2e/demo/ledger.h"

#include <algorithm>
#include <fstream>

#include "libxce/model/types.h"

namespace xce::e2e {

void Ledger::acknowledged(uint64_t first, uint32_t count, const std::string& outcome) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto now = Clock::now();
  if (last_ != Clock::time_point{})
    longest_gap_ms_ =
        std::max(longest_gap_ms_, std::chrono::duration<double, std::milli>(now - last_).count());
  last_ = now;
  for (uint64_t id = first; id < first + count; ++id)
    if (!acknowledged_.emplace(id, outcome).second) ++given_twice_;
}

void Ledger::reset_gap() {
  std::lock_guard<std::mutex> lock(mutex_);
  last_ = {};
}

size_t Ledger::count() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return acknowledged_.size();
}

Verdict Ledger::compare(const std::map<uint64_t, JobRow>& jobs) const {
  std::lock_guard<std::mutex> lock(mutex_);
  Verdict verdict;
  std::map<uint64_t, int> runs;
  std::ifstream in(run_file_);
  uint64_t id = 0;
  while (in >> id) ++runs[id];
  verdict.acknowledged = acknowledged_.size();
  verdict.given_twice = given_twice_;
  verdict.failed_calls = failed_calls_;
  verdict.longest_gap_ms = longest_gap_ms_;
  for (const auto& [acked, outcome] : acknowledged_) {
    const auto job = jobs.find(acked);
    if (job == jobs.end()) {
      ++verdict.lost;
      continue;
    }
    const std::string state = name_of(static_cast<JobState>(job->second.state));
    if (!outcome.empty() && state != outcome) ++verdict.wrong_outcome;
    if (state == "COMPLETED" && runs.count(acked) == 0) ++verdict.never_ran;
  }
  for (const auto& [known, job] : jobs) {
    ++verdict.outcomes[name_of(static_cast<JobState>(job.state))];
    if (acknowledged_.count(known) == 0) ++verdict.unexpected;
  }
  for (const auto& [ran, times] : runs) verdict.ran_twice += times > 1;
  return verdict;
}

}  // namespace xce::e2e
