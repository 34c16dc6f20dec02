// The candidates and the attempts of a call of libxce, for logs: the lines by which each daemon
// shows how it finds the controllers. Computes only; thread safe.
#ifndef XCE_LIBXCE_BASE_TRAIL_H_
#define XCE_LIBXCE_BASE_TRAIL_H_

#include <cstdint>
#include <string>

namespace xce {

// A trail (xce_error_t) by candidate, in the order of their first attempts: "10.0.0.1:9990
// ECONNREFUSED (3 times); 10.0.0.2:9990 no answer".
std::string outcomes_by_candidate(const std::string& trail);

// "controller candidate 1 of 2: 10.0.0.1:9990"; index from 0.
std::string candidate_line(int index, int count, const std::string& host, uint16_t port);

// Of an attempt that reached none, before any did: "no controller serves yet (attempt
// 2): 10.0.0.1:9990 ECONNREFUSED (3 times); 10.0.0.2:9990 no answer; waiting for a cluster".
// attempt: from 1; waiting: there will be another one.
std::string unreached_line(int attempt, const std::string& trail, bool waiting);

}  // namespace xce

#endif  // XCE_LIBXCE_BASE_TRAIL_H_
