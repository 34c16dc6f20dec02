#include "libxce/wire/codec.h"

#include <capnp/serialize.h>

#include <cstring>
#include <memory>
#include <utility>

namespace xce::wire {
namespace {

// Upper bounds on what a list may hold; a frame's size bounds the sum.
constexpr unsigned kMaxStrings = 100000;
constexpr unsigned kMaxArray = 100000;
constexpr unsigned kMaxItems = 65536;
constexpr unsigned kMaxSmall = 1024;

template <typename List>
unsigned bounded(const List& list, unsigned max, const char* what) {
  if (list.size() > max)
    throw CodecError(std::string("too many ") + what + ": " + std::to_string(list.size()) +
                     ", at most " + std::to_string(max));
  return list.size();
}

template <typename To, typename From>
To checked_enum(From from, unsigned count, const char* what) {
  const auto value = static_cast<unsigned>(from);
  if (value >= count)
    throw CodecError(std::string("unknown ") + what + " " + std::to_string(value));
  return static_cast<To>(value);
}

std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader from, const char* what) {
  std::vector<std::string> out;
  out.reserve(bounded(from, kMaxStrings, what));
  for (auto s : from) out.push_back(text(s));
  return out;
}

void write_texts(const std::vector<std::string>& from, capnp::List<capnp::Text>::Builder to) {
  for (size_t i = 0; i < from.size(); ++i) to.set(i, from[i]);
}

void write_gres(const std::vector<xce::Gres>& from, capnp::List<Gres>::Builder to) {
  for (size_t i = 0; i < from.size(); ++i) {
    to[i].setName(from[i].name);
    to[i].setCount(from[i].count);
    const std::vector<uint32_t>& indices = from[i].indices;
    if (indices.empty()) continue;
    auto list = to[i].initIndices(indices.size());
    for (size_t k = 0; k < indices.size(); ++k) list.set(k, indices[k]);
  }
}

std::vector<xce::Gres> read_gres(capnp::List<Gres>::Reader from) {
  std::vector<xce::Gres> out;
  out.reserve(bounded(from, kMaxSmall, "generic resources"));
  for (auto g : from) {
    out.push_back({text(g.getName()), g.getCount(), {}});
    bounded(g.getIndices(), kMaxSmall, "indices");
    for (auto index : g.getIndices()) out.back().indices.push_back(index);
  }
  return out;
}

void write_alloc(const xce::Alloc& from, Alloc::Builder to) {
  to.setHost(from.host);
  to.setCpus(from.cpus);
  to.setMemoryMb(from.memory_mb);
  if (!from.gres.empty()) write_gres(from.gres, to.initGres(from.gres.size()));
}

xce::Alloc read_alloc(Alloc::Reader from) {
  return {text(from.getHost()), from.getCpus(), from.getMemoryMb(), read_gres(from.getGres())};
}

std::vector<xce::Alloc> read_allocs(capnp::List<Alloc>::Reader from) {
  std::vector<xce::Alloc> out;
  out.reserve(bounded(from, kMaxItems, "hosts"));
  for (auto a : from) out.push_back(read_alloc(a));
  return out;
}

void write_allocs(const std::vector<xce::Alloc>& from, capnp::List<Alloc>::Builder to) {
  for (size_t i = 0; i < from.size(); ++i) write_alloc(from[i], to[i]);
}

void write_usage(const xce::Usage& from, Usage::Builder to) {
  to.setCpuMs(from.cpu_ms);
  to.setPeakMemoryKb(from.peak_memory_kb);
  to.setWallMs(from.wall_ms);
}

xce::Usage read_usage(Usage::Reader from) {
  return {from.getCpuMs(), from.getPeakMemoryKb(), from.getWallMs()};
}

std::vector<JobId> read_ids(capnp::List<uint64_t>::Reader from) {
  std::vector<JobId> out;
  out.reserve(bounded(from, kMaxItems, "job ids"));
  for (auto id : from) out.push_back(id);
  return out;
}

void write_ids(const std::vector<JobId>& from, capnp::List<uint64_t>::Builder to) {
  for (size_t i = 0; i < from.size(); ++i) to.set(i, from[i]);
}

void write_report(const xce::Report& from, Report::Builder to) {
  to.setOutboxSeq(from.outbox_seq);
  to.setKind(static_cast<NotifyKind>(from.kind));
  to.setJobId(from.job);
  to.setAttempt(from.attempt);
  to.setExitCode(from.exit_code);
  to.setExitSignal(from.exit_signal);
  to.setOutcome(static_cast<JobState>(from.outcome));
  write_usage(from.usage, to.initUsage());
  to.setMessage(from.message);
  to.setTimeMs(from.time_ms);
  to.setStdoutFile(from.stdout_file);
  to.setStderrFile(from.stderr_file);
}

xce::Report read_report(Report::Reader from) {
  xce::Report to;
  to.outbox_seq = from.getOutboxSeq();
  to.kind = checked_enum<xce::NotifyKind>(from.getKind(), 6, "report kind");
  to.job = from.getJobId();
  to.attempt = from.getAttempt();
  to.exit_code = from.getExitCode();
  to.exit_signal = from.getExitSignal();
  to.outcome = checked_enum<xce::JobState>(from.getOutcome(), kJobStates, "job state");
  to.usage = read_usage(from.getUsage());
  to.message = text(from.getMessage());
  to.time_ms = from.getTimeMs();
  to.stdout_file = text(from.getStdoutFile());
  to.stderr_file = text(from.getStderrFile());
  return to;
}

struct OpWriter {
  Op::Builder to;

