// Listing jobs: from the smallest index that fits the filter, in id order, in pages. PURE.
#ifndef XCE_CONTROLLER_STATE_LISTING_H_
#define XCE_CONTROLLER_STATE_LISTING_H_

#include <cstddef>

#include "controller/state/jobs.h"
#include "controller/state/state.h"
#include "libxce/model/command.h"

namespace xce::state {

inline constexpr size_t kMaxVisits = 20000;  // a page
inline constexpr size_t kMaxCounted =
    5000;  // candidates looked at for the total of a filter with several criteria

State::JobPage list_jobs(const JobTable& jobs, const JobFilter& filter, size_t max_rows);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_LISTING_H_
