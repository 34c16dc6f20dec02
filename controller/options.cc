#include "controller/options.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "xce/cluster.h"
#include "xce/config.h"

namespace xce {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

struct Address {
  std::string host;
  uint16_t port = 0;
};

// "host:port" or "[v6]:port"; port 0 is allowed.
absl::StatusOr<Address> parse_address(const std::string& flag, const std::string& text) {
  const size_t colon = text.rfind(':');
  Address address;
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &port) || port > 65535)
    return InvalidArgumentError(StrCat(flag, " '", text, "' is not host:port"));
  address.host = text.substr(0, colon);
  address.port = static_cast<uint16_t>(port);
  if (address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  return address;
}

// The first IP address of a host name.
absl::StatusOr<std::string> resolve(const std::string& flag, const std::string& host) {
  addrinfo hints;
  std::memset(&hints, 0, sizeof hints);
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (rc != 0)
    return InvalidArgumentError(
        StrCat(flag, ": host '", host, "' is not known: ", gai_strerror(rc)));
  std::string best;
  for (addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char text[INET6_ADDRSTRLEN] = "";
    if (getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0)
      continue;
    if (best.empty() || each->ai_family == AF_INET)
      best = text;  // v4 where there is a choice: what others dial by name
    if (each->ai_family == AF_INET) break;
  }
  freeaddrinfo(found);
  return best;
}

bool is_loopback(const std::string& ip) { return ip == "::1" || ip.compare(0, 4, "127.") == 0; }

absl::Status take_peers(const Flags& flags, consensus::Options* out) {
  xce_cluster_config_t config;
  char why[512] = "";
  if (xce_parse_peers(flags.peers.c_str(), &config, why, sizeof why) != 0)
    return InvalidArgumentError(StrCat("--peers: ", why));
  for (int i = 0; i < config.candidates_count; ++i) {
    const xce_candidate_t& entry = config.candidates[i];
    const std::string shown =
        StrCat("'", entry.name, entry.name[0] ? "=" : "", entry.host, ":", entry.port, "'");
    uint64_t id = 0;
    if (!absl::SimpleAtoi(entry.name, &id) || id == 0)
      return InvalidArgumentError(
          StrCat("--peers: entry ", shown, " must begin with its node id, as in 1=host:port"));
    for (const consensus::Peer& other : out->peers)
      if (other.id == id)
        return InvalidArgumentError(
            StrCat("--peers: entry ", shown, " has the node id of another entry"));
    out->peers.push_back({id, entry.host, entry.port});
  }
  return absl::OkStatus();
}

absl::Status take_dial(const Flags& flags, consensus::Options* out) {
  for (const std::string& text : flags.dial) {
    const size_t equals = text.find('=');
    uint64_t id = 0;
    if (equals == std::string::npos || !absl::SimpleAtoi(text.substr(0, equals), &id))
      return InvalidArgumentError(StrCat("--dial '", text, "' is not id=host:port"));
    auto address = parse_address("--dial", text.substr(equals + 1));
    if (!address.ok()) return address.status();
    out->dial[id] = {address->host, address->port};
  }
  return absl::OkStatus();
}

const consensus::Peer* own_entry(const consensus::Options& options) {
  for (const consensus::Peer& peer : options.peers)
    if (peer.id == options.self) return &peer;
  return nullptr;
}

absl::Status take_members(const Flags& flags, consensus::Options* out) {
  if (flags.single && !flags.peers.empty())
    return InvalidArgumentError(
        "--single and --peers exclude one another: one controller, or several");
  if (!flags.single && flags.peers.empty())
    return InvalidArgumentError(
        "give --single for one controller, or --id N with --peers '1=host:port,2=host:port,...'");
  if (flags.single && flags.join)
    return InvalidArgumentError("--single and --join exclude one another");
  out->self = flags.id == 0 && flags.single ? 1 : flags.id;
  out->join = flags.join;
  if (flags.single) {
    // Not the address that it listens on: the cluster's identity must outlive a change of port.
    out->peers = {{out->self, XCE_DEFAULT_HOST, XCE_DEFAULT_PORT}};
    return absl::OkStatus();
  }
  if (flags.id == 0)
    return InvalidArgumentError(
        flags.join ? "--id is missing: give the new controller a number that no other has"
                   : "--id is missing: which entry of --peers is this node?");
  const absl::Status peers = take_peers(flags, out);
  if (!peers.ok()) return peers;
  if (flags.join && out->peers.size() == (own_entry(*out) != nullptr ? 1u : 0u))
    return InvalidArgumentError("--join: --peers must name controllers of the cluster to join");
  if (own_entry(*out) == nullptr && !flags.join)
    return InvalidArgumentError(StrCat("--peers has no entry for this node, --id ", flags.id));
  return absl::OkStatus();
}

absl::Status take_tls(const Flags& flags, service::DaemonOptions* out) {
  if (!flags.tls.any()) return absl::OkStatus();
  auto credentials = net::TlsCredentials::load(flags.tls);
  if (!credentials.ok()) return credentials.status();
  const net::CertIdentity& own = (*credentials)->own();
  if (own.role != Role::kController || own.name != StrCat(out->consensus.self))
    return InvalidArgumentError(StrCat("--tls-cert ", flags.tls.cert, " is the certificate of ",
                                       net::to_string(own), ", but this is controller ",
                                       out->consensus.self));
  out->tls = *std::move(credentials);
  return absl::OkStatus();
}

