// Gaps at a change of the primary, for the parts that measure them.
#ifndef XCE_BENCH_ROWS_FAILOVER_H_
#define XCE_BENCH_ROWS_FAILOVER_H_

#include <string>

#include "bench/bench.h"

namespace xce::bench {

enum class Fault { kKill, kStop, kTerm, kTransfer };

// Does that to the primary so many times, with one writer at work; the longest write each time.
Samples gaps(Run* run, Cluster* cluster, Fault fault, int times);
// p50_ms 0: the target has no median.
void add_gap_row(Run* run, const std::string& id, const std::string& what, Samples samples,
                 double p50_ms, double p99_ms, const std::string& bound);

}  // namespace xce::bench

#endif  // XCE_BENCH_ROWS_FAILOVER_H_