  void operator()(std::monostate) { to.setNop(); }
  void operator()(const xce::Join& join) {
    auto b = to.initJoin();
    b.setRole(static_cast<Role>(join.role));
    b.setInstance(join.instance);
    b.setLeaseMs(join.lease_ms);
    write_attrs(join.host, b.initHost());
  }
  void operator()(const xce::JobSpec& spec) { write_spec(spec, Detail::kFull, to.initJobSubmit()); }
  void operator()(const xce::JobControl& control) {
    auto b = to.initJobCtrl();
    write_ids(control.ids, b.initIds(control.ids.size()));
    b.setAction(static_cast<JobAction>(control.action));
    b.setSignal(control.signal);
    b.setWholeArray(control.whole_array);
    b.setModifyMask(control.modify_mask);
    if (control.modify_mask != 0) write_spec(control.modify, Detail::kSummary, b.initModify());
  }
  void operator()(const xce::QueueControl& control) {
    auto b = to.initQueueCtrl();
    b.setAction(static_cast<QueueAction>(control.action));
    write_queue(control.queue, b.initQueue());
    b.setMask(control.mask);
  }
  void operator()(const xce::HostControl& control) {
    auto b = to.initHostCtrl();
    b.setAction(static_cast<HostAction>(control.action));
    b.setName(control.name);
    b.setReason(control.reason);
  }
  void operator()(const xce::Dispatches& dispatches) {
    auto b = to.initJobDispatch();
    b.setEpoch(dispatches.epoch);
    auto items = b.initItems(dispatches.items.size());
    for (size_t i = 0; i < dispatches.items.size(); ++i) {
      const xce::Dispatch& d = dispatches.items[i];
      items[i].setJobId(d.job);
      items[i].setAttempt(d.attempt);
      write_allocs(d.allocs, items[i].initAllocs(d.allocs.size()));
    }
    if (dispatches.evictions.empty()) return;
    auto evictions = b.initEvictions(dispatches.evictions.size());
    for (size_t i = 0; i < dispatches.evictions.size(); ++i) {
      evictions[i].setJobId(dispatches.evictions[i].job);
      evictions[i].setAttempt(dispatches.evictions[i].attempt);
      evictions[i].setReason(dispatches.evictions[i].reason);
    }
  }
  void operator()(const xce::PendReasons& reasons) {
    auto b = to.initSetPendReason();
    b.setEpoch(reasons.epoch);
    auto items = b.initItems(reasons.items.size());
    for (size_t i = 0; i < reasons.items.size(); ++i) {
      items[i].setJobId(reasons.items[i].job);
      items[i].setReason(reasons.items[i].reason);
      items[i].setHopeless(reasons.items[i].hopeless);
    }
  }
  void operator()(const xce::Notify& notify) {
    auto b = to.initNotify();
    b.setHost(notify.host);
    b.setInstance(notify.instance);
    auto items = b.initItems(notify.items.size());
    for (size_t i = 0; i < notify.items.size(); ++i) write_report(notify.items[i], items[i]);
  }
  void operator()(const xce::UpdateResvals& update) {
    write_gres(update.gres, to.initUpdateResvals(update.gres.size()));
  }
  void operator()(const xce::Tick&) { to.setTick(); }
  void operator()(const xce::HostLost& lost) { to.setHostLost(lost.name); }
  void operator()(const xce::ReservationControl& control) {
    auto b = to.initReservationCtrl();
    b.setAction(static_cast<ReservationAction>(control.action));
    write_reservation(control.reservation, b.initReservation());
  }
};

xce::Dispatches read_dispatches(Dispatches::Reader from) {
  xce::Dispatches to;
  to.epoch = from.getEpoch();
  bounded(from.getItems(), kMaxItems, "dispatches");
  size_t hosts = 0;  // items may share one list in the message, but not in memory
  for (auto d : from.getItems()) {
    hosts += d.getAllocs().size();
    if (hosts > 2 * kMaxItems) throw CodecError("too many hosts in one set of dispatches");
    to.items.push_back({d.getJobId(), d.getAttempt(), read_allocs(d.getAllocs())});
  }
  bounded(from.getEvictions(), kMaxItems, "evictions");
  for (auto e : from.getEvictions())
    to.evictions.push_back({e.getJobId(), e.getAttempt(), text(e.getReason())});
  return to;
}

xce::PendReasons read_reasons(PendReasons::Reader from) {
  xce::PendReasons to;
  to.epoch = from.getEpoch();
  bounded(from.getItems(), kMaxItems, "reasons");
  for (auto r : from.getItems())
    to.items.push_back({r.getJobId(), text(r.getReason()), r.getHopeless()});
  return to;
}

xce::Notify read_notify(Notify::Reader from) {
  xce::Notify to;
  to.host = text(from.getHost());
  to.instance = from.getInstance();
  bounded(from.getItems(), kMaxItems, "reports");
  for (auto r : from.getItems()) to.items.push_back(read_report(r));
  return to;
}

xce::JobControl read_control(JobCtrl::Reader from) {
  xce::JobControl to;
  to.ids = read_ids(from.getIds());
  to.action = checked_enum<xce::JobAction>(from.getAction(), 7, "job action");
  to.signal = from.getSignal();
  to.whole_array = from.getWholeArray();
  to.modify_mask = from.getModifyMask();
  if (to.modify_mask != 0) to.modify = read_spec(from.getModify());
  return to;
}

// The short form of a submission.
xce::JobSpec read_task(RunTask::Reader from) {
  xce::JobSpec to;
  auto body = std::make_shared<JobBody>();
  body->args = read_texts(from.getArgs(), "arguments");
  to.body = std::move(body);
  to.step = std::make_shared<const xce::Step>(xce::Step{from.getJobId(), {}, 0, 0, 0});
  return to;
}

}  // namespace

