// The controller, put together: consensus, state, service and gateway, started and stopped in
// order. Thread: the caller's, which becomes the consensus thread in run(); stop() from any thread.
#ifndef XCE_CONTROLLER_SERVICE_DAEMON_H_
#define XCE_CONTROLLER_SERVICE_DAEMON_H_

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "controller/consensus/consensus.h"
#include "controller/history/history.h"
#include "controller/service/connection.h"
#include "controller/service/gateway.h"
#include "controller/service/huge_heap.h"
#include "controller/service/real_replica.h"
#include "controller/service/runner.h"
#include "controller/service/service.h"
#include "controller/service/telemetry.h"
#include "controller/state/state.h"

namespace xce::service {

struct DaemonOptions {
  std::string listen_host = "127.0.0.1";  // an IP address
  uint16_t listen_port = 9990;            // 0: any free one
  std::string metrics_host;  // an IP address for /metrics, /livez, /readyz, /leader; empty: none
  uint16_t metrics_port = 0;
  std::string port_file;  // gets the port once it listens; empty: none
  consensus::Options consensus;
  history::Options history;
  ServiceOptions service;
  Limits limits;
  std::shared_ptr<net::TlsCredentials> tls;  // null: without TLS. Of clients and of peers.
  bool catch_signals = true;                 // SIGTERM and SIGINT stop it gracefully
};

class Daemon : private consensus::StateMachine, private consensus::Listener {
 public:
  explicit Daemon(DaemonOptions options);
  ~Daemon() override;

  // Listens, reads the log, starts to take part. Errors are in words for the person who started it.
  absl::Status start();
  uint16_t port() const { return gateway_.port(); }
  uint16_t metrics_port() const { return gateway_.http_port(); }
  // Serves until a signal or stop(). Hands the primary role over first and answers what is under
  // way.
  void run();
  void stop();  // any thread

 private:
  enum class Phase { kServing, kHandingOver, kDraining, kStopped };

  void apply(uint64_t index, uint64_t term, std::string_view entry) override;
  absl::Status open(const std::string& data_dir) override;
  bool takes_more() const override { return !history_.full(); }
  void keep(uint64_t index) override { history_.keep(index); }
  uint64_t kept() const override { return history_.kept(); }
  uint64_t holds() const override { return history_.written(); }
  void pack(uint64_t after, std::function<void(absl::StatusOr<std::string>)> done) override {
    history_.pack(after, std::move(done));
  }
  absl::Status unpack(const std::string& path) override { return history_.unpack(path); }
  bool save(const std::function<bool(std::string_view)>& write) const override;
  absl::StatusOr<std::unique_ptr<Restored>> load(
      const std::function<size_t(char*, size_t)>& read) override;
  void restore(uint64_t index, Restored* state) override;
  void on_role(const consensus::RoleInfo& role) override;
  void on_fatal(absl::Status status) override;
  void begin_stop();
  void drain();
  void drained_or_not_yet();
  void end();
  absl::Status write_port_file() const;
  absl::Status serve_http();
  void publish();  // the newest telemetry

  const DaemonOptions options_;
  uv_loop_t loop_;
  HugeHeap heap_;
  const std::thread::id thread_ = std::this_thread::get_id();
  state::State state_;
  Mailbox<std::function<void()>> from_history_;
  history::History history_;
  consensus::Consensus consensus_;
  RealReplica replica_;
  Service service_;
  Runner runner_;
  Gateway gateway_;
  uv_signal_t term_, int_;
  uv_async_t stopper_;
  uv_timer_t timer_;
  uv_timer_t publisher_;
  TelemetryBoard board_;
  bool started_ = false;
  bool stopping_ = false;  // asked to
  Phase phase_ = Phase::kServing;
  uint64_t drain_until_ms_ = 0;
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_DAEMON_H_