absl::Status take_listen(const Flags& flags, service::DaemonOptions* out) {
  Address address{"127.0.0.1", XCE_DEFAULT_PORT};
  const consensus::Peer* own = own_entry(out->consensus);
  const char* flag = "--listen";
  if (!flags.listen.empty()) {
    auto parsed = parse_address("--listen", flags.listen);
    if (!parsed.ok()) return parsed.status();
    address = *parsed;
  } else if (own != nullptr && !flags.single) {
    address = {own->host, own->port};
    flag = "--peers";
  } else if (flags.join) {
    return InvalidArgumentError("--join: --listen is missing (or an own entry in --peers)");
  }
  if (flags.join && own == nullptr) {
    out->consensus.advertise_host = address.host;
    out->consensus.advertise_port = address.port;
  }
  auto ip = resolve(flag, address.host);
  if (!ip.ok()) return ip.status();
  if (!is_loopback(*ip) && out->tls == nullptr)
    return InvalidArgumentError(StrCat(flag, ": ", address.host,
                                       " is reachable from other machines, but without TLS only "
                                       "loopback is served: use 127.0.0.1, or give --tls-ca, "
                                       "--tls-cert and --tls-key"));
  out->listen_host = *ip;
  out->listen_port = address.port;
  if (!flags.advertise.empty()) {
    auto advertised = parse_address("--advertise", flags.advertise);
    if (!advertised.ok()) return advertised.status();
    if (own == nullptr || flags.single) {
      out->consensus.advertise_host = advertised->host;
      out->consensus.advertise_port = advertised->port;
    } else if (!flags.single && (advertised->host != own->host || advertised->port != own->port))
      return InvalidArgumentError(StrCat("--advertise ", flags.advertise,
                                         " differs from this node's entry in --peers, ", own->host,
                                         ":", own->port, ", which is what others are told"));
  }
  if (flags.join && own == nullptr && out->consensus.advertise_port == 0)
    return InvalidArgumentError("--join: the others must know the port: give one to --listen");
  return absl::OkStatus();
}

absl::Status take_metrics(const Flags& flags, service::DaemonOptions* out) {
  if (flags.metrics_listen.empty()) return absl::OkStatus();
  const auto address = parse_address("--metrics-listen", flags.metrics_listen);
  if (!address.ok()) return address.status();
  const auto ip = resolve("--metrics-listen", address->host);
  if (!ip.ok()) return ip.status();
  if (!is_loopback(*ip))
    return InvalidArgumentError(StrCat("--metrics-listen: ", address->host,
                                       " is reachable from other machines, but without TLS only "
                                       "loopback is served: use 127.0.0.1"));
  out->metrics_host = *ip;
  out->metrics_port = address->port;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<service::DaemonOptions> make_options(const Flags& flags) {
  service::DaemonOptions out;
  absl::Status status = take_members(flags, &out.consensus);
  if (status.ok()) status = take_dial(flags, &out.consensus);
  if (status.ok()) status = take_tls(flags, &out);
  if (status.ok()) status = take_listen(flags, &out);
  if (status.ok()) status = take_metrics(flags, &out);
  if (!status.ok()) return status;
  if (flags.heartbeat_ms < 1 || flags.heartbeat_ms > 10000)
    return InvalidArgumentError(
        StrCat("--heartbeat-ms ", flags.heartbeat_ms, " is not in 1..10000"));
  if (flags.election_timeout_ms < 2 * flags.heartbeat_ms || flags.election_timeout_ms > 60000)
    return InvalidArgumentError(StrCat("--election-timeout-ms ", flags.election_timeout_ms,
                                       " must be at least twice --heartbeat-ms (",
                                       flags.heartbeat_ms, ") and at most 60000"));
  if (flags.host_grace_ms < 1000)
    return InvalidArgumentError(
        StrCat("--host-grace-ms ", flags.host_grace_ms, " is too short: at least 1000"));
  if (flags.snapshot_trailing > 1000000)
    return InvalidArgumentError(
        StrCat("--snapshot-trailing ", flags.snapshot_trailing, " is too much: at most 1000000"));
  if (flags.data_dir.empty()) return InvalidArgumentError("--data-dir is empty");
  out.consensus.data_dir = flags.data_dir;
  out.consensus.heartbeat_ms = flags.heartbeat_ms;
  out.consensus.snapshot_log_bytes = flags.snapshot_log_bytes;
  out.consensus.snapshot_trailing = flags.snapshot_trailing;
  out.history.max_jobs = flags.history_max_jobs;
  out.consensus.election_timeout_ms = flags.election_timeout_ms;
  out.service.node_id = out.consensus.self;
  if (flags.lease_ms != 0 && (flags.lease_ms < 2000 || flags.lease_ms > 86400000))
    return InvalidArgumentError(
        StrCat("--lease-ms ", flags.lease_ms, " is neither 0 (no requeue) nor in 2000..86400000"));
  out.service.host_grace_ms = flags.host_grace_ms;
  out.service.lease_ms = flags.lease_ms;
  out.port_file = flags.port_file;
  return out;
}

}  // namespace xce
