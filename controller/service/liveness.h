// Which hosts have been unheard of for too long. PURE: the caller gives the time. Soft state of a
// primary: a new primary counts anew, because a worker may have been talking to the old one until a
// moment ago.
#ifndef XCE_CONTROLLER_SERVICE_LIVENESS_H_
#define XCE_CONTROLLER_SERVICE_LIVENESS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libxce/model/host.h"

namespace xce::service {

// From the end of a lease until its jobs are surely gone: the time between TERM and KILL (5 s), and
// a margin for slow machines.
inline constexpr uint64_t kFenceMs = 5000 + 5000;

class Liveness {
 public:
  explicit Liveness(uint64_t grace_ms) : grace_ms_(grace_ms) {}

  // Every host counts as heard now.
  void restart(uint64_t now_ms);
  // A request of that host's worker came.
  void heard(std::string_view host, uint64_t now_ms);
  // Hosts to give up: up or drained, unheard for the grace time, and not named in the last grace
  // time. When the previous call is long ago, this process was stopped and heard nobody: then
  // everything counts anew.
  std::vector<std::string> lost(const std::map<std::string, Host>& hosts, uint64_t now_ms);

  // Unreachable hosts whose leases have run out for certain: silent for kFenceMs longer than a
  // lease (and a tenth of it, for clocks of different rates), and not named in the last grace time.
  // To be called after lost(), which notices when this process was stopped.
  //
  // No lease outlasts this: it counts from before a hello was sent, and a hello is answered after a
  // barrier only, so each that an earlier primary gave began before this one's own beginning.
  std::vector<std::string> gone(const std::map<std::string, Host>& hosts, uint64_t now_ms);

 private:
  uint64_t last_heard(const std::string& host) const;

  const uint64_t grace_ms_;
  uint64_t since_ms_ = 0;
  uint64_t looked_ms_ = 0;
  std::map<std::string, uint64_t, std::less<>> heard_ms_;
  std::map<std::string, uint64_t, std::less<>> named_ms_;
  std::map<std::string, uint64_t, std::less<>> gone_ms_;  // when gone() last named them
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_LIVENESS_H_
