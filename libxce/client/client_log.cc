#include "libxce/client/client_log.h"

#include <mutex>

namespace xce::client {
namespace {

struct Sink {
  std::mutex mu;
  xce_log_cb cb = nullptr;
  void* arg = nullptr;
};

Sink& sink() {
  static Sink* const s = new Sink;  // never destroyed: threads may log while the process ends
  return *s;
}

}  // namespace

void log_line(xce_log_level_t level, const std::string& line) {
  xce_log_cb cb;
  void* arg;
  {
    std::lock_guard<std::mutex> lock(sink().mu);
    cb = sink().cb;
    arg = sink().arg;
  }
  if (cb != nullptr) cb(level, line.c_str(), arg);
}

}  // namespace xce::client

extern "C" void xce_set_log_callback(xce_log_cb cb, void* arg) {
  auto& s = xce::client::sink();
  std::lock_guard<std::mutex> lock(s.mu);
  s.cb = cb;
  s.arg = arg;
}
