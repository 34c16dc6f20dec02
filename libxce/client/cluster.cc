// Candidate lists (xce/cluster.h): `[name=]host:port[,...]`. No sockets, no clock, no state.
#include "xce/cluster.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "libxce/client/client_log.h"

namespace {

absl::string_view av(std::string_view s) { return {s.data(), s.size()}; }

std::string_view trim(std::string_view s) {
  const absl::string_view t = absl::StripAsciiWhitespace(av(s));
  return {t.data(), t.size()};
}

int refuse(char* err, size_t err_len, const std::string& message) {
  if (err != nullptr && err_len > 0) std::snprintf(err, err_len, "%s", message.c_str());
  return -EINVAL;
}

template <size_t N>
void copy_text(std::string_view from, char (&to)[N]) {
  const size_t n = from.size() < N - 1 ? from.size() : N - 1;
  from.copy(to, n);
  to[n] = '\0';
}

// 1..65535, digits only. False otherwise.
bool parse_port(std::string_view text, uint16_t* out) {
  if (text.empty() || text.size() > 5) return false;
  unsigned value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  if (value < 1 || value > 65535) return false;
  *out = static_cast<uint16_t>(value);
  return true;
}

// Parses one entry; "" when it is well formed, otherwise what is wrong with it.
std::string parse_entry(std::string_view entry, xce_candidate_t* out) {
  std::memset(out, 0, sizeof *out);
  if (entry.empty()) return "is empty";
  for (char c : entry)
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) return "has a blank inside";
  if (const size_t eq = entry.find('='); eq != std::string_view::npos) {
    const std::string_view name = entry.substr(0, eq);
    if (name.empty()) return "has an empty name before '='";
    if (name.size() >= sizeof out->name) return "has a name that is too long";
    copy_text(name, out->name);
    entry = entry.substr(eq + 1);
  }
  std::string_view host, port;
  if (!entry.empty() && entry[0] == '[') {
    const size_t close = entry.find(']');
    if (close == std::string_view::npos) return "lacks the ']' of its IPv6 address";
    host = entry.substr(1, close - 1);
    if (close + 1 >= entry.size() || entry[close + 1] != ':') return "lacks ':port' after ']'";
    port = entry.substr(close + 2);
  } else {
    const size_t colon = entry.rfind(':');
    if (colon == std::string_view::npos) return "lacks a port: write host:port";
    host = entry.substr(0, colon);
    port = entry.substr(colon + 1);
    if (host.find(':') != std::string_view::npos)
      return "is an IPv6 address without brackets: write [address]:port";
  }
  if (host.empty()) return "lacks a host";
  if (host.size() >= sizeof out->host) return "has a host name that is too long";
  if (!parse_port(port, &out->port))
    return absl::StrCat("has the port '", av(port), "', which is not in 1..65535");
  copy_text(host, out->host);
  return "";
}

std::string text_of(const xce_candidate_t& c) {
  const bool v6 = std::strchr(c.host, ':') != nullptr;
  return absl::StrCat(v6 ? "[" : "", c.host, v6 ? "]" : "", ":", c.port);
}

bool terminated(const char* text, size_t size) { return std::memchr(text, '\0', size) != nullptr; }

}  // namespace

extern "C" int xce_parse_peers(const char* text, xce_cluster_config_t* out, char* err,
                               size_t err_len) {
  if (out == nullptr) return refuse(err, err_len, "no place for the result");
  std::memset(out, 0, sizeof *out);
  std::string_view rest = text == nullptr ? std::string_view() : trim(text);
  if (rest.empty())
    return refuse(err, err_len, "the candidate list is empty: write host:port[,host:port...]");
  for (int n = 1;; ++n) {
    const size_t comma = rest.find(',');
    const std::string_view entry = trim(rest.substr(0, comma));
    xce_candidate_t candidate;
    if (const std::string wrong = parse_entry(entry, &candidate); !wrong.empty())
      return refuse(err, err_len, absl::StrCat("candidate ", n, " '", av(entry), "' ", wrong));
    if (out->candidates_count == MAX_HA_CANDIDATES)
      return refuse(err, err_len,
                    absl::StrCat("candidate ", n, " '", av(entry), "' is one too many: at most ",
                                 MAX_HA_CANDIDATES, " are allowed"));
    out->candidates[out->candidates_count++] = candidate;
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  return xce_cluster_config_validate(out, err, err_len);
}

extern "C" int xce_cluster_config_validate(const xce_cluster_config_t* cfg, char* err,
                                           size_t err_len) {
  if (cfg == nullptr) return refuse(err, err_len, "no candidate list");
  if (cfg->candidates_count < 1 || cfg->candidates_count > MAX_HA_CANDIDATES)
    return refuse(err, err_len,
                  absl::StrCat(cfg->candidates_count, " candidates: 1 to ", MAX_HA_CANDIDATES,
                               " are allowed"));
  for (int i = 0; i < cfg->candidates_count; ++i) {
    const xce_candidate_t& c = cfg->candidates[i];
    if (!terminated(c.host, sizeof c.host) || !terminated(c.name, sizeof c.name))
      return refuse(err, err_len, absl::StrCat("candidate ", i + 1, " is not a terminated string"));
    if (c.host[0] == '\0')
      return refuse(err, err_len, absl::StrCat("candidate ", i + 1, " lacks a host"));
    if (c.port == 0)
      return refuse(
          err, err_len,
          absl::StrCat("candidate ", i + 1, " '", c.host, "' has port 0: 1..65535 are allowed"));
    for (int j = 0; j < i; ++j) {
      const xce_candidate_t& d = cfg->candidates[j];
      if (c.port == d.port && std::strcmp(c.host, d.host) == 0)
        return refuse(
            err, err_len,
            absl::StrCat("candidate ", i + 1, " '", text_of(c), "' repeats candidate ", j + 1));
      if (c.name[0] != '\0' && std::strcmp(c.name, d.name) == 0)
        return refuse(err, err_len,
                      absl::StrCat("candidate ", i + 1, " '", c.name, "=", text_of(c),
                                   "' has the name of candidate ", j + 1));
    }
  }
  return 0;
}

extern "C" int xce_cluster_config_to_client_config(const xce_cluster_config_t* cfg,
                                                   xce_client_config_t* out) {
  if (cfg == nullptr || out == nullptr || cfg->candidates_count < 1) return -EINVAL;
  int n = cfg->candidates_count;
  if (n > MAX_HA_CANDIDATES) n = MAX_HA_CANDIDATES;  // what the array can hold
  if (n > N_MAX_MASTERS || cfg->candidates_count > n) {
    xce::client::log_line(XCE_LOG_WARN,
                          absl::StrCat("only the first ", int{N_MAX_MASTERS}, " of ",
                                       cfg->candidates_count, " candidates are used"));
    if (n > N_MAX_MASTERS) n = N_MAX_MASTERS;
  }
  std::memset(out->masters, 0, sizeof out->masters);
  std::memset(out->master_ports, 0, sizeof out->master_ports);
  out->nmasters = n;
  for (int i = 0; i < n; ++i) {
    copy_text(cfg->candidates[i].host, out->masters[i]);
    out->master_ports[i] = cfg->candidates[i].port;
  }
  return 0;
}
