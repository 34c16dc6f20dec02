// The connector: keeps this host a member of the cluster. One thread joins, says hello at an
// interval, joins again after every reconnect (spec component-failover-adoption,
// WorkerControllerConnector) and reconciles both ways after each join.
//
// Nothing on the host waits for it: the supervisor runs jobs, limits and the outbox on its own
// thread, and the reporter has another. Pushes are handed on as they come. The reconnect hook only
// notes; the join happens here, outside of any call, and counts as done only when it succeeded on
// the connection that is current afterwards (A2).
#ifndef XCE_WORKER_AGENT_CONNECTOR_H_
#define XCE_WORKER_AGENT_CONNECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "libxce/model/host.h"
#include "worker/agent/controller_link.h"
#include "worker/agent/log_reader.h"
#include "worker/agent/supervisor.h"

namespace xce::worker {

class Connector {
 public:
  struct Options {
    HostAttrs host;
    uint64_t instance = 0;
    int hello_interval_ms = 1000;
    int refused_interval_ms = 5000;  // between two tries of a worker that the controllers refuse
    bool exit_if_unreachable = false;
    std::string cluster_id_file;  // remembers whose jobs lie in the data directory
  };

  Connector(Options options, ControllerLink* link, Supervisor* supervisor, LogReader* logs);
  ~Connector() { stop(); }

  // Called on the connector's thread. on_joined: after every successful join. on_fatal: the worker
  // cannot do its work; end it.
  void set_handlers(std::function<void()> on_joined, std::function<void()> on_fatal) {
    on_joined_ = std::move(on_joined);
    on_fatal_ = std::move(on_fatal);
  }
  void start();
  // From any thread; ends calls in flight through the link.
  void stop();

  // The connection generation of the last successful join; 0: not joined. From any thread.
  uint64_t joined_generation() const { return joined_generation_; }
  // Makes the connector look now whether it has to join again. From any thread.
  void kick();

 private:
  void run();
  void wait(int ms);
  bool stopping() const;
  void handle_push(Pushed pushed);
  bool needs_join() const;
  void renew_lease(int64_t sent_ms, const HelloAnswer& hello);
  void tell_refusal();
  int pause_ms() const;
  void tick();
  bool check_cluster(uint64_t cluster_id);
  bool join();
  bool reconcile();
  bool settle_unlisted(Key key);

  const Options options_;
  ControllerLink* const link_;
  Supervisor* const supervisor_;
  LogReader* const logs_;
  std::function<void()> on_joined_, on_fatal_;

  std::thread thread_;
  std::atomic<uint64_t> reconnects_{0};  // counted by the hook
  std::atomic<uint64_t> joined_generation_{0};
  std::atomic<bool> gap_{false};  // pushes were lost: reconcile again
  uint64_t joined_reconnects_ = 0;
  uint64_t leased_generation_ = 0;  // joined, and its lease renewed since
  std::string told_fault_;          // at the last join
  std::string refusal_;             // of the last join, when it was one that trying does not help
  int64_t refusal_told_ms_ = 0;
  bool reached_ = false;  // some controller has answered
  bool reconciled_ = false;
  bool cluster_checked_ = false;
  int failures_ = 0;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool kicked_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_CONNECTOR_H_
