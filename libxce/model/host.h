// Hosts, queues and reservations. PURE.
#ifndef XCE_LIBXCE_MODEL_HOST_H_
#define XCE_LIBXCE_MODEL_HOST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "libxce/model/job.h"
#include "libxce/model/types.h"

namespace xce {

struct HostAttrs {
  std::string name, version, address, boot_id;
  uint64_t worker_id = 0;  // of its worker's data directory
  std::string fault;       // why it can start no jobs now; "": it can
  uint32_t cpus = 0;
  uint64_t memory_mb = 0;
  std::vector<Gres> gres;
};

struct Host {
  HostAttrs attrs;
  HostState state = HostState::kUp;
  bool drained = false;  // wish of an operator; the state says kDrained while it is also reachable
  std::string drain_reason;
  uint32_t used_cpus = 0;
  uint64_t used_memory_mb = 0;
  std::vector<Gres> used_gres;
  uint32_t running_jobs = 0;  // jobs that hold an allocation here
  int64_t joined_ms = 0;
  uint64_t instance = 0;        // random per start of its worker daemon
  uint64_t outbox_applied = 0;  // reports up to here are applied
  uint32_t lease_ms = 0;        // of its jobs with requeue, from a hello on; 0: none
  Index modify_index = 0;
};

struct Queue {
  std::string name;
  int32_t priority = 0;
  uint32_t default_time_s = 0, max_time_s = 0;  // 0: none
  uint32_t max_running = 0, max_running_per_user = 0;
  bool open = true, active = true, is_default = false;
  uint32_t pending = 0, running = 0;
  Index modify_index = 0;
  std::vector<std::string> allowed_users, allowed_groups;  // both empty: everybody
  uint32_t max_pending_per_user = 0, max_cpus_per_user = 0;
  bool preemptible = false;  // its running jobs give way to queues of higher priority
};

struct Reservation {  // see client.capnp
  std::string name;
  std::vector<std::string> hosts;
  uint32_t cpus = 0;  // of each host; 0: all of it
  int64_t start_ms = 0, end_ms = 0;
  std::vector<std::string> users, queues;
  std::string comment;
  Index modify_index = 0;
};

struct User {
  std::string name;
  uint32_t pending = 0, running = 0;
  uint64_t finished = 0, cpu_ms = 0;
};

}  // namespace xce

#endif  // XCE_LIBXCE_MODEL_HOST_H_
