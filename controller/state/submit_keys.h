// Submit keys: two submissions of one user with one key are one submission. PURE.
// A key lives as long as a job that it made is kept, and then for another kKeyKeepMs, unless more
// than kMaxOrphans such keys are kept: then the oldest go first.
#ifndef XCE_CONTROLLER_STATE_SUBMIT_KEYS_H_
#define XCE_CONTROLLER_STATE_SUBMIT_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "libxce/model/job.h"

namespace xce::state {

inline constexpr int64_t kKeyKeepMs = 3600 * 1000;
inline constexpr size_t kMaxOrphans = 1000000;

class SubmitKeys {
 public:
  struct Made {
    JobId job = 0;       // the first one
    uint32_t count = 0;  // tasks
    uint32_t kept = 0;   // of those, still in the job table
    uint64_t body_hash = 0;
  };
  const Made* find(const std::string& user, const std::string& key) const;
  void add(const JobSpec& spec, JobId job, uint32_t count);
  void job_removed(const JobSpec& spec, int64_t now_ms);
  void expire(int64_t now_ms);

  const std::map<std::string, Made>& all() const { return made_; }
  const std::deque<std::pair<int64_t, std::string>>& orphans() const { return orphans_; }

  // From a snapshot, in the order of all() and of orphans().
  void restore(const std::string& name, const Made& made) {
    made_.emplace_hint(made_.end(), name, made);
  }
  void restore_orphan(int64_t removed_ms, const std::string& name) {
    orphans_.emplace_back(removed_ms, name);
  }

 private:
  std::map<std::string, Made> made_;  // by user, a zero byte, key
  std::deque<std::pair<int64_t, std::string>> orphans_;
};

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_SUBMIT_KEYS_H_
