// A workload trace.
#include "fuzz/fuzz.h"
#include "scheduler/sim/swf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using xce::fuzz::require;
  const auto trace = xce::sched::parse_swf(xce::fuzz::view(data, size), "trace.swf");
  if (!trace.ok()) {
    require(std::string(trace.status().message()).find("trace.swf") != std::string::npos,
            "a refusal names the file");
    return 0;
  }
  for (const xce::sched::TraceJob& job : trace->jobs)
    require(job.estimate_s >= 1 && job.estimate_s >= job.run_s && job.run_s >= 0 && job.cpus >= 1,
            "a job makes sense");
  return 0;
}