std::string text(capnp::Text::Reader from) {
  if (std::memchr(from.begin(), '\0', from.size()) != nullptr)
    throw CodecError("a text holds a zero byte");
  return std::string(from.begin(), from.size());
}

void write_spec(const xce::JobSpec& from, Detail detail, JobSpec::Builder to) {
  to.setName(from.name);
  to.setUser(from.user);
  to.setUid(from.uid);
  to.setGid(from.gid);
  to.setQueue(from.queue);
  to.setWorkDir(from.work_dir);
  to.setStdinPath(from.stdin_path.get());
  to.setStdoutPath(from.stdout_path.get());
  to.setStderrPath(from.stderr_path.get());
  to.setCpus(from.cpus);
  to.setMemoryMb(from.memory_mb);
  if (!from.gres.empty()) write_gres(from.gres, to.initGres(from.gres.size()));
  to.setNodes(from.nodes);
  to.setExclusive(from.exclusive);
  to.setHold(from.hold);
  to.setRequeue(from.requeue);
  to.setTimeLimitS(from.time_limit_s);
  to.setWarnSignal(from.warn_signal);
  to.setWarnBeforeS(from.warn_before_s);
  to.setPriority(from.priority);
  to.setSubmitKey(from.submit_key);
  to.setComment(from.comment.get());
  to.setArrayLimit(from.array_limit);
  to.setBodyHash(from.body_hash);
  if (!from.dependencies.empty()) {
    auto list = to.initDependencies(from.dependencies.size());
    for (size_t i = 0; i < from.dependencies.size(); ++i) {
      list[i].setKind(static_cast<DependencyKind>(from.dependencies[i].kind));
      list[i].setJobId(from.dependencies[i].job);
    }
  }
  if (from.step != nullptr) {
    auto step = to.initStep();
    step.setJobId(from.step->job);
    write_texts(from.step->hosts, step.initHosts(from.step->hosts.size()));
    step.setAttempt(from.step->attempt);
    step.setArrayId(from.step->array_id);
    step.setArrayIndex(from.step->array_index);
  }
  if (detail == Detail::kSummary) return;
  if (!from.array.empty()) {
    auto array = to.initArray(from.array.size());
    for (size_t i = 0; i < from.array.size(); ++i) array.set(i, from.array[i]);
  }
  if (from.body == nullptr) return;
  const std::string& script = from.body->script;
  to.setScript(capnp::Data::Reader(reinterpret_cast<const uint8_t*>(script.data()), script.size()));
  write_texts(from.body->args, to.initArgs(from.body->args.size()));
  write_texts(from.body->env, to.initEnv(from.body->env.size()));
}

