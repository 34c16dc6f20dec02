// The real ControllerLink: libxce, through its C interface and the one path for candidate lists
// (A1.1-A1.7): parse, validate, convert, one context that fails over by itself. Thread safe as
// libxce is.
#ifndef XCE_WORKER_AGENT_XCE_LINK_H_
#define XCE_WORKER_AGENT_XCE_LINK_H_

#include <xce/client.h>
#include <xce/cluster.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/agent/controller_link.h"

namespace xce::worker {

class XceLink : public ControllerLink {
 public:
  struct Options {
    std::string peers;  // [name=]host:port[,...]; one candidate is a list of one
    std::string host;   // this worker's name
    int call_deadline_ms = 10000;
    std::string tls_ca, tls_cert, tls_key;  // paths; all three or none
  };
  // InvalidArgument when the candidate list cannot be used, naming the entry.
  static absl::StatusOr<std::unique_ptr<XceLink>> create(const Options& options);
  ~XceLink() override;

  void set_handlers(std::function<void(Pushed)> on_push,
                    std::function<void()> on_reconnect) override;
  int start() override;
  void stop() override;
  int hello(HelloAnswer* out) override;
  int join(const HostAttrs& host, uint64_t instance, JoinAnswer* out) override;
  int list_jobs(const std::string& host, JobId after, JobPage* out) override;
  int job_info(JobId id, std::optional<Job>* out) override;
  int notify(uint64_t instance, const std::vector<Report>& reports) override;
  int answer_log(const LogChunk& chunk) override;
  uint64_t generation() override;
  std::string last_error() override;
  std::string last_trail() override;
  std::string current_master() override;

 private:
  XceLink() = default;
  static int handle_reconnect(xcecli_ctx_t ctx, void* self);
  static void handle_push(xcecli_ctx_t ctx, const xce_event_t* event, void* self);

  xcecli_ctx_t ctx_ = nullptr;
  std::function<void(Pushed)> on_push_;
  std::function<void()> on_reconnect_;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_XCE_LINK_H_
