// Where the controllers are and how long to wait for them: flags, XCE_MASTERS, config files. I/O:
// reads files, environment.
#ifndef XCE_CLI_SETTINGS_H_
#define XCE_CLI_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace xce::cli {

inline constexpr int kPeopleDeadlineMs = 30000;

struct Masters {
  std::string text;    // "host:port,..."
  std::string origin;  // "--masters", "XCE_MASTERS", a file's path, "the default"
};

// The first of: `flag` (when not empty), XCE_MASTERS, `masters` in each of `files` that exists,
// localhost:9990. InvalidArgument: a file cannot be read as TOML, or its masters is no string.
absl::StatusOr<Masters> find_masters(const std::string& flag,
                                     const std::vector<std::string>& files);

// Paths of PEM files; all empty: without TLS.
struct Tls {
  std::string ca, cert, key;
};
// Each of the three, by itself: the flag, else XCE_TLS_CA, XCE_TLS_CERT, XCE_TLS_KEY, else
// `tls_ca`, `tls_cert`, `tls_key` in the first of `files` that has it.
absl::StatusOr<Tls> find_tls(const Tls& flags, const std::vector<std::string>& files);

// ~/.config/xce/config.toml (or under XDG_CONFIG_HOME) and /etc/xce/xce.toml.
std::vector<std::string> config_files();

}  // namespace xce::cli

#endif  // XCE_CLI_SETTINGS_H_
