// Reservations as the policy sees them: what is kept of hosts, for whom, and when. PURE.
//
// Those for whom it is kept may use it as anything else. Others may start there only if they end
// before it begins, by their time limits; of a host that is kept in part they have the rest.
#ifndef XCE_SCHEDULER_POLICY_KEPT_H_
#define XCE_SCHEDULER_POLICY_KEPT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "libxce/model/types.h"

namespace xce::sched {

using NameId = uint32_t;  // of an interned name

struct Kept {
  std::string name;
  uint32_t cpus = 0;  // of each host; 0: all of it
  int64_t start_ms = 0, end_ms = 0;
  std::vector<std::string> hosts;
  std::vector<NameId> users, queues;
  Index modify_index = 0;
  uint32_t seen = 0;  // retake in which it was last seen

  bool is_for(NameId user, NameId queue) const {
    return std::find(users.begin(), users.end(), user) != users.end() ||
           std::find(queues.begin(), queues.end(), queue) != queues.end();
  }
  // Whether a job from from_ms until until_ms (INT64_MAX: for ever) runs while it is in force.
  bool overlaps(int64_t from_ms, int64_t until_ms) const {
    return from_ms < end_ms && until_ms > start_ms;
  }
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_KEPT_H_