xce::JobSpec read_spec(JobSpec::Reader from) {
  xce::JobSpec to;
  to.name = text(from.getName());
  to.user = text(from.getUser());
  to.uid = from.getUid();
  to.gid = from.getGid();
  to.queue = text(from.getQueue());
  to.work_dir = text(from.getWorkDir());
  to.stdin_path = text(from.getStdinPath());
  to.stdout_path = text(from.getStdoutPath());
  to.stderr_path = text(from.getStderrPath());
  to.cpus = from.getCpus();
  to.memory_mb = from.getMemoryMb();
  to.gres = read_gres(from.getGres());
  to.nodes = from.getNodes();
  to.exclusive = from.getExclusive();
  to.hold = from.getHold();
  to.requeue = from.getRequeue();
  to.time_limit_s = from.getTimeLimitS();
  to.warn_signal = from.getWarnSignal();
  to.warn_before_s = from.getWarnBeforeS();
  to.priority = from.getPriority();
  to.submit_key = text(from.getSubmitKey());
  to.comment = text(from.getComment());
  to.array_limit = from.getArrayLimit();
  to.body_hash = from.getBodyHash();
  bounded(from.getArray(), kMaxArray, "array tasks");
  for (auto index : from.getArray()) to.array.push_back(index);
  bounded(from.getDependencies(), kMaxSmall, "dependencies");
  for (auto d : from.getDependencies())
    to.dependencies.push_back(
        {checked_enum<xce::DependencyKind>(d.getKind(), 5, "dependency"), d.getJobId()});
  if (const auto step = from.getStep(); step.getJobId() != 0)
    to.step = std::make_shared<const xce::Step>(
        xce::Step{step.getJobId(), read_texts(step.getHosts(), "hosts"), step.getAttempt(),
                  step.getArrayId(), step.getArrayIndex()});
  auto body = std::make_shared<JobBody>();
  body->script.assign(reinterpret_cast<const char*>(from.getScript().begin()),
                      from.getScript().size());
  body->args = read_texts(from.getArgs(), "arguments");
  body->env = read_texts(from.getEnv(), "environment variables");
  to.body = std::move(body);
  return to;
}

