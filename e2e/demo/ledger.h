// What the clients of the demo and the soak saw and what their jobs did, kept apart from what the
// cluster says, and compared at the end. PURE but for reading the run file. Thread safe.
#ifndef XCE_E2E_DEMO_LEDGER_H_
#define XCE_E2E_DEMO_LEDGER_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "e2e/cluster/client.h"

namespace xce::e2e {

struct Verdict {
  size_t acknowledged = 0;  // jobs whose submission was acknowledged (array tasks count each)
  std::map<std::string, int> outcomes;
  int wrong_outcome = 0;   // ended otherwise than its script must
  int lost = 0;            // acknowledged, and unknown to the cluster
  int unexpected = 0;      // in the cluster, and never acknowledged
  int given_twice = 0;     // one id for two submissions
  int ran_twice = 0;       // by the jobs' own ledger: an attempt started more than once, a second
                           // attempt of a job that may have one only, or two at the same time
  int attempts_again = 0;  // second and later attempts of jobs that may have them
  int never_ran = 0;       // said to have completed, but absent from the ledger
  int failed_calls = 0;
  double longest_gap_ms = 0;          // between two acknowledged writes
  std::vector<std::string> findings;  // what is wrong with which job, the first ones
  bool good() const {
    return lost + unexpected + given_twice + ran_twice + never_ran + wrong_outcome + failed_calls ==
           0;
  }
};

class Ledger {
 public:
  explicit Ledger(std::string run_file) : run_file_(std::move(run_file)) {}

  // A submission was acknowledged: ids first..first+count-1, which must end in `outcome` ("" :
  // any). requeue: they may be started again when their host is lost.
  void acknowledged(uint64_t first, uint32_t count, const std::string& outcome,
                    bool requeue = false);
  void failed_call() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++failed_calls_;
  }
  // Starts a new stretch of writes: the time before it counts as no gap.
  void reset_gap();
  size_t count() const;
  // The ids that were acknowledged.
  std::vector<uint64_t> ids() const;
  // The shell lines that make a script sign the run file with its job id and attempt, at its begin
  // and, if it likes, at its end.
  std::string signature() const {
    return "echo \"$XCE_JOB_ID.$XCE_ATTEMPT\" >> '" + run_file_ + "'";
  }
  std::string end_signature() const {
    return "echo \"$XCE_JOB_ID.$XCE_ATTEMPT-\" >> '" + run_file_ + "'";
  }
  Verdict compare(const std::map<uint64_t, JobRow>& jobs) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Expected {
    std::string outcome;
    bool requeue = false;
  };
  struct Runs {
    std::map<uint32_t, int> starts;  // of each attempt
    bool overlapped = false;
  };
  std::map<uint64_t, Runs> read_runs() const;
  void compare_run(uint64_t id, const Runs& runs, Verdict* verdict) const;

  std::string run_file_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Expected> acknowledged_;
  int given_twice_ = 0, failed_calls_ = 0;
  double longest_gap_ms_ = 0;
  Clock::time_point last_{};
};

}  // namespace xce::e2e

#endif  // XCE_E2E_DEMO_LEDGER_H_
