// The command line of xce_controller. PURE but for the resolution of a host name and
// the reading of certificates.
#ifndef XCE_CONTROLLER_OPTIONS_H_
#define XCE_CONTROLLER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/service/daemon.h"
#include "libxce/net/tls.h"

namespace xce {

// What a person typed.
struct Flags {
  uint64_t id = 0;  // 0: not given
  bool single = false;
  bool join = false;
  std::string peers;   // "1=host:port,..."
  std::string listen;  // "host:port"; empty: the default
  std::string advertise;
  std::string data_dir = "/var/lib/xce/controller";
  std::vector<std::string> dial;  // "id=host:port"
  int heartbeat_ms = 30;
  int election_timeout_ms = 300;
  uint64_t host_grace_ms = 10000;
  uint32_t lease_ms = 30000;
  uint64_t snapshot_log_bytes = uint64_t{64} << 20;
  uint64_t snapshot_trailing = 8192;
  uint64_t history_max_jobs = 0;
  std::string metrics_listen;  // "host:port"; empty: none
  std::string port_file;
  net::TlsFiles tls;
};

// Makes sense of the flags. InvalidArgument with words that name the flag and the way out.
absl::StatusOr<service::DaemonOptions> make_options(const Flags& flags);

}  // namespace xce

#endif  // XCE_CONTROLLER_OPTIONS_H_
