// xce: the tool with which people submit jobs and see what became of them. docs/cli.md describes
// every command.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/parse.h"
#include "cli/terminal.h"
#include "cli/version.h"

namespace xce::cli {
namespace {

struct GlobalOptions {
  std::string masters, output = "table", deadline;
  bool json = false, verbose = false;
  Tls tls;
};

constexpr char kFooter[] =
    "Examples:\n"
    "  xce submit job.sh          submit a script\n"
    "  xce jobs                   what is running and waiting\n"
    "  xce job 17                 everything about one job\n"
    "  xce wait 17                wait for its end, exit with its code\n"
    "  xce logs -f 17             its output as it grows\n"
    "  xce kill 17                end it\n\n"
    "Controllers are found by --masters, XCE_MASTERS, masters = \"...\" in "
    "~/.config/xce/config.toml or\n"
    "/etc/xce/xce.toml, else at localhost:9990. TLS: --tls-ca, --tls-cert and --tls-key, or "
    "XCE_TLS_CA and\n"
    "so on, or tls_ca = \"...\" and so on in those files.\n"
    "Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 permission, 5 no leader, 6 outcome "
    "unknown,\n"
    "7 wait timeout; 'xce wait' and 'xce run' give the job's code and put their own at 120+code.";

void add_global_options(CLI::App* app, GlobalOptions* global) {
  app->add_option("--masters", global->masters, "controllers")->type_name("HOST:PORT,...");
  app->add_option("--tls-ca", global->tls.ca, "authority of the cluster's certificates")
      ->type_name("FILE");
  app->add_option("--tls-cert", global->tls.cert, "your certificate")->type_name("FILE");
  app->add_option("--tls-key", global->tls.key, "its key")->type_name("FILE");
  app->add_option("--output", global->output, "table, or json for programs")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "json"}));
  app->add_flag("--json", global->json, "the same as --output json");
  app->add_option("--deadline", global->deadline,
                  "give up when the cluster has not answered by then: 30, 500ms, 2m")
      ->type_name("TIME");
  app->add_flag("-v,--verbose", global->verbose, "errors tell every attempt");
}

absl::StatusOr<Context> context_of(const GlobalOptions& global, const SplitArguments& split) {
  Context context;
  context.json = global.json || global.output == "json" || split.json;
  context.tail = split.tail;
  const auto masters = find_masters(global.masters, config_files());
  if (!masters.ok()) return masters.status();
  context.connection.masters = *masters;
  const auto tls = find_tls(global.tls, config_files());
  if (!tls.ok()) return tls.status();
  context.connection.tls = *tls;
  context.connection.verbose = global.verbose;
  if (!global.deadline.empty()) {
    const auto ms = parse_duration_ms(global.deadline);
    if (!ms.ok()) return of_option("--deadline", ms.status());
    context.connection.deadline_ms = static_cast<int>(std::min<int64_t>(*ms, 1000ll * 1000 * 1000));
    context.connection.deadline_given = true;
  }
  return context;
}

// The innermost command that CLI11 has parsed, or nullptr.
const Command* parsed_command(Registry* registry) {
  const Command* found = nullptr;
  for (const Command& command : registry->commands()) {
    if (command.app->parsed() && command.run) found = &command;
  }
  return found;
}

const Command* command_of(Registry* registry, const CLI::App* app) {
  for (const Command& command : registry->commands()) {
    if (command.app == app) return &command;
  }
  return nullptr;
}

int fail(const absl::Status& status, bool own_codes) {
  std::string text(status.message());
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (!text.empty() && status.code() != absl::StatusCode::kCancelled) complain(text);
  return own_codes ? own_exit_code_of(status) : exit_code_of(status);
}

int usage(const std::string& text, bool own_codes) {
  return fail(absl::InvalidArgumentError(text), own_codes);
}

bool own_codes_early(const SplitArguments& split) {
  if (split.command == nullptr) return false;
  return split.command->own_codes() || std::count(split.own.begin(), split.own.end(), "--wait") > 0;
}

int run_main(std::vector<std::string> args) {
  CLI::App app("XCE: a batch scheduler that stays up. Submit jobs, see what becomes of them.",
               "xce");
  GlobalOptions global;
  Registry registry(&app);
  register_submit(&registry);
  register_jobs(&registry);
  register_history(&registry);
  register_wait(&registry);
  register_logs(&registry);
  register_control(&registry);
  register_queues(&registry);
  register_reservations(&registry);
  register_cluster(&registry);
  register_pki(&registry);
  add_global_options(&app, &global);
  app.set_version_flag("--version", std::string("xce ") + kVersion);
  app.footer(kFooter);
  app.allow_extras();
  app.get_formatter()->column_width(34);

  if (!args.empty() && args[0] == "help") {  // xce help submit
    args.erase(args.begin());
    args.push_back("--help");
  }
  const SplitArguments split = split_arguments(args, &registry);
  if (split.own.empty()) {
    print(app.help());
    return kUsage;
  }
  std::vector<std::string> words(split.own.rbegin(),
                                 split.own.rend());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return kOk;
  } catch (const CLI::CallForVersion& version) {
    print(absl::StrCat(version.what(), "\n"));
    return kOk;
  } catch (const CLI::ParseError& error) {
    const std::string name = name_of_parsed(&app);
    std::string text = absl::StrCat(error.what(), "; see '", name, " --help'");
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
      const std::vector<std::string> extras = app.remaining(true);
      const Command* group = command_of(&registry, innermost_parsed(&app));
      const std::string unknown = unknown_words(extras, group, &registry);
      if (!unknown.empty()) text = unknown;
    }
    return usage(text, own_codes_early(split));
  }
  const Command* command = parsed_command(&registry);
  const std::string unknown = unknown_words(app.remaining(true), command, &registry);
  if (!unknown.empty()) return usage(unknown, own_codes_early(split));
  if (command == nullptr) return usage("no command; see 'xce --help'", false);
  const auto context = context_of(global, split);
  if (!context.ok()) return fail(context.status(), command->own_codes());
  const absl::StatusOr<int> code = command->run(*context);
  return code.ok() ? *code : fail(code.status(), command->own_codes());
}

}  // namespace
}  // namespace xce::cli

int main(int argc, char** argv) {
  xce::cli::install_signal_handlers();
  return xce::cli::run_main({argv + 1, argv + argc});
}
