#include <algorithm>

#include "libxce/model/command.h"

namespace xce {

bool matches(const Job& job, const JobFilter& filter) {
  if (filter.states && !(filter.states & (1u << static_cast<unsigned>(job.state)))) return false;
  if (!filter.user.empty() && job.spec.user != filter.user) return false;
  if (!filter.queue.empty() && job.spec.queue != filter.queue) return false;
  if (!filter.name.empty() && job.spec.name != filter.name) return false;
  if (filter.array_id && job.array_id != filter.array_id) return false;
  if (filter.since_ms && (job.end_ms == 0 || job.end_ms < filter.since_ms)) return false;
  if (filter.until_ms && (job.end_ms == 0 || job.end_ms >= filter.until_ms)) return false;
  if (filter.host.empty()) return true;
  return std::any_of(job.allocs.begin(), job.allocs.end(),
                     [&](const Alloc& alloc) { return alloc.host == filter.host; });
}

}  // namespace xce
