// How many warnings about strangers may be written: a flood of them must not fill the disk. PURE.
#ifndef XCE_CONTROLLER_SERVICE_WARNING_LIMIT_H_
#define XCE_CONTROLLER_SERVICE_WARNING_LIMIT_H_

#include <cstdint>

namespace xce::service {

class WarningLimit {
 public:
  static constexpr uint64_t kWindowMs = 10000;
  static constexpr uint64_t kBurst = 10;  // in a window

  // Whether one more may be written now. The clock, in milliseconds, never goes back.
  bool admit(uint64_t now_ms) {
    if (now_ms - since_ms_ >= kWindowMs && left_out_ == 0) {
      since_ms_ = now_ms;
      written_ = 0;
    }
    if (written_ < kBurst) {
      ++written_;
      return true;
    }
    ++left_out_;
    return false;
  }

  // How many were left out in the window that is over by now; each is counted once. 0: none.
  uint64_t take_left_out(uint64_t now_ms) {
    if (left_out_ == 0 || now_ms - since_ms_ < kWindowMs) return 0;
    const uint64_t out = left_out_;
    left_out_ = written_ = 0;
    since_ms_ = now_ms;
    return out;
  }

 private:
  uint64_t since_ms_ = 0, written_ = 0, left_out_ = 0;
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_WARNING_LIMIT_H_
