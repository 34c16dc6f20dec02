// Logs of the daemons: text lines on standard error through spdlog, with UTC time in milliseconds.
// After init(), log with spdlog::info(...) and its sisters from any thread. libxce itself never
// logs here: it has a callback (xce_set_log_callback), which a daemon connects to spdlog.
#ifndef XCE_LIBXCE_BASE_LOG_H_
#define XCE_LIBXCE_BASE_LOG_H_

#include <string>

namespace xce::log {

// Makes spdlog's default logger write "2026-11-30T09:31:10.123Z info xce_controller: text" to
// standard error. level: trace, debug, info, warn, error, off. False, with the old settings kept,
// when it is none of these.
bool init(const std::string& name, const std::string& level);

}  // namespace xce::log

#endif  // XCE_LIBXCE_BASE_LOG_H_
