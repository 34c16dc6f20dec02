#include "cli/commands.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "cli/terminal.h"

namespace xce::cli {

Command& Registry::add(const std::string& name, const std::string& help,
                       const std::string& examples, CLI::App* parent) {
  commands_.emplace_back();
  Command& command = commands_.back();
  command.app = (parent == nullptr ? root_ : parent)->add_subcommand(name, help);
  command.app->fallthrough();
  command.app->allow_extras();
  command.app->footer(
      "Examples:\n" + examples +
      "\n\nCommon options: --masters, --output json, --deadline, --verbose (see 'xce --help')");
  return command;
}

std::string own_user_name() {
  const char* login = ::getenv("USER");
  return login == nullptr || login[0] == '\0' ? std::string() : std::string(login);
}

std::string local_time(int64_t ms) {
  const time_t seconds = ms / 1000;
  tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[64];
  ::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

void print_json(const Json& json) { print(dump(json, ::isatty(1) == 1) + "\n"); }

absl::Status of_option(const char* option, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(option, ": ", status.message()));
}

absl::StatusOr<std::vector<JobRef>> parse_job_refs(const std::vector<std::string>& texts) {
  std::vector<JobRef> out;
  for (const std::string& text : texts) {
    absl::StatusOr<JobRef> ref = parse_job_ref(text);
    if (!ref.ok()) return ref.status();
    out.push_back(*std::move(ref));
  }
  return out;
}

}  // namespace xce::cli
