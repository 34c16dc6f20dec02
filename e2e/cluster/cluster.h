// A whole XCE on this machine for a test, the demo or the benchmark: real daemons, free loopback
// ports, one temporary directory; start, kill, pause, restart. I/O; call from one thread.
#ifndef XCE_E2E_CLUSTER_CLUSTER_H_
#define XCE_E2E_CLUSTER_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "e2e/cluster/client.h"
#include "e2e/cluster/network.h"
#include "e2e/cluster/process.h"
#include "e2e/cluster/proxy.h"
#include "e2e/cluster/system_faults.h"

namespace xce::e2e {

struct ClusterOptions {
  int controllers = 3;
  int workers = 0;
  int schedulers = 0;
  bool apiserver = false;
  // An authority of its own in dir()/pki, a certificate for every daemon; the apiserver asks for
  // tokens.
  bool tls = false;
  int worker_cpus = 4;
  int worker_memory_mb = 4096;
  std::vector<std::string> controller_args, worker_args, apiserver_args;
  bool links = false;  // controllers dial one another through links()
  // Workers dial controllers through links(), as node worker_node(i). A standby's redirect leads
  // past a link: to cut the first worker off, use one controller.
  bool worker_links = false;
  // Every worker, scheduler and the apiserver reaches each controller through links(), wherever a
  // redirect leads it, as worker_node(i), scheduler_node(i) and apiserver_node(). Needs
  // //e2e/cluster:liblinks.so; does nothing under a sanitizer (links_work()).
  bool daemon_links = false;
  // Each controller, then each worker, is on a host of its own of this network, which has enough
  // and outlives the cluster. Goes with tls only: without it daemons serve loopback only.
  Network* network = nullptr;
  bool faults = false;    // controllers have clocks and disks that faults() spoils
  std::string dir;        // "": a fresh temporary one
  bool keep_dir = false;  // leave it (logs) at the end, as keep_dir() does
};

class Cluster {
 public:
  // Starts everything and waits until a primary serves. On failure the message holds the tails of
  // the logs.
  static absl::StatusOr<std::unique_ptr<Cluster>> start(const ClusterOptions& options);
  ~Cluster();

  const std::string& dir() const { return dir_; }
  std::string masters() const;          // candidate list of all controllers
  std::string address(int node) const;  // host:port of controller `node` (0-based)
  std::string api_address() const;
  // With tls: the files of a role and name, issued when asked for first; else empty. Roles: user,
  // worker, scheduler, apiserver, controller.
  ClientTls certificate(const std::string& role, const std::string& name);
  // Of who runs this program, for clients.
  ClientTls user_certificate();
  // With tls: that user's token for the apiserver, good for hours; else "".
  std::string api_token() const;

  // The 0-based number of the controller that leads and serves, by its own word; -1 when none
  // answers so.
  int primary();
  // Waits for a serving primary other than `not_this` (-1: any); its number, or -1 at the limit.
  int wait_primary(int not_this, milliseconds limit);

  Process& controller(int node) { return *controllers_[node]; }
  // The 0-based number of the active scheduler, by the primary's word; -1: none, or nobody tells.
  int active_scheduler();

  Process& worker(int i) { return *workers_[i]; }
  // The controllers that a worker, a scheduler or the apiserver (by its number among links()) is
  // started with from its next start on.
  void set_candidates(int node, const std::string& list) { candidates_[node] = list; }
  Process& scheduler(int i) { return *schedulers_[i]; }
  Process& apiserver() { return *apiserver_; }
  SystemFaults& faults(int node) { return *faults_[node]; }  // with ClusterOptions::faults
  // With ClusterOptions::links, worker_links or daemon_links; nodes are 0-based.
  Proxy& links() { return *links_; }
  static int worker_node(int i) { return 100 + i; }
  static int scheduler_node(int i) { return 200 + i; }
  static int apiserver_node() { return 300; }
  // With ClusterOptions::network: the host of a worker; that of a controller is its number.
  int worker_host(int i) const { return options_.controllers + i; }
  bool links_work() const { return !links_library_.empty(); }
  int controllers() const { return static_cast<int>(controllers_.size()); }
  int workers() const { return static_cast<int>(workers_.size()); }
  int schedulers() const { return static_cast<int>(schedulers_.size()); }

  absl::Status start_controller(int node);
  // KEY=VALUE for the environment of that controller, from its next start on.
  void set_environment(int node, std::vector<std::string> env) { env_[node] = std::move(env); }
  // A program with arguments that runs that controller from its next start on; empty: none does.
  void set_launcher(int node, std::vector<std::string> argv) { launchers_[node] = std::move(argv); }
  // One more controller, not started yet: it is to join. Its 0-based number.
  int add_controller();
  // From its next start on a controller has an empty data directory.
  void lose_disk(int node);
  std::string data_dir(int node) const;
  // Whom masters() names from now on (at most four); the founders, unless said.
  void use_masters(std::vector<int> nodes);
  absl::Status start_worker(int i);
  absl::Status start_scheduler(int i);
  absl::Status start_apiserver();
  // Waits until the controllers show this many hosts up.
  bool wait_hosts(int count, milliseconds limit);

  // What a daemon has logged so far: "controller1", "scheduler1", "worker1", "apiserver".
  std::string log(const std::string& daemon) const;
  // The last lines of every log, for a failed test.
  std::string log_tails(size_t lines = 15) const;
  // Ends every daemon and job of this cluster.
  void stop();
  // The directory stays at the end.
  void keep_dir() { options_.keep_dir = true; }

 private:
  Cluster() = default;
  absl::Status make_links();
  absl::Status make_daemon_links();
  std::string candidates(int node) const;
  void put_on_host(int host, std::vector<std::string>* argv) const;
  absl::Status make_faults();
  std::vector<std::string> tls_flags(const std::string& role, const std::string& name);

  ClusterOptions options_;
  std::string dir_;
  std::vector<uint16_t> ports_;
  std::vector<int> disks_;    // of each controller: how many it has lost
  std::vector<int> masters_;  // empty: the founders
  std::unique_ptr<Proxy> links_;
  std::vector<std::unique_ptr<SystemFaults>> faults_;
  std::vector<std::vector<std::string>> dials_;  // of each node: its --dial flags
  std::map<int, std::vector<std::string>> env_, launchers_;
  std::map<int, std::string> candidates_;             // of daemons whose list is not masters()
  std::string links_library_;                         // preloaded into daemons; empty: none is
  std::map<int, std::vector<std::string>> link_env_;  // of each daemon: what the library reads
  uint16_t api_port_ = 0;
  std::vector<std::unique_ptr<Process>> controllers_, workers_, schedulers_;
  std::unique_ptr<Process> apiserver_;
  std::unique_ptr<Client> probe_;
  bool stopped_ = false;
};

}  // namespace xce::e2e

#endif  // XCE_E2E_CLUSTER_CLUSTER_H_
