// Made-up traces, for trying things and for tests. PURE: the seed decides, on every machine alike.
#ifndef XCE_SCHEDULER_SIM_GENERATE_H_
#define XCE_SCHEDULER_SIM_GENERATE_H_

#include <cstdint>
#include <string>

namespace xce::sched {

struct GenerateOptions {
  size_t jobs = 1000;
  uint64_t seed = 1;
  uint32_t cpus = 256;
  double load = 0.8;  // of the processors, that the jobs ask for while they arrive
};

// A trace in the Standard Workload Format: sizes are mostly powers of two, run times spread evenly
// over orders of magnitude from a second to half a day, requested times are larger by up to ten
// times and round, arrivals are random, 40 users of whom few submit most. Not a model of any
// machine.
std::string generate_swf(const GenerateOptions& options);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_SIM_GENERATE_H_