void write_job(const xce::Job& from, Detail detail, Job::Builder to) {
  to.setId(from.id);
  to.setArrayId(from.array_id);
  to.setArrayIndex(from.array_index);
  write_spec(from.spec, detail, to.initSpec());
  to.setState(static_cast<JobState>(from.state));
  to.setDesired(static_cast<Desired>(from.desired));
  to.setKillSignal(from.kill_signal);
  to.setAttempt(from.attempt);
  to.setStarts(from.starts);
  if (!from.allocs.empty()) write_allocs(from.allocs, to.initAllocs(from.allocs.size()));
  to.setReason(from.reason);
  to.setSubmitMs(from.submit_ms);
  to.setEligibleMs(from.eligible_ms);
  to.setStartMs(from.start_ms);
  to.setEndMs(from.end_ms);
  to.setExitCode(from.exit_code);
  to.setExitSignal(from.exit_signal);
  write_usage(from.usage, to.initUsage());
  to.setStdoutFile(from.stdout_file.get());
  to.setStderrFile(from.stderr_file.get());
  to.setModifyIndex(from.modify_index);
  to.setEstimatedStartMs(from.estimated_start_ms);
}

xce::Job read_job(Job::Reader from) {
  xce::Job to;
  to.id = from.getId();
  to.array_id = from.getArrayId();
  to.array_index = from.getArrayIndex();
  to.spec = read_spec(from.getSpec());
  to.state = checked_enum<xce::JobState>(from.getState(), kJobStates, "job state");
  to.desired = checked_enum<xce::Desired>(from.getDesired(), 3, "desired state");
  to.kill_signal = from.getKillSignal();
  to.attempt = from.getAttempt();
  to.starts = from.getStarts();
  to.allocs = read_allocs(from.getAllocs());
  to.reason = text(from.getReason());
  to.submit_ms = from.getSubmitMs();
  to.eligible_ms = from.getEligibleMs();
  to.start_ms = from.getStartMs();
  to.end_ms = from.getEndMs();
  to.exit_code = from.getExitCode();
  to.exit_signal = from.getExitSignal();
  to.usage = read_usage(from.getUsage());
  to.stdout_file = text(from.getStdoutFile());
  to.stderr_file = text(from.getStderrFile());
  to.modify_index = from.getModifyIndex();
  to.estimated_start_ms = from.getEstimatedStartMs();
  return to;
}

void write_attrs(const xce::HostAttrs& from, HostAttrs::Builder to) {
  to.setName(from.name);
  to.setCpus(from.cpus);
  to.setMemoryMb(from.memory_mb);
  if (!from.gres.empty()) write_gres(from.gres, to.initGres(from.gres.size()));
  to.setVersion(from.version);
  to.setAddress(from.address);
  to.setBootId(from.boot_id);
  to.setWorkerId(from.worker_id);
  to.setFault(from.fault);
}

xce::HostAttrs read_attrs(HostAttrs::Reader from) {
  xce::HostAttrs to;
  to.name = text(from.getName());
  to.cpus = from.getCpus();
  to.memory_mb = from.getMemoryMb();
  to.gres = read_gres(from.getGres());
  to.version = text(from.getVersion());
  to.address = text(from.getAddress());
  to.boot_id = text(from.getBootId());
  to.worker_id = from.getWorkerId();
  to.fault = text(from.getFault());
  return to;
}

