// libxce's C values to the model's. No I/O; any thread.
#ifndef XCE_SCHEDULER_PIPELINE_CONVERT_H_
#define XCE_SCHEDULER_PIPELINE_CONVERT_H_

#include <xce/types.h>

#include "libxce/model/host.h"
#include "libxce/model/job.h"

namespace xce::sched {

// Without script, arguments, environment and files, which no scheduler needs.
Job job_from(const xce_job_t& from);
Host host_from(const xce_host_t& from);
Queue queue_from(const xce_queue_t& from);
Reservation reservation_from(const xce_reservation_t& from);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_PIPELINE_CONVERT_H_
