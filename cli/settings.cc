#include "cli/settings.h"

#include <toml++/toml.h>
#include <xce/config.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace xce::cli {
namespace {

// A text of a TOML file; "" when the file does not exist or does not say.
absl::StatusOr<std::string> text_of(const std::string& path, const std::string& key,
                                    const std::string& example) {
  std::ifstream in(path);
  if (!in) {
    if (errno == ENOENT || errno == ENOTDIR) return std::string();
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno),
                                                   "; correct its permissions, or give --masters"));
  }
  std::stringstream text;
  text << in.rdbuf();
  try {
    const toml::table table = toml::parse(text.str(), path);
    const toml::node* node = table.get(key);
    if (node == nullptr) return std::string();
    if (const auto value = node->value<std::string>()) return *value;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", key, " must be a text; write ", key, " = \"", example, "\""));
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ":", error.source().begin.line, ": ",
                                                   std::string(error.description()),
                                                   "; correct the file"));
  }
}

}  // namespace

absl::StatusOr<Masters> find_masters(const std::string& flag,
                                     const std::vector<std::string>& files) {
  if (!flag.empty()) return Masters{flag, "--masters"};
  const char* env = std::getenv("XCE_MASTERS");
  if (env != nullptr && env[0] != '\0') return Masters{env, "XCE_MASTERS"};
  for (const std::string& path : files) {
    absl::StatusOr<std::string> text = text_of(path, "masters", "host1:9990,host2:9990");
    if (!text.ok()) return text.status();
    if (!text->empty()) return Masters{*std::move(text), path};
  }
  return Masters{absl::StrCat(XCE_DEFAULT_HOST, ":", XCE_DEFAULT_PORT), "the default"};
}

absl::StatusOr<Tls> find_tls(const Tls& flags, const std::vector<std::string>& files) {
  Tls out = flags;
  const struct {
    std::string* path;
    const char *variable, *key;
  } parts[] = {{&out.ca, "XCE_TLS_CA", "tls_ca"},
               {&out.cert, "XCE_TLS_CERT", "tls_cert"},
               {&out.key, "XCE_TLS_KEY", "tls_key"}};
  for (const auto& part : parts) {
    const char* env = std::getenv(part.variable);
    if (part.path->empty() && env != nullptr) *part.path = env;
    for (size_t i = 0; part.path->empty() && i < files.size(); ++i) {
      absl::StatusOr<std::string> text = text_of(files[i], part.key, "/etc/xce/pki/file.pem");
      if (!text.ok()) return text.status();
      *part.path = *std::move(text);
    }
  }
  return out;
}

std::vector<std::string> config_files() {
  std::vector<std::string> files;
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (xdg != nullptr && xdg[0] == '/') {
    files.push_back(std::string(xdg) + "/xce/config.toml");
  } else if (home != nullptr && home[0] != '\0') {
    files.push_back(std::string(home) + "/.config/xce/config.toml");
  }
  files.push_back("/etc/xce/xce.toml");
  return files;
}

}  // namespace xce::cli
