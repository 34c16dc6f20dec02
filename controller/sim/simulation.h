// One run of a cluster from a seed: controllers, users and their daemons, faults, then peace, and
// the question whether everything is as promised (oracle.h) and the cluster heals.
#ifndef XCE_CONTROLLER_SIM_SIMULATION_H_
#define XCE_CONTROLLER_SIM_SIMULATION_H_

#include <cstdint>
#include <string>

namespace xce::sim {

// Not "Report": that is what a worker sends (libxce/model), in the namespace around this one.
struct RunReport {
  std::string wrong;  // empty: all is well
  uint64_t hash = 0;  // of everything that happened: equal for equal seeds
  uint64_t events = 0;
  uint64_t writes = 0;            // that the log holds
  uint64_t reads_and_writes = 0;  // answered
  uint64_t terms = 0;
  uint64_t member_changes = 0;  // wishes that came to an end
  double simulated_s = 0;
  double healed_ms = 0;  // from the end of the faults until all nodes were equal
};

// print: a line for each thing that happens, on standard output.
RunReport simulate(uint64_t seed, bool print);

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_SIMULATION_H_
