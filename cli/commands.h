// The commands of `xce`: how each registers itself and what each is given. Main thread.
#ifndef XCE_CLI_COMMANDS_H_
#define XCE_CLI_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/json.h"
#include "cli/session.h"

namespace xce::cli {

// Everything after the script of `xce submit script.sh a b` or after `--`: never options of ours.
struct Tail {
  bool after_dashes = false;
  std::vector<std::string> words;
};

struct Context {
  Connection connection;
  bool json = false;
  Tail tail;
};

// An exit code, or an error whose code becomes one (see exit_code.h).
using Run = std::function<absl::StatusOr<int>(const Context&)>;

struct Command {
  CLI::App* app = nullptr;
  Run run;
  bool takes_tail = false;  // a script or command with arguments follows its options
  // Own failures are at 120+code, so that a job's exit code can be told from them.
  std::function<bool()> own_codes = [] { return false; };
};

class Registry {
 public:
  explicit Registry(CLI::App* root) : root_(root) {}
  // A new command of `parent` (nullptr: of xce itself); examples are lines for its --help.
  Command& add(const std::string& name, const std::string& help, const std::string& examples,
               CLI::App* parent = nullptr);
  std::list<Command>& commands() { return commands_; }
  CLI::App* root() { return root_; }

 private:
  CLI::App* root_;
  std::list<Command> commands_;
};

void register_submit(Registry* registry);        // submit, run
void register_jobs(Registry* registry);          // jobs, job
void register_history(Registry* registry);       // history
void register_wait(Registry* registry);          // wait
void register_logs(Registry* registry);          // logs
void register_control(Registry* registry);       // kill hold release suspend resume requeue modify
void register_queues(Registry* registry);        // queues, queue add modify ...
void register_reservations(Registry* registry);  // reservation create list delete
void register_cluster(Registry* registry);       // hosts drain undrain cluster
void register_members(Registry* registry, CLI::App* cluster);  // add remove replace backup
void register_pki(Registry* registry);                         // pki init, pki issue

// Who asks, as the login says; empty if it does not.
std::string own_user_name();
// "2026-11-30 14:30:05", on this machine's clock and in its time zone.
std::string local_time(int64_t ms);
// Prints one JSON value and a line end; indented on a terminal.
void print_json(const Json& json);
// An error of an option's value, with the option's name before it.
absl::Status of_option(const char* option, const absl::Status& status);
// Parses every id. InvalidArgument names the first bad one.
absl::StatusOr<std::vector<JobRef>> parse_job_refs(const std::vector<std::string>& texts);

}  // namespace xce::cli

#endif  // XCE_CLI_COMMANDS_H_
