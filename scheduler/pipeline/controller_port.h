// What the scheduler asks of the controllers, as an interface: libxce in production, a recording
// fake in tests.
//
// Threads: publisher thread for the calls but estimates(); events may arrive on any thread.
// Results: 0, or a negative status as libxce returns it.
#ifndef XCE_SCHEDULER_PIPELINE_CONTROLLER_PORT_H_
#define XCE_SCHEDULER_PIPELINE_CONTROLLER_PORT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "libxce/model/command.h"
#include "libxce/model/host.h"
#include "libxce/model/job.h"
#include "scheduler/policy/estimate.h"

namespace xce::sched {

struct JobGone {
  JobId id = 0;
  Index revision = 0;
};
struct HostGone {
  std::string name;
};
struct QueueGone {
  std::string name;
};
struct ReservationGone {
  std::string name;
  Index revision = 0;
};
struct WakeUp {};
// What the view takes in. Other pushes (a gap, the active scheduler) have their own handler.
using ViewEvent = std::variant<Job, JobGone, Host, HostGone, Queue, QueueGone, Reservation,
                               ReservationGone, WakeUp>;

// Receives pushes. Must not block nor call the port.
class PushSink {
 public:
  virtual ~PushSink() = default;
  virtual void on_event(ViewEvent event) = 0;
  virtual void on_gap() = 0;  // events were lost
  virtual void on_scheduler(uint64_t epoch,
                            const std::string& name) = 0;  // who is active now; "" nobody
  virtual void on_reconnect() = 0;                         // a connection was repaired: join again
};

struct JoinAnswer {
  Index revision = 0;
  uint64_t epoch = 0;
  bool active = false;
};

class ControllerPort {
 public:
  virtual ~ControllerPort() = default;
  virtual int join(JoinAnswer* out) = 0;
  // item_status: 0 or a positive E_XCE_ value an item.
  virtual int dispatch(uint64_t epoch, const std::vector<Dispatch>& items,
                       std::vector<int>* item_status) = 0;
  // Running jobs that are to wait again.
  virtual int evict(uint64_t epoch, const std::vector<Eviction>& items) = 0;
  virtual int pend_reasons(uint64_t epoch, const std::vector<PendReason>& items) = 0;
  // One page; next_after is 0 after the last.
  virtual int jobs(const JobFilter& filter, std::vector<Job>* rows, JobId* next_after) = 0;
  // The same, of finished jobs.
  virtual int history(const JobFilter& filter, std::vector<Job>* rows, JobId* next_after) = 0;
  virtual int hosts(std::vector<Host>* out) = 0;
  virtual int queues(std::vector<Queue>* out) = 0;
  virtual int reservations(std::vector<Reservation>* out) = 0;
  // Name of the active scheduler; "" when there is none.
  virtual int active_scheduler(std::string* name) = 0;
  // When jobs may start. Returns at once, and may be lost. The one call that is made by another
  // thread: the estimator's.
  virtual void estimates(uint64_t epoch, const std::vector<StartEstimate>& items) = 0;
  // Asks the library to repair a connection that is known to be dead. Returns at once.
  virtual void heartbeat() = 0;
  // Rises with every connection made.
  virtual uint64_t generation() = 0;
  // Words for this thread's last failure, with the attempts made.
  virtual std::string last_error() = 0;
};

enum class LogLevel { kDebug, kInfo, kWarn, kError };
using LogFn = std::function<void(LogLevel, const std::string&)>;

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_PIPELINE_CONTROLLER_PORT_H_
