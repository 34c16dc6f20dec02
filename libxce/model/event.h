// Events: what changed, for those who subscribed. Level triggered: each carries the new state.
// PURE.
#ifndef XCE_LIBXCE_MODEL_EVENT_H_
#define XCE_LIBXCE_MODEL_EVENT_H_

#include <string>
#include <variant>

#include "libxce/model/host.h"
#include "libxce/model/job.h"

namespace xce {

struct JobRemoved {
  JobId id = 0;
};
struct HostRemoved {
  std::string name;
};
struct QueueRemoved {
  std::string name;
};
struct ReservationRemoved {
  std::string name;
};
struct SchedulerChanged {  // who is the active scheduler
  uint64_t epoch = 0;
  ClientId client;
  std::string name;
};
struct OutboxApplied {  // to the worker of that host
  std::string host;
  uint64_t seq = 0;
};

// A Job event carries the job with its body, so that the worker's push can hold it; other pushes
// leave it out.
using Event = std::variant<Job, JobRemoved, Host, HostRemoved, Queue, QueueRemoved,
                           SchedulerChanged, OutboxApplied, Reservation, ReservationRemoved>;

}  // namespace xce

#endif  // XCE_LIBXCE_MODEL_EVENT_H_
