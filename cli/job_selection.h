// Which jobs `xce jobs` and `xce history` are asked for. Main thread; no I/O.
#ifndef XCE_CLI_JOB_SELECTION_H_
#define XCE_CLI_JOB_SELECTION_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "xce/types.h"

namespace xce::cli {

struct JobSelection {
  std::vector<std::string> ids;  // jobs, arrays or tasks, as typed
  std::string state, user, queue, host, name;
  bool mine = false;

  // The user whose jobs are asked for; "" for everybody's.
  std::string owner() const;
};

// What --help says of some of the options.
struct SelectionHelp {
  const char *state, *queue, *host;
};

// Adds the options that fill `selection`, which outlives the command.
void add_selection(CLI::App* command, JobSelection* selection, const SelectionHelp& help);

// The filter for it, newest first, without states and ids. Its texts are those of `selection` and
// `owner`, which outlive it.
xce_job_filter_t filter_of(const JobSelection& selection, const std::string& owner);

}  // namespace xce::cli

#endif  // XCE_CLI_JOB_SELECTION_H_
