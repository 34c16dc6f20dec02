// xce pki: the cluster's own certificate authority. No controller is asked.
#include <pwd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "libxce/net/pki.h"

namespace xce::cli {
namespace {

struct PkiOptions {
  std::string dir, role, name;
  int days = net::kCertDays;
  int64_t uid = -1, gid = -1;
};

absl::StatusOr<int> run_init(const Context& context, const PkiOptions& options) {
  if (const absl::Status status = net::pki_init(options.dir); !status.ok()) return status;
  const std::string certificate = options.dir + "/ca.crt", key = options.dir + "/ca.key";
  if (context.json)
    print_json(Json{{"ca", certificate}, {"key", key}});
  else
    print(absl::StrCat("authority made: ", certificate, "\nkeep ", key,
                       " where only administrators can read it; no daemon needs it\n"));
  return kOk;
}

absl::StatusOr<Role> role_of(const std::string& word) {
  for (const Role role :
       {Role::kUser, Role::kWorker, Role::kScheduler, Role::kApiserver, Role::kController})
    if (word == name_of(role)) return role;
  return absl::InvalidArgumentError(absl::StrCat(
      "--role '", word, "' is none of user, worker, scheduler, apiserver, controller"));
}

// A user's numbers: as given, or as this machine knows them.
absl::Status add_ids(const PkiOptions& options, net::CertIdentity* identity) {
  if (identity->role != Role::kUser) {
    if (options.uid < 0 && options.gid < 0) return absl::OkStatus();
    return absl::InvalidArgumentError("--uid and --gid are for --role user");
  }
  int64_t uid = options.uid, gid = options.gid;
  if (uid < 0 || gid < 0) {
    passwd entry, *found = nullptr;
    char buffer[4096];
    if (getpwnam_r(options.name.c_str(), &entry, buffer, sizeof buffer, &found) != 0 ||
        found == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("this machine knows no user '", options.name,
                                                     "': give --uid and --gid as well"));
    if (uid < 0) uid = found->pw_uid;
    if (gid < 0) gid = found->pw_gid;
  }
  identity->has_ids = true;
  identity->uid = static_cast<uint32_t>(uid);
  identity->gid = static_cast<uint32_t>(gid);
  return absl::OkStatus();
}

absl::StatusOr<int> run_issue(const Context& context, const PkiOptions& options) {
  const auto role = role_of(options.role);
  if (!role.ok()) return role.status();
  net::CertIdentity identity;
  identity.role = *role;
  identity.name = options.name;
  if (const absl::Status status = add_ids(options, &identity); !status.ok()) return status;
  const auto files = net::pki_issue(options.dir, identity, options.days);
  if (!files.ok()) return files.status();
  if (context.json)
    print_json(Json{{"ca", files->ca}, {"cert", files->cert}, {"key", files->key}});
  else
    print(absl::StrCat("--tls-ca ", files->ca, " --tls-cert ", files->cert, " --tls-key ",
                       files->key, "\n"));
  return kOk;
}

}  // namespace

void register_pki(Registry* registry) {
  auto options = std::make_shared<PkiOptions>();
  Command& pki = registry->add(
      "pki", "certificates for TLS: an authority of the cluster's own",
      "  xce pki init /etc/xce/pki\n"
      "  xce pki issue /etc/xce/pki --role controller --name 1    the name is the node id\n"
      "  xce pki issue /etc/xce/pki --role worker --name host1    the name is the host\n"
      "  xce pki issue /etc/xce/pki --role user --name ann        the name is the user\n"
      "Each prints the flags that use what it made. Issuing the same again renews it; daemons "
      "take\n"
      "the new one from their next connection on.");
  pki.app->require_subcommand(1);
  CLI::App* const parent = pki.app;
  Command& init = registry->add("init", "make an authority: DIR/ca.crt and DIR/ca.key",
                                "  xce pki init /etc/xce/pki", parent);
  init.app->add_option("DIR", options->dir, "where it is kept")->required();
  init.run = [options](const Context& context) { return run_init(context, *options); };
  Command& issue =
      registry->add("issue", "issue a certificate: DIR/ROLE-NAME.crt and DIR/ROLE-NAME.key",
                    "  xce pki issue /etc/xce/pki --role worker --name host1 --days 90", parent);
  issue.app->add_option("DIR", options->dir, "the authority's directory")->required();
  issue.app->add_option("--role", options->role, "user, worker, scheduler, apiserver, controller")
      ->required();
  issue.app->add_option("--name", options->name, "host, user, daemon's name or node id")
      ->required();
  issue.app->add_option("--days", options->days, "how long it is valid")
      ->check(CLI::Range(1, net::kCaDays))
      ->capture_default_str();
  issue.app->add_option("--uid", options->uid, "of a user; default: as this machine knows it")
      ->check(CLI::Range(int64_t{0}, int64_t{UINT32_MAX}));
  issue.app->add_option("--gid", options->gid, "of a user; default: as this machine knows it")
      ->check(CLI::Range(int64_t{0}, int64_t{UINT32_MAX}));
  issue.run = [options](const Context& context) { return run_issue(context, *options); };
}

}  // namespace xce::cli
