// What a controller answers to operators and their tools over HTTP, from a picture of itself: is it
// alive, is it ready, does it lead, and its metrics in the Prometheus text format. PURE.
#ifndef XCE_CONTROLLER_SERVICE_HEALTH_H_
#define XCE_CONTROLLER_SERVICE_HEALTH_H_

#include <cstdint>
#include <string>

#include "controller/service/http_server.h"
#include "controller/service/telemetry.h"

namespace xce::service {

struct GatewayCounts {  // what the client I/O thread knows
  uint64_t connections = 0;
  uint64_t refused_connections = 0;  // over a limit; ever
  uint64_t refused_requests = 0;     // unreadable, without hello, too many in flight; ever
  uint64_t outbox = 0;               // answers and pushes that wait for it
};

// A consensus thread that has not come round for so long is stuck.
inline constexpr uint64_t kStuckMs = 5000;
// A standby that has more entries to apply than this does not keep up.
inline constexpr uint64_t kMaxBehind = 10000;

// Empty when this node may be sent clients: the primary serves, or a standby knows the primary and
// keeps up. Else why not.
std::string unready_reason(const Telemetry& telemetry, uint64_t now_us);

// /metrics /livez /readyz /leader; anything else is 404.
//   /livez   200 while the consensus thread comes round
//   /readyz  200 as unready_reason, else 503 with the reason
//   /leader  200 on the primary that serves, else 503 naming the primary
HttpReply answer_http(const std::string& path, const Telemetry& telemetry,
                      const GatewayCounts& gateway, uint64_t now_us);

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_HEALTH_H_
