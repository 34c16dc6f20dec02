// Hosts with network cards of their own, joined by a switch, all on this machine: a network
// namespace each, whose cables a test pulls and plugs in again. Unlike with links (proxy.h),
// nothing answers for a host that is cut off: its packets are gone, as on a real network. Needs
// root. I/O, one thread.
#ifndef XCE_E2E_CLUSTER_NETWORK_H_
#define XCE_E2E_CLUSTER_NETWORK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "e2e/cluster/process.h"

namespace xce::e2e {

class Network {
 public:
  // Moves this process, and whoever it starts from now on, into a network of its own with a switch
  // and so many hosts. To be called before there are threads. PermissionDenied: not root.
  static absl::StatusOr<std::unique_ptr<Network>> make(int hosts);

  // IP address of a host, 0-based; this process reaches it and is reached by it.
  std::string address(int host) const;
  // What a command line begins with that is to run on that host.
  std::vector<std::string> on_host(int host) const;
  // Pulls the cable of a host, or plugs it in again.
  absl::Status pull(int host) { return set_cable(host, "down"); }
  absl::Status plug(int host) { return set_cable(host, "up"); }

 private:
  Network() = default;
  absl::Status add_host(int host);
  absl::Status set_cable(int host, const std::string& state);

  std::vector<std::unique_ptr<Process>> holders_;  // each keeps the namespace of a host
};

}  // namespace xce::e2e

#endif  // XCE_E2E_CLUSTER_NETWORK_H_
