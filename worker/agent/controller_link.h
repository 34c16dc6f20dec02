// The seam between the worker and the controllers: what the agent asks of libxce, in model values.
// XceLink is the real one; tests put a recording fake in its place.
//
// Calls return 0 (or what each says), or a negative status of xce/errnox.h or errno. They block
// while libxce looks for a primary, so only the agent's own threads make them. Handlers run on
// libxce's threads; they must not block nor call back.
#ifndef XCE_WORKER_AGENT_CONTROLLER_LINK_H_
#define XCE_WORKER_AGENT_CONTROLLER_LINK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "libxce/model/command.h"
#include "libxce/model/host.h"
#include "libxce/model/job.h"

namespace xce::worker {

struct LogQuery {
  uint64_t query = 0;
  JobId job = 0;
  Stream stream = Stream::kStdout;
  uint64_t offset = 0;
  uint32_t limit = 0;
  uint32_t wait_ms = 0;  // for output that is not there yet
};
struct LogChunk {
  uint64_t query = 0;
  int32_t status = 0;
  std::string data;
  uint64_t offset = 0;
  bool eof = false;
  std::string message;
};

struct PushedRemoval {
  JobId job = 0;
};
struct PushedConfirmation {
  uint64_t seq = 0;
};
struct PushedGap {};
using Pushed = std::variant<Job, PushedRemoval, PushedConfirmation, PushedGap, LogQuery>;

struct HelloAnswer {
  uint64_t outbox_applied = 0, cluster_id = 0;
  bool joined = false;    // the connection that answered has joined
  uint32_t lease_ms = 0;  // then: from the sending of this hello on; 0: without end
};
struct JoinAnswer {
  uint64_t revision = 0, outbox_applied = 0;
};
struct JobPage {
  std::vector<Job> jobs;
  uint64_t next_after_id = 0;
};

class ControllerLink {
 public:
  virtual ~ControllerLink() = default;

  // Before start(). on_reconnect only notes the fact: it runs while the connection is being
  // repaired (A2).
  virtual void set_handlers(std::function<void(Pushed)> on_push,
                            std::function<void()> on_reconnect) = 0;
  virtual int start() = 0;
  // Ends the calls in flight; later ones fail at once. From any thread.
  virtual void stop() = 0;

  virtual int hello(HelloAnswer* out) = 0;
  virtual int join(const HostAttrs& host, uint64_t instance, JoinAnswer* out) = 0;
  // Jobs alive with an allocation on `host`, in full, a page at a time.
  virtual int list_jobs(const std::string& host, JobId after, JobPage* out) = 0;
  // nullopt when there is no such job.
  virtual int job_info(JobId id, std::optional<Job>* out) = 0;
  virtual int notify(uint64_t instance, const std::vector<Report>& reports) = 0;
  virtual int answer_log(const LogChunk& chunk) = 0;

  // Rises with every connection made.
  virtual uint64_t generation() = 0;
  // Words for this thread's last failure; its attempts (libxce/base/trail.h); and the controller
  // talked to.
  virtual std::string last_error() = 0;
  virtual std::string last_trail() = 0;
  virtual std::string current_master() = 0;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_CONTROLLER_LINK_H_
