// Submit keys: two submissions of one user with one key are one submission. PURE.
// A key lives as long as a job that it made is kept in the state, and then for another kKeyKeepMs,
// unless more than kMaxOrphans such keys are kept: then the oldest go first.
//
// Of a key only a hash is kept, beside its user's name: there is one for every waiting job.
#ifndef XCE_CONTROLLER_STATE_SUBMIT_KEYS_H_
#define XCE_CONTROLLER_STATE_SUBMIT_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "libxce/model/job.h"

namespace xce::state {

inline constexpr int64_t kKeyKeepMs = 3600 * 1000;
inline constexpr size_t kMaxOrphans = 1000000;

// 128 bits of a key: two keys of one user do not meet by chance, and whoever finds two that do can
// only harm himself.
struct KeyHash {
  uint64_t a = 0, b = 0;
  friend bool operator<(const KeyHash& x, const KeyHash& y) {
    return x.a != y.a ? x.a < y.a : x.b < y.b;
  }
};
KeyHash hash_of_key(const std::string& key);

class SubmitKeys {
 public:
  struct Made {
    JobId job = 0;       // the first one
    uint32_t count = 0;  // tasks
    uint32_t kept = 0;   // of those, still in the job table
    uint64_t body_hash = 0;
  };
  struct Orphan {  // no job of it is in the job table any more
    int64_t removed_ms = 0;
    std::string user;
    KeyHash key;
  };
  const Made* find(const std::string& user, const std::string& key) const;
  void add(const JobSpec& spec, JobId job, uint32_t count);
  void job_removed(const JobSpec& spec, int64_t now_ms);
  void expire(int64_t now_ms);

  using Keys = absl::btree_map<KeyHash, Made>;
  const std::map<std::string, Keys>& all() const { return made_; }  // by user
  const std::deque<Orphan>& orphans() const { return orphans_; }

  // From a snapshot, in the order of all() and of orphans().
  void restore(const std::string& user, const KeyHash& key, const Made& made) {
    Keys& keys = made_[user];
    keys.insert(keys.end(), {key, made});
  }
  void restore_orphan(Orphan orphan) { orphans_.push_back(std::move(orphan)); }

 private:
  std::map<std::string, Keys> made_;
  std::deque<Orphan> orphans_;
};

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_SUBMIT_KEYS_H_
