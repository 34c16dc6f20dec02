// The command line of `xce`, before CLI11 sees it: which word is the command, and where its own
// options end. Pure, but for CLI11's description of the options.
#ifndef XCE_CLI_ARGUMENTS_H_
#define XCE_CLI_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace xce::cli {

struct SplitArguments {
  std::vector<std::string> own;  // for CLI11: global options, the command, its options
  Tail tail;                     // the script or command and its arguments
  const Command* command = nullptr;
  bool json = false;  // --output json was said to a command for which --output is the job's output
};

// Splits so that no option of a script is taken for ours: `xce submit -c 2 job.sh -c 3` gives "-c
// 3" to job.sh.
SplitArguments split_arguments(const std::vector<std::string>& args, Registry* registry);

// The innermost command that CLI11 has met, "xce queue add"; also when it has refused the rest.
std::string name_of_parsed(const CLI::App* root);
const CLI::App* innermost_parsed(const CLI::App* root);

// What is wrong with words that CLI11 did not know, and what might be meant. "" when `extras` is
// empty.
std::string unknown_words(const std::vector<std::string>& extras, const Command* command,
                          Registry* registry);

}  // namespace xce::cli

#endif  // XCE_CLI_ARGUMENTS_H_