void write_host(const xce::Host& from, Host::Builder to) {
  write_attrs(from.attrs, to.initAttrs());
  to.setState(static_cast<HostState>(from.state));
  to.setDrained(from.drained);
  to.setDrainReason(from.drain_reason);
  to.setUsedCpus(from.used_cpus);
  to.setUsedMemoryMb(from.used_memory_mb);
  if (!from.used_gres.empty()) write_gres(from.used_gres, to.initUsedGres(from.used_gres.size()));
  to.setRunningJobs(from.running_jobs);
  to.setJoinedMs(from.joined_ms);
  to.setOutboxApplied(from.outbox_applied);
  to.setInstance(from.instance);
  to.setLeaseMs(from.lease_ms);
  to.setModifyIndex(from.modify_index);
}

xce::Host read_host(Host::Reader from) {
  xce::Host to;
  to.attrs = read_attrs(from.getAttrs());
  to.state = checked_enum<xce::HostState>(from.getState(), 4, "host state");
  to.drained = from.getDrained();
  to.drain_reason = text(from.getDrainReason());
  to.used_cpus = from.getUsedCpus();
  to.used_memory_mb = from.getUsedMemoryMb();
  to.used_gres = read_gres(from.getUsedGres());
  to.running_jobs = from.getRunningJobs();
  to.joined_ms = from.getJoinedMs();
  to.outbox_applied = from.getOutboxApplied();
  to.instance = from.getInstance();
  to.lease_ms = from.getLeaseMs();
  to.modify_index = from.getModifyIndex();
  return to;
}

void write_queue(const xce::Queue& from, Queue::Builder to) {
  to.setName(from.name);
  to.setPriority(from.priority);
  to.setDefaultTimeS(from.default_time_s);
  to.setMaxTimeS(from.max_time_s);
  to.setMaxRunning(from.max_running);
  to.setMaxRunningPerUser(from.max_running_per_user);
  to.setOpen(from.open);
  to.setActive(from.active);
  to.setIsDefault(from.is_default);
  to.setPending(from.pending);
  to.setRunning(from.running);
  to.setModifyIndex(from.modify_index);
  if (!from.allowed_users.empty())
    write_texts(from.allowed_users, to.initAllowedUsers(from.allowed_users.size()));
  if (!from.allowed_groups.empty())
    write_texts(from.allowed_groups, to.initAllowedGroups(from.allowed_groups.size()));
  to.setMaxPendingPerUser(from.max_pending_per_user);
  to.setMaxCpusPerUser(from.max_cpus_per_user);
  to.setPreemptible(from.preemptible);
}

xce::Queue read_queue(Queue::Reader from) {
  xce::Queue to;
  to.name = text(from.getName());
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
  to.allowed_users = read_texts(from.getAllowedUsers(), "users");
  to.allowed_groups = read_texts(from.getAllowedGroups(), "groups");
  to.max_pending_per_user = from.getMaxPendingPerUser();
  to.max_cpus_per_user = from.getMaxCpusPerUser();
  to.preemptible = from.getPreemptible();
  return to;
}

void write_reservation(const xce::Reservation& from, Reservation::Builder to) {
  to.setName(from.name);
  write_texts(from.hosts, to.initHosts(from.hosts.size()));
  to.setCpus(from.cpus);
  to.setStartMs(from.start_ms);
  to.setEndMs(from.end_ms);
  write_texts(from.users, to.initUsers(from.users.size()));
  write_texts(from.queues, to.initQueues(from.queues.size()));
  to.setComment(from.comment);
  to.setModifyIndex(from.modify_index);
}

xce::Reservation read_reservation(Reservation::Reader from) {
  xce::Reservation to;
  to.name = text(from.getName());
  to.hosts = read_texts(from.getHosts(), "hosts");
  to.cpus = from.getCpus();
  to.start_ms = from.getStartMs();
  to.end_ms = from.getEndMs();
  to.users = read_texts(from.getUsers(), "users");
  to.queues = read_texts(from.getQueues(), "queues");
  to.comment = text(from.getComment());
  to.modify_index = from.getModifyIndex();
  return to;
}

