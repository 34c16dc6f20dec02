// Logs of the daemons on standard error through spdlog, with UTC time in milliseconds: text for
// people at a terminal, a JSON object a line for what collects logs. After init(), log with
// spdlog::info(...) and its sisters from any thread. libxce itself never logs here: it has a
// callback (xce_set_log_callback), which a daemon connects to spdlog.
#ifndef XCE_LIBXCE_BASE_LOG_H_
#define XCE_LIBXCE_BASE_LOG_H_

#include <string>

namespace xce::log {

// Makes spdlog's default logger write to standard error, as
//   text  2026-11-30T09:31:10.123Z info xce_controller: words
//   json  {"time":"2026-11-30T09:31:10.123Z","level":"info","daemon":"xce_controller","pid":17,
//          "message":"words"}   (on one line)
// level: trace, debug, info, warn, error, off. format: text, json, or auto, which is text on a
// terminal and json otherwise. Empty when done; else what is wrong, naming the flag (--log-level,
// --log-format), with the old settings kept.
std::string init(const std::string& name, const std::string& level,
                 const std::string& format = "auto");

// The inside of a JSON string: quotes, backslashes and control characters escaped; bytes that are
// no UTF-8 become U+FFFD, so that a line is always valid JSON.
std::string json_escaped(const std::string& text);

}  // namespace xce::log

#endif  // XCE_LIBXCE_BASE_LOG_H_
