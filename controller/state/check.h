// Invariants of the state, and the fingerprint that replicas are compared by. PURE. Both read
// everything.
#ifndef XCE_CONTROLLER_STATE_CHECK_H_
#define XCE_CONTROLLER_STATE_CHECK_H_

#include <string>
#include <vector>

#include "controller/state/tables.h"

namespace xce::state {

// What is wrong, at most kMaxFaults of it, in words.
inline constexpr size_t kMaxFaults = 50;
std::vector<std::string> find_faults(const Tables& tables);

// 32 hexadecimal digits of a hash over everything; not for keeping: it may change with each
// version.
std::string fingerprint_of(const Tables& tables);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_CHECK_H_