void write_filter(const xce::JobFilter& from, JobFilter::Builder to) {
  if (!from.ids.empty()) write_ids(from.ids, to.initIds(from.ids.size()));
  to.setStates(from.states);
  to.setUser(from.user);
  to.setQueue(from.queue);
  to.setHost(from.host);
  to.setName(from.name);
  to.setArrayId(from.array_id);
  to.setAfterId(from.after_id);
  to.setLimit(from.limit);
  to.setDescending(from.descending);
  to.setFull(from.full);
  to.setSinceMs(from.since_ms);
  to.setUntilMs(from.until_ms);
}

xce::JobFilter read_filter(JobFilter::Reader from) {
  xce::JobFilter to;
  to.ids = read_ids(from.getIds());
  to.states = from.getStates();
  to.user = text(from.getUser());
  to.queue = text(from.getQueue());
  to.host = text(from.getHost());
  to.name = text(from.getName());
  to.array_id = from.getArrayId();
  to.after_id = from.getAfterId();
  to.limit = from.getLimit();
  to.descending = from.getDescending();
  to.full = from.getFull();
  to.since_ms = from.getSinceMs();
  to.until_ms = from.getUntilMs();
  return to;
}

void write_event(const xce::Event& from, Detail detail, Event::Builder to) {
  struct Visitor {
    Detail detail;
    Event::Builder to;
    void operator()(const xce::Job& job) { write_job(job, detail, to.initJob()); }
    void operator()(const JobRemoved& removed) { to.setJobRemoved(removed.id); }
    void operator()(const xce::Host& host) { write_host(host, to.initHost()); }
    void operator()(const HostRemoved& removed) { to.setHostRemoved(removed.name); }
    void operator()(const xce::Queue& queue) { write_queue(queue, to.initQueue()); }
    void operator()(const QueueRemoved& removed) { to.setQueueRemoved(removed.name); }
    void operator()(const SchedulerChanged& changed) {
      auto b = to.initScheduler();
      b.setEpoch(changed.epoch);
      b.setClientIdHi(changed.client.hi);
      b.setClientIdLo(changed.client.lo);
      b.setName(changed.name);
    }
    void operator()(const OutboxApplied& applied) { to.setOutboxApplied(applied.seq); }
    void operator()(const xce::Reservation& reservation) {
      write_reservation(reservation, to.initReservation());
    }
    void operator()(const ReservationRemoved& removed) { to.setReservationRemoved(removed.name); }
  };
  std::visit(Visitor{detail, to}, from);
}

void write_op(const xce::Op& from, Op::Builder to) { std::visit(OpWriter{to}, from); }

xce::Op read_op(Op::Reader from) {
  switch (from.which()) {
    case Op::JOIN: {
      auto join = from.getJoin();
      return xce::Join{checked_enum<xce::Role>(join.getRole(), 6, "role"),
                       read_attrs(join.getHost()), join.getInstance(), join.getLeaseMs()};
    }
    case Op::JOB_SUBMIT: return read_spec(from.getJobSubmit());
    case Op::RUN_TASK: return read_task(from.getRunTask());
    case Op::JOB_CTRL: return read_control(from.getJobCtrl());
    case Op::QUEUE_CTRL:
      return QueueControl{
          checked_enum<xce::QueueAction>(from.getQueueCtrl().getAction(), 7, "queue action"),
          read_queue(from.getQueueCtrl().getQueue()), from.getQueueCtrl().getMask()};
    case Op::HOST_CTRL:
      return HostControl{
          checked_enum<xce::HostAction>(from.getHostCtrl().getAction(), 5, "host action"),
          text(from.getHostCtrl().getName()), text(from.getHostCtrl().getReason())};
    case Op::JOB_DISPATCH: return read_dispatches(from.getJobDispatch());
    case Op::SET_PEND_REASON: return read_reasons(from.getSetPendReason());
    case Op::NOTIFY: return read_notify(from.getNotify());
    case Op::UPDATE_RESVALS: return UpdateResvals{read_gres(from.getUpdateResvals())};
    case Op::TICK: return xce::Tick{};
    case Op::HOST_LOST: return HostLost{text(from.getHostLost())};
    case Op::RESERVATION_CTRL:
      return ReservationControl{checked_enum<xce::ReservationAction>(
                                    from.getReservationCtrl().getAction(), 2, "reservation action"),
                                read_reservation(from.getReservationCtrl().getReservation())};
    default: return std::monostate{};
  }
}

