#include "libxce/client/convert.h"

#include <cstring>

namespace xce::client {
namespace {

// Enumerations of a newer peer: the last value that this library knows.
template <typename To, typename From>
To bounded(From from, To last) {
  const auto value = static_cast<unsigned>(from);
  return value > static_cast<unsigned>(last) ? last : static_cast<To>(value);
}

const char* const* texts_of(capnp::List<capnp::Text>::Reader from, Arena* arena) {
  auto* out = arena->array<const char*>(rows(from));
  for (unsigned i = 0; i < from.size(); ++i) out[i] = text_of(from[i], arena);
  return out;
}

xce_job_spec_t spec_of(wire::JobSpec::Reader from, Arena* arena) {
  xce_job_spec_t to;
  std::memset(&to, 0, sizeof to);
  to.name = text_of(from.getName(), arena);
  to.user = text_of(from.getUser(), arena);
  to.uid = from.getUid();
  to.gid = from.getGid();
  to.queue = text_of(from.getQueue(), arena);
  to.script_len = from.getScript().size();
  to.script = arena->text(reinterpret_cast<const char*>(from.getScript().begin()), to.script_len);
  to.nargs = from.getArgs().size();
  to.args = texts_of(from.getArgs(), arena);
  to.nenv = from.getEnv().size();
  to.env = texts_of(from.getEnv(), arena);
  to.work_dir = text_of(from.getWorkDir(), arena);
  to.stdin_path = text_of(from.getStdinPath(), arena);
  to.stdout_path = text_of(from.getStdoutPath(), arena);
  to.stderr_path = text_of(from.getStderrPath(), arena);
  to.cpus = from.getCpus();
  to.memory_mb = from.getMemoryMb();
  to.ngres = from.getGres().size();
  to.gres = gres_of(from.getGres(), arena);
  to.nodes = from.getNodes();
  to.exclusive = from.getExclusive();
  to.hold = from.getHold();
  to.requeue = from.getRequeue();
  to.time_limit_s = from.getTimeLimitS();
  to.warn_signal = from.getWarnSignal();
  to.warn_before_s = from.getWarnBeforeS();
  to.priority = from.getPriority();
  to.submit_key = text_of(from.getSubmitKey(), arena);
  const auto indices = from.getArray();
  auto* array = arena->array<uint32_t>(rows(indices));
  for (unsigned i = 0; i < indices.size(); ++i) array[i] = indices[i];
  to.narray = indices.size();
  to.array = array;
  to.array_limit = from.getArrayLimit();
  const auto dependencies = from.getDependencies();
  auto* deps = arena->array<xce_dependency_t>(rows(dependencies));
  for (unsigned i = 0; i < dependencies.size(); ++i)
    deps[i] = {bounded(dependencies[i].getKind(), XCE_DEP_SINGLETON), dependencies[i].getJobId()};
  to.ndependencies = dependencies.size();
  to.dependencies = deps;
  to.comment = text_of(from.getComment(), arena);
  const auto step = from.getStep();
  to.step = {step.getJobId(),        texts_of(step.getHosts(), arena),
             step.getHosts().size(), step.getAttempt(),
             step.getArrayId(),      step.getArrayIndex()};
  return to;
}

xce_usage_t usage_of(wire::Usage::Reader from) {
  return {from.getCpuMs(), from.getPeakMemoryKb(), from.getWallMs()};
}

xce_host_attrs_t attrs_of(wire::HostAttrs::Reader from, Arena* arena) {
  xce_host_attrs_t to;
  std::memset(&to, 0, sizeof to);
  to.name = text_of(from.getName(), arena);
  to.version = text_of(from.getVersion(), arena);
  to.address = text_of(from.getAddress(), arena);
  to.boot_id = text_of(from.getBootId(), arena);
  to.worker_id = from.getWorkerId();
  to.fault = text_of(from.getFault(), arena);
  to.cpus = from.getCpus();
  to.memory_mb = from.getMemoryMb();
  to.ngres = from.getGres().size();
  to.gres = gres_of(from.getGres(), arena);
  return to;
}

}  // namespace

const char* text_of(capnp::Text::Reader from, Arena* arena) {
  return arena->text(from.begin(), from.size());
}

const xce_gres_t* gres_of(capnp::List<wire::Gres>::Reader from, Arena* arena) {
  auto* out = arena->array<xce_gres_t>(rows(from));
  for (unsigned i = 0; i < from.size(); ++i) {
    const auto indices = from[i].getIndices();
    auto* list = arena->array<uint32_t>(rows(indices));
    for (unsigned k = 0; k < indices.size(); ++k) list[k] = indices[k];
    out[i] = {text_of(from[i].getName(), arena), from[i].getCount(), list, indices.size()};
  }
  return out;
}

xce_job_t job_of(wire::Job::Reader from, Arena* arena) {
  xce_job_t to;
  std::memset(&to, 0, sizeof to);
  to.id = from.getId();
  to.array_id = from.getArrayId();
  to.array_index = from.getArrayIndex();
  to.spec = spec_of(from.getSpec(), arena);
  to.state = bounded(from.getState(), XCE_JOB_LOST);
  to.desired = bounded(from.getDesired(), XCE_DESIRED_KILL);
  to.kill_signal = from.getKillSignal();
  to.attempt = from.getAttempt();
  to.starts = from.getStarts();
  const auto allocs = from.getAllocs();
  auto* out = arena->array<xce_alloc_t>(rows(allocs));
  for (unsigned i = 0; i < allocs.size(); ++i) {
    out[i].host = text_of(allocs[i].getHost(), arena);
    out[i].cpus = allocs[i].getCpus();
    out[i].memory_mb = allocs[i].getMemoryMb();
    out[i].ngres = allocs[i].getGres().size();
    out[i].gres = gres_of(allocs[i].getGres(), arena);
  }
  to.allocs = out;
  to.nallocs = allocs.size();
  to.reason = text_of(from.getReason(), arena);
  to.submit_ms = from.getSubmitMs();
  to.eligible_ms = from.getEligibleMs();
  to.start_ms = from.getStartMs();
  to.end_ms = from.getEndMs();
  to.exit_code = from.getExitCode();
  to.exit_signal = from.getExitSignal();
  to.usage = usage_of(from.getUsage());
  to.stdout_file = text_of(from.getStdoutFile(), arena);
  to.stderr_file = text_of(from.getStderrFile(), arena);
  to.modify_index = from.getModifyIndex();
  to.estimated_start_ms = from.getEstimatedStartMs();
  return to;
}

xce_host_t host_of(wire::Host::Reader from, Arena* arena) {
  xce_host_t to;
  std::memset(&to, 0, sizeof to);
  to.attrs = attrs_of(from.getAttrs(), arena);
  to.state = bounded(from.getState(), XCE_HOST_GONE);
  to.drained = from.getDrained();
  to.drain_reason = text_of(from.getDrainReason(), arena);
  to.used_cpus = from.getUsedCpus();
  to.used_memory_mb = from.getUsedMemoryMb();
  to.nused_gres = from.getUsedGres().size();
  to.used_gres = gres_of(from.getUsedGres(), arena);
  to.running_jobs = from.getRunningJobs();
  to.joined_ms = from.getJoinedMs();
  to.outbox_applied = from.getOutboxApplied();
  to.instance = from.getInstance();
  to.lease_ms = from.getLeaseMs();
  to.modify_index = from.getModifyIndex();
  return to;
}

xce_queue_t queue_of(wire::Queue::Reader from, Arena* arena) {
  xce_queue_t to;
  std::memset(&to, 0, sizeof to);
  to.name = text_of(from.getName(), arena);
  to.priority = from.getPriority();
  to.default_time_s = from.getDefaultTimeS();
  to.max_time_s = from.getMaxTimeS();
  to.max_running = from.getMaxRunning();
  to.max_running_per_user = from.getMaxRunningPerUser();
  to.open = from.getOpen();
  to.active = from.getActive();
  to.is_default = from.getIsDefault();
  to.pending = from.getPending();
  to.running = from.getRunning();
  to.modify_index = from.getModifyIndex();
  to.nallowed_users = from.getAllowedUsers().size();
  to.allowed_users = texts_of(from.getAllowedUsers(), arena);
  to.nallowed_groups = from.getAllowedGroups().size();
  to.allowed_groups = texts_of(from.getAllowedGroups(), arena);
  to.max_pending_per_user = from.getMaxPendingPerUser();
  to.max_cpus_per_user = from.getMaxCpusPerUser();
  to.preemptible = from.getPreemptible();
  return to;
}

xce_reservation_t reservation_of(wire::Reservation::Reader from, Arena* arena) {
  xce_reservation_t to;
  std::memset(&to, 0, sizeof to);
  to.name = text_of(from.getName(), arena);
  to.nhosts = from.getHosts().size();
  to.hosts = texts_of(from.getHosts(), arena);
  to.cpus = from.getCpus();
  to.start_ms = from.getStartMs();
  to.end_ms = from.getEndMs();
  to.nusers = from.getUsers().size();
  to.users = texts_of(from.getUsers(), arena);
  to.nqueues = from.getQueues().size();
  to.queues = texts_of(from.getQueues(), arena);
  to.comment = text_of(from.getComment(), arena);
  to.modify_index = from.getModifyIndex();
  return to;
}

xce_user_t user_of(wire::User::Reader from, Arena* arena) {
  return {text_of(from.getName(), arena), from.getPending(), from.getRunning(), from.getFinished(),
          from.getCpuMs()};
}

xce_node_t node_of(wire::Node::Reader from, Arena* arena) {
  return {from.getId(),           text_of(from.getHost(), arena),
          from.getPort(),         text_of(from.getRole(), arena),
          from.getConnected(),    from.getMatchIndex(),
          from.getLastContactMs()};
}

xce_event_t event_of(wire::Event::Reader from, uint64_t revision, Arena* arena) {
  xce_event_t to;
  std::memset(&to, 0, sizeof to);
  to.revision = revision;
  to.name = "";
  switch (from.which()) {
    case wire::Event::JOB: {
      auto* job = arena->array<xce_job_t>(1);
      *job = job_of(from.getJob(), arena);
      to.kind = XCE_EVENT_JOB;
      to.job = job;
      to.id = job->id;
      break;
    }
    case wire::Event::JOB_REMOVED:
      to.kind = XCE_EVENT_JOB_REMOVED;
      to.id = from.getJobRemoved();
      break;
    case wire::Event::HOST: {
      auto* host = arena->array<xce_host_t>(1);
      *host = host_of(from.getHost(), arena);
      to.kind = XCE_EVENT_HOST;
      to.host = host;
      to.name = host->attrs.name;
      break;
    }
    case wire::Event::HOST_REMOVED:
      to.kind = XCE_EVENT_HOST_REMOVED;
      to.name = text_of(from.getHostRemoved(), arena);
      break;
    case wire::Event::QUEUE: {
      auto* queue = arena->array<xce_queue_t>(1);
      *queue = queue_of(from.getQueue(), arena);
      to.kind = XCE_EVENT_QUEUE;
      to.queue = queue;
      to.name = queue->name;
      break;
    }
    case wire::Event::QUEUE_REMOVED:
      to.kind = XCE_EVENT_QUEUE_REMOVED;
      to.name = text_of(from.getQueueRemoved(), arena);
      break;
    case wire::Event::RESERVATION: {
      auto* reservation = arena->array<xce_reservation_t>(1);
      *reservation = reservation_of(from.getReservation(), arena);
      to.kind = XCE_EVENT_RESERVATION;
      to.reservation = reservation;
      to.name = reservation->name;
      break;
    }
    case wire::Event::RESERVATION_REMOVED:
      to.kind = XCE_EVENT_RESERVATION_REMOVED;
      to.name = text_of(from.getReservationRemoved(), arena);
      break;
    case wire::Event::GAP:
      to.kind = XCE_EVENT_GAP;
      to.id = from.getGap();
      break;
    case wire::Event::WAKEUP: to.kind = XCE_EVENT_WAKEUP; break;
    case wire::Event::LOG_QUERY: {
      const auto query = from.getLogQuery();
      to.kind = XCE_EVENT_LOG_QUERY;
      to.query_id = query.getQueryId();
      to.id = query.getJobId();
      to.stream = bounded(query.getStream(), XCE_STDERR);
      to.offset = query.getOffset();
      to.limit = query.getLimit();
      to.wait_ms = query.getWaitMs();
      break;
    }
    case wire::Event::OUTBOX_APPLIED:
      to.kind = XCE_EVENT_OUTBOX_APPLIED;
      to.id = from.getOutboxApplied();
      break;
    case wire::Event::SCHEDULER:
      to.kind = XCE_EVENT_SCHEDULER;
      to.id = from.getScheduler().getEpoch();
      to.name = text_of(from.getScheduler().getName(), arena);
      break;
    case wire::Event::SCHED_ADMIN:
      to.kind = XCE_EVENT_SCHED_ADMIN;
      to.name = text_of(from.getSchedAdmin(), arena);
      break;
    default:  // of a newer controller: ask for the state anew rather than miss it
      to.kind = XCE_EVENT_GAP;
      to.id = revision;
  }
  return to;
}

}  // namespace xce::client
