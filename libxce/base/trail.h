// The attempts of a call of libxce, for logs. Computes only; thread safe.
#ifndef XCE_LIBXCE_BASE_TRAIL_H_
#define XCE_LIBXCE_BASE_TRAIL_H_

#include <string>

namespace xce {

// A trail (xce_error_t) by candidate, in the order of their first attempts: "10.0.0.1:9990
// ECONNREFUSED (3 times); 10.0.0.2:9990 no answer".
std::string outcomes_by_candidate(const std::string& trail);

}  // namespace xce

#endif  // XCE_LIBXCE_BASE_TRAIL_H_