std::string encode_entry(const xce::Entry& entry) {
  capnp::MallocMessageBuilder message(8192);
  auto root = message.initRoot<Entry>();
  root.setVersion(1);
  root.setTimeMs(entry.time_ms);
  auto commands = root.initCommands(entry.commands.size());
  for (size_t i = 0; i < entry.commands.size(); ++i) {
    const xce::Command& from = entry.commands[i];
    auto to = commands[i];
    to.setClientIdHi(from.client.hi);
    to.setClientIdLo(from.client.lo);
    to.setOpSeq(from.op_seq);
    to.setLowestUnanswered(from.lowest_unanswered);
    to.setBirth(from.birth);
    to.setOpHash(from.op_hash);
    to.setResent(from.resent);
    to.setRole(static_cast<Role>(from.who.role));
    to.setUser(from.who.user);
    to.setUid(from.who.uid);
    to.setName(from.who.name);
    if (!from.who.groups.empty())
      write_texts(from.who.groups, to.initGroups(from.who.groups.size()));
    write_op(from.op, to.initOp());
  }
  return flatten(message);
}

xce::Entry decode_entry(std::string_view bytes) {
  if (bytes.size() % 8 != 0) throw CodecError("entry is not a multiple of 8 bytes");
  kj::Array<capnp::word> words = kj::heapArray<capnp::word>(bytes.size() / 8);
  if (!bytes.empty()) std::memcpy(words.begin(), bytes.data(), bytes.size());
  xce::Entry entry;
  try {
    capnp::FlatArrayMessageReader message(words, reader_options(bytes.size()));
    auto root = message.getRoot<Entry>();
    if (root.getVersion() != 1)
      throw CodecError("log entry of version " + std::to_string(root.getVersion()) +
                       ": this controller is too old for it; upgrade it");
    entry.time_ms = root.getTimeMs();
    entry.commands.reserve(bounded(root.getCommands(), kMaxItems, "commands"));
    for (auto from : root.getCommands()) {
      xce::Command to;
      to.client = {from.getClientIdHi(), from.getClientIdLo()};
      to.op_seq = from.getOpSeq();
      to.lowest_unanswered = from.getLowestUnanswered();
      to.birth = from.getBirth();
      to.op_hash = from.getOpHash();
      to.resent = from.getResent();
      to.who = {checked_enum<xce::Role>(from.getRole(), 6, "role"),
                text(from.getUser()),
                from.getUid(),
                0,
                text(from.getName()),
                read_texts(from.getGroups(), "groups")};
      to.op = read_op(from.getOp());
      entry.commands.push_back(std::move(to));
    }
  } catch (const kj::Exception& e) {
    throw CodecError(e.getDescription().cStr());
  }
  return entry;
}

std::string flatten(capnp::MessageBuilder& message) {
  kj::Array<capnp::word> words = capnp::messageToFlatArray(message);
  auto bytes = words.asBytes();
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

capnp::ReaderOptions reader_options(size_t payload_bytes) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = payload_bytes / 8 * 8 + 1024;
  options.nestingLimit = 16;
  return options;
}

}  // namespace xce::wire
