// Job scripts, before they leave the machine: is this a script at all, and which options does its
// head give? PURE.
#ifndef XCE_CLI_SCRIPT_H_
#define XCE_CLI_SCRIPT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xce::cli {

// OK when `bytes` can be run as a job script: not empty, no binary, with a #! line, at most
// max_bytes. InvalidArgument otherwise, saying what to do. `name` is how the message calls it.
absl::Status check_script(std::string_view name, std::string_view bytes, size_t max_bytes);

struct Directive {
  int line = 0;                    // counted from 1
  std::vector<std::string> words;  // "--cpus", "2", ...
};
struct Directives {
  std::vector<Directive> lines;
  std::vector<int> ignored;  // lines with #XCE below the first command
};

// The #XCE lines at the head of a script: those before the first line that is neither empty nor a
// comment. InvalidArgument names the line whose quotes do not close.
absl::StatusOr<Directives> read_directives(std::string_view name, std::string_view bytes);

}  // namespace xce::cli

#endif  // XCE_CLI_SCRIPT_H_
