// libxce's own log lines, handed to the program's callback (xce_set_log_callback). Any thread.
#ifndef XCE_LIBXCE_CLIENT_CLIENT_LOG_H_
#define XCE_LIBXCE_CLIENT_CLIENT_LOG_H_

#include <string>

#include "xce/client.h"

namespace xce::client {

// Hands one line, without a newline, to the callback; does nothing when there is none.
void log_line(xce_log_level_t level, const std::string& line);

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_CLIENT_LOG_H_
