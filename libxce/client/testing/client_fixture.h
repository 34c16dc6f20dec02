// What the tests of the whole client share: answers in one word, a context over given ports,
// captured log lines.
#ifndef XCE_LIBXCE_CLIENT_TESTING_CLIENT_FIXTURE_H_
#define XCE_LIBXCE_CLIENT_TESTING_CLIENT_FIXTURE_H_

#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "libxce/client/testing/mock_master.h"
#include "xce/client.h"

namespace xce::client {

using Which = wire::Op::Which;

inline int64_t clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline Answer status(int value) {
  Answer a;
  a.status = value;
  return a;
}

inline Answer redirect_to(uint16_t port) {
  Answer a = status(E_XCE_REDIRECT);
  a.redirect_host = "127.0.0.1";
  a.redirect_port = port;
  return a;
}

inline Answer act(Answer::Do what) {
  Answer a;
  a.action = what;
  return a;
}

inline Answer serve(const Seen&) { return Answer(); }

// A context of candidates on these ports, freed at the end.
class Client {
 public:
  explicit Client(std::vector<uint16_t> ports, int deadline_ms = 5000, int max_retries = 20) {
    xce_client_config_t config;
    xce_client_config_init(&config);
    config.nmasters = static_cast<int>(ports.size());
    for (size_t i = 0; i < ports.size(); ++i) {
      std::strcpy(config.masters[i], "127.0.0.1");
      config.master_ports[i] = ports[i];
    }
    config.call_deadline_ms = deadline_ms;
    config.retry.max_retries = max_retries;
    config.retry.initial_delay_ms = 2;
    EXPECT_EQ(xcecli_ctx_init(&ctx_, &config), 0);
  }
  ~Client() { xcecli_ctx_free(ctx_); }
  operator xcecli_ctx_t() const { return ctx_; }  // NOLINT: reads as the C API does

  int submit(xce_submitted_t* out = nullptr, const char* key = nullptr) {
    const char* args[] = {"true"};
    xce_job_spec_t spec;
    xce_job_spec_init(&spec);
    spec.args = args;
    spec.nargs = 1;
    spec.submit_key = key;
    return xcecli_jobsub(ctx_, &spec, out);
  }
  int list() {
    xce_job_page_t* page = nullptr;
    const int rc = xcecli_joblist(ctx_, nullptr, &page);
    xce_free_job_page(page);
    return rc;
  }

 private:
  xcecli_ctx_t ctx_ = nullptr;
};

inline xce_error_t error() {
  xce_error_t e;
  xcecli_last_error(&e);
  return e;
}

// Log lines of libxce while it lives.
class LogLines {
 public:
  LogLines() { xce_set_log_callback(&LogLines::take, this); }
  ~LogLines() { xce_set_log_callback(nullptr, nullptr); }
  bool has(xce_log_level_t level, const std::string& text) {
    std::lock_guard<std::mutex> lock(mu_);
    for (const auto& [l, line] : lines_)
      if (l == level && line.find(text) != std::string::npos) return true;
    return false;
  }

 private:
  static void take(xce_log_level_t level, const char* line, void* arg) {
    auto* self = static_cast<LogLines*>(arg);
    std::lock_guard<std::mutex> lock(self->mu_);
    self->lines_.emplace_back(level, line);
  }
  std::mutex mu_;
  std::vector<std::pair<xce_log_level_t, std::string>> lines_;
};

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_TESTING_CLIENT_FIXTURE_H_
