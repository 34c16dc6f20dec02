// A daemon's part of /etc/xce/xce.toml: a table named after its role, whose keys are the daemon's
// flags without the dashes in front, `-` or `_` between words. I/O: reads that file and the
// environment.
//
//   masters = "a:9990,b:9990,c:9990"     # also what --peers of [worker] and [scheduler] is, unless
//                                        # they say otherwise
//   [worker]
//   data_dir = "/var/lib/xce/worker"
//   gres = "gpu:2"
#ifndef XCE_LIBXCE_BASE_SETTINGS_FILE_H_
#define XCE_LIBXCE_BASE_SETTINGS_FILE_H_

#include <CLI/App.hpp>
#include <string>

namespace xce {

enum class Masters { kArePeers, kAreForOthers };

// Adds --config to the flags, and lets the file give what neither the command line nor the
// environment does: flags, then XCE_*, then the file. Call it after the flags have been added.
// Parsing then throws CLI::ConfigError, with the file, line or key and the way out, for a file that
// is no TOML or names a flag that does not exist. Without --config a missing file is no error.
void use_settings_file(CLI::App* app, const std::string& table, Masters masters);

}  // namespace xce

#endif  // XCE_LIBXCE_BASE_SETTINGS_FILE_H_
