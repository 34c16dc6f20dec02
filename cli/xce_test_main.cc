// xce_test: the REPL of the failover specs. On a terminal with line editing; else commands come on
// standard input, one a line, and the exit code is 1 when one of them failed.
#include <editline/readline.h>  // libedit
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/parse.h"
#include "cli/repl.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "cli/version.h"

namespace xce::cli {
namespace {

// Runs one line and prints its answer. False: quit.
bool run_line(Repl* repl, const std::string& line, int* failures) {
  const Repl::Answer answer = repl->execute(line);
  if (!answer.text.empty()) print(answer.text + "\n");
  if (!answer.ok) ++*failures;
  return !answer.quit;
}

void run_interactively(Repl* repl) {
  using_history();
  int failures = 0;
  while (true) {
    char* line = readline("xce_test> ");
    if (line == nullptr) break;
    const std::string text = line;
    std::free(line);  // libedit allocates it with malloc
    if (!text.empty()) add_history(text.c_str());
    if (!run_line(repl, text, &failures)) return;
  }
  print("\n");
}

int run_main(int argc, char** argv) {
  CLI::App app("The REPL of the failover specs: one libxce call a line, one line of answer.",
               "xce_test");
  std::string masters, timeout = "10000";
  std::vector<std::string> commands;
  Tls flags;
  app.add_option("--masters", masters, "controllers; as for xce")->type_name("HOST:PORT,...");
  app.add_option("--tls-ca", flags.ca, "TLS files; as for xce")->type_name("FILE");
  app.add_option("--tls-cert", flags.cert)->type_name("FILE");
  app.add_option("--tls-key", flags.key)->type_name("FILE");
  app.add_option("--timeout", timeout, "deadline of each call, in milliseconds (default 10000)")
      ->type_name("MS");
  app.add_option("-c,--command", commands, "run this and leave; may be given again")
      ->type_name("LINE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.set_version_flag("--version", std::string("xce_test ") + kVersion);
  app.footer(
      "Examples:\n"
      "  xce_test --masters a:9990,b:9990,c:9990\n"
      "  printf 'jobsub -- sleep 1\\njoblist\\n' | xce_test\n"
      "Type help for the commands. Exit code 1: a command failed; 2: usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    complain(absl::StrCat(error.what(), "; see 'xce_test --help'"));
    return kUsage;
  }
  const auto timeout_ms = parse_number(timeout, 1, 1000000000);
  if (!timeout_ms.ok()) {
    complain(absl::StrCat("--timeout: ", std::string(timeout_ms.status().message())));
    return kUsage;
  }
  const auto found = find_masters(masters, config_files());
  if (!found.ok()) {
    complain(std::string(found.status().message()));
    return kUsage;
  }
  const auto tls = find_tls(flags, config_files());
  if (!tls.ok()) {
    complain(std::string(tls.status().message()));
    return kUsage;
  }
  Repl repl(found->text, static_cast<int>(*timeout_ms), {tls->ca, tls->cert, tls->key});
  int failures = 0;
  if (!commands.empty()) {
    for (const std::string& command : commands) {
      if (!run_line(&repl, command, &failures)) break;
    }
  } else if (::isatty(0) == 1) {
    run_interactively(&repl);
  } else {
    std::string line;
    while (std::getline(std::cin, line) && run_line(&repl, line, &failures)) {
    }
  }
  return failures == 0 ? kOk : kFailure;
}

}  // namespace
}  // namespace xce::cli

int main(int argc, char** argv) {
  xce::cli::set_program_name("xce_test");
  xce::cli::install_signal_handlers();
  return xce::cli::run_main(argc, argv);
}
