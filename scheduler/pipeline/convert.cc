#include "scheduler/pipeline/convert.h"

#include <memory>
#include <string>
#include <vector>

namespace xce::sched {
namespace {

std::string text(const char* from) { return from == nullptr ? std::string() : std::string(from); }

std::vector<Gres> gres_from(const xce_gres_t* from, size_t n) {
  std::vector<Gres> out;
  out.reserve(n);
  for (size_t i = 0; i < n; ++i) out.push_back(Gres{text(from[i].name), from[i].count, {}});
  return out;
}

void fill_spec(const xce_job_spec_t& from, JobSpec* to) {
  to->name = text(from.name);
  to->user = text(from.user);
  to->queue = text(from.queue);
  to->cpus = from.cpus;
  to->memory_mb = from.memory_mb;
  to->gres = gres_from(from.gres, from.ngres);
  to->nodes = from.nodes;
  to->exclusive = from.exclusive;
  to->hold = from.hold;
  to->requeue = from.requeue;
  to->time_limit_s = from.time_limit_s;
  to->priority = from.priority;
  to->array_limit = from.array_limit;
  if (from.step.job_id != 0)
    to->step = std::make_shared<const Step>(Step{from.step.job_id, {}, 0, 0, 0});
  for (size_t i = 0; i < from.ndependencies; ++i) {
    to->dependencies.push_back(Dependency{static_cast<DependencyKind>(from.dependencies[i].kind),
                                          from.dependencies[i].job_id});
  }
}

}  // namespace

Job job_from(const xce_job_t& from) {
  Job job;
  job.id = from.id;
  job.array_id = from.array_id;
  job.array_index = from.array_index;
  fill_spec(from.spec, &job.spec);
  job.state = static_cast<JobState>(from.state);
  job.desired = static_cast<Desired>(from.desired);
  job.attempt = from.attempt;
  job.starts = from.starts;
  for (size_t i = 0; i < from.nallocs; ++i) {
    const xce_alloc_t& a = from.allocs[i];
    job.allocs.push_back(Alloc{text(a.host), a.cpus, a.memory_mb, gres_from(a.gres, a.ngres)});
  }
  job.reason = text(from.reason);
  job.submit_ms = from.submit_ms;
  job.eligible_ms = from.eligible_ms;
  job.start_ms = from.start_ms;
  job.end_ms = from.end_ms;
  job.exit_code = from.exit_code;
  job.modify_index = from.modify_index;
  return job;
}

Host host_from(const xce_host_t& from) {
  Host host;
  host.attrs.name = text(from.attrs.name);
  host.attrs.cpus = from.attrs.cpus;
  host.attrs.memory_mb = from.attrs.memory_mb;
  host.attrs.gres = gres_from(from.attrs.gres, from.attrs.ngres);
  host.state = static_cast<HostState>(from.state);
  host.drained = from.drained;
  host.drain_reason = text(from.drain_reason);
  host.running_jobs = from.running_jobs;
  host.joined_ms = from.joined_ms;
  host.instance = from.instance;
  host.modify_index = from.modify_index;
  return host;
}

Reservation reservation_from(const xce_reservation_t& from) {
  Reservation to;
  to.name = text(from.name);
  to.hosts.assign(from.hosts, from.hosts + from.nhosts);
  to.cpus = from.cpus;
  to.start_ms = from.start_ms;
  to.end_ms = from.end_ms;
  to.users.assign(from.users, from.users + from.nusers);
  to.queues.assign(from.queues, from.queues + from.nqueues);
  to.modify_index = from.modify_index;
  return to;
}

Queue queue_from(const xce_queue_t& from) {
  Queue queue;
  queue.name = text(from.name);
  queue.priority = from.priority;
  queue.default_time_s = from.default_time_s;
  queue.max_time_s = from.max_time_s;
  queue.max_running = from.max_running;
  queue.max_running_per_user = from.max_running_per_user;
  queue.open = from.open;
  queue.active = from.active;
  queue.is_default = from.is_default;
  queue.max_cpus_per_user = from.max_cpus_per_user;
  queue.preemptible = from.preemptible;
  queue.modify_index = from.modify_index;
  return queue;
}

}  // namespace xce::sched
