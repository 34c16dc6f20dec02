// ControllerPort over libxce. Events come on the library's own thread, calls are made by the
// publisher's.
#ifndef XCE_SCHEDULER_PIPELINE_XCE_PORT_H_
#define XCE_SCHEDULER_PIPELINE_XCE_PORT_H_

#include <xce/client.h>

#include <string>
#include <vector>

#include "scheduler/pipeline/controller_port.h"

namespace xce::sched {

class XcePort : public ControllerPort {
 public:
  XcePort() = default;
  ~XcePort() override;
  XcePort(const XcePort&) = delete;
  XcePort& operator=(const XcePort&) = delete;

  // Makes the context, without I/O; sink must outlive this. Negative: the config is unusable.
  int open(const xce_client_config_t& config, PushSink* sink);
  // Connects, or says hello again, and gives up after deadline_ms (0: the library's default).
  // -E_XCE_NOT_READY when no controller served as primary by then: calls go on trying all the same.
  int reach(int deadline_ms);
  // The attempts of this thread's last failed call, as libxce tells them.
  std::string last_trail();
  // Ends calls in flight with -ECANCELED. Any thread, after open.
  void stop();
  // Frees the context; no call may be in flight.
  void close();
  std::string current_master();

  int join(JoinAnswer* out) override;
  int dispatch(uint64_t epoch, const std::vector<Dispatch>& items,
               std::vector<int>* item_status) override;
  int evict(uint64_t epoch, const std::vector<Eviction>& items) override;
  int pend_reasons(uint64_t epoch, const std::vector<PendReason>& items) override;
  int jobs(const JobFilter& filter, std::vector<Job>* rows, JobId* next_after) override;
  int history(const JobFilter& filter, std::vector<Job>* rows, JobId* next_after) override;
  int hosts(std::vector<Host>* out) override;
  int queues(std::vector<Queue>* out) override;
  int reservations(std::vector<Reservation>* out) override;
  int active_scheduler(std::string* name) override;
  void estimates(uint64_t epoch, const std::vector<StartEstimate>& items) override;
  void heartbeat() override;
  uint64_t generation() override;
  std::string last_error() override;

 private:
  static int on_reconnect(xcecli_ctx_t ctx, void* self);
  static void on_push(xcecli_ctx_t ctx, const xce_event_t* event, void* self);

  xcecli_ctx_t ctx_ = nullptr;
  bool started_ = false;  // reach() was called
  PushSink* sink_ = nullptr;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_PIPELINE_XCE_PORT_H_
