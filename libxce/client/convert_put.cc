// C structs to the wire, and the hash of a submission.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "libxce/client/convert.h"

namespace xce::client {
namespace {

const char* or_empty(const char* text) { return text == nullptr ? "" : text; }

void put_texts(const char* const* from, size_t n, capnp::List<capnp::Text>::Builder to) {
  for (size_t i = 0; i < n; ++i) to.set(static_cast<unsigned>(i), or_empty(from[i]));
}

class Hash {
 public:
  void bytes(const void* data, size_t n) {
    number(n);  // so that "ab","c" and "a","bc" differ
    for (size_t i = 0; i < n; ++i) step(static_cast<const unsigned char*>(data)[i]);
  }
  void text(const char* t) { bytes(or_empty(t), std::strlen(or_empty(t))); }
  void number(uint64_t v) {
    for (int i = 0; i < 8; ++i) step(static_cast<unsigned char>(v >> (8 * i)));
  }
  uint64_t value() const { return value_; }

 private:
  void step(unsigned char c) { value_ = (value_ ^ c) * 0x100000001b3ULL; }
  uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace

void put_gres(const xce_gres_t* from, size_t n, capnp::List<wire::Gres>::Builder to) {
  for (size_t i = 0; i < n; ++i) {
    to[static_cast<unsigned>(i)].setName(or_empty(from[i].name));
    to[static_cast<unsigned>(i)].setCount(from[i].count);
  }
}

void put_spec(const xce_job_spec_t& from, wire::JobSpec::Builder to) {
  to.setName(or_empty(from.name));
  to.setUser(or_empty(from.user));
  to.setUid(from.uid);
  to.setGid(from.gid);
  to.setQueue(or_empty(from.queue));
  if (from.script_len > 0)
    to.setScript(kj::arrayPtr(static_cast<const kj::byte*>(from.script), from.script_len));
  if (from.nargs > 0)
    put_texts(from.args, from.nargs, to.initArgs(static_cast<unsigned>(from.nargs)));
  if (from.nenv > 0) put_texts(from.env, from.nenv, to.initEnv(static_cast<unsigned>(from.nenv)));
  to.setWorkDir(or_empty(from.work_dir));
  to.setStdinPath(or_empty(from.stdin_path));
  to.setStdoutPath(or_empty(from.stdout_path));
  to.setStderrPath(or_empty(from.stderr_path));
  to.setCpus(std::max(from.cpus, 1U));
  to.setMemoryMb(from.memory_mb);
  if (from.ngres > 0)
    put_gres(from.gres, from.ngres, to.initGres(static_cast<unsigned>(from.ngres)));
  to.setNodes(std::max(from.nodes, 1U));
  to.setExclusive(from.exclusive);
  to.setHold(from.hold);
  to.setRequeue(from.requeue);
  to.setTimeLimitS(from.time_limit_s);
  to.setWarnSignal(from.warn_signal);
  to.setWarnBeforeS(from.warn_before_s);
  to.setPriority(from.priority);
  to.setSubmitKey(or_empty(from.submit_key));
  if (from.narray > 0) {
    auto array = to.initArray(static_cast<unsigned>(from.narray));
    for (size_t i = 0; i < from.narray; ++i) array.set(static_cast<unsigned>(i), from.array[i]);
  }
  to.setArrayLimit(from.array_limit);
  if (from.ndependencies > 0) {
    auto dependencies = to.initDependencies(static_cast<unsigned>(from.ndependencies));
    for (size_t i = 0; i < from.ndependencies; ++i) {
      dependencies[static_cast<unsigned>(i)].setKind(
          static_cast<wire::DependencyKind>(from.dependencies[i].kind));
      dependencies[static_cast<unsigned>(i)].setJobId(from.dependencies[i].job_id);
    }
  }
  to.setComment(or_empty(from.comment));
  if (from.step.job_id == 0) return;
  auto step = to.initStep();
  step.setJobId(from.step.job_id);
  put_texts(from.step.hosts, from.step.nhosts,
            step.initHosts(static_cast<unsigned>(from.step.nhosts)));
}

void put_filter(const xce_job_filter_t& from, wire::JobFilter::Builder to) {
  if (from.nids > 0) {
    auto ids = to.initIds(static_cast<unsigned>(from.nids));
    for (size_t i = 0; i < from.nids; ++i) ids.set(static_cast<unsigned>(i), from.ids[i]);
  }
  to.setStates(from.states);
  to.setUser(or_empty(from.user));
  to.setQueue(or_empty(from.queue));
  to.setHost(or_empty(from.host));
  to.setName(or_empty(from.name));
  to.setArrayId(from.array_id);
  to.setAfterId(from.after_id);
  to.setLimit(from.limit);
  to.setDescending(from.descending);
  to.setFull(from.full);
  to.setSinceMs(from.since_ms);
  to.setUntilMs(from.until_ms);
}

void put_attrs(const xce_host_attrs_t& from, wire::HostAttrs::Builder to) {
  to.setName(or_empty(from.name));
  to.setVersion(or_empty(from.version));
  to.setAddress(or_empty(from.address));
  to.setBootId(or_empty(from.boot_id));
  to.setWorkerId(from.worker_id);
  to.setFault(or_empty(from.fault));
  to.setCpus(from.cpus);
  to.setMemoryMb(from.memory_mb);
  if (from.ngres > 0)
    put_gres(from.gres, from.ngres, to.initGres(static_cast<unsigned>(from.ngres)));
}

void put_queue(const xce_queue_t& from, wire::Queue::Builder to) {
  to.setName(or_empty(from.name));
  to.setPriority(from.priority);
  to.setDefaultTimeS(from.default_time_s);
  to.setMaxTimeS(from.max_time_s);
  to.setMaxRunning(from.max_running);
  to.setMaxRunningPerUser(from.max_running_per_user);
  to.setOpen(from.open);
  to.setActive(from.active);
  to.setIsDefault(from.is_default);
  if (from.nallowed_users > 0)
    put_texts(from.allowed_users, from.nallowed_users,
              to.initAllowedUsers(static_cast<unsigned>(from.nallowed_users)));
  if (from.nallowed_groups > 0)
    put_texts(from.allowed_groups, from.nallowed_groups,
              to.initAllowedGroups(static_cast<unsigned>(from.nallowed_groups)));
  to.setMaxPendingPerUser(from.max_pending_per_user);
  to.setMaxCpusPerUser(from.max_cpus_per_user);
  to.setPreemptible(from.preemptible);
}

void put_reservation(const xce_reservation_t& from, wire::Reservation::Builder to) {
  to.setName(or_empty(from.name));
  put_texts(from.hosts, from.nhosts, to.initHosts(static_cast<unsigned>(from.nhosts)));
  to.setCpus(from.cpus);
  to.setStartMs(from.start_ms);
  to.setEndMs(from.end_ms);
  put_texts(from.users, from.nusers, to.initUsers(static_cast<unsigned>(from.nusers)));
  put_texts(from.queues, from.nqueues, to.initQueues(static_cast<unsigned>(from.nqueues)));
  to.setComment(or_empty(from.comment));
}

void put_alloc(const xce_alloc_t& from, wire::Alloc::Builder to) {
  to.setHost(or_empty(from.host));
  to.setCpus(from.cpus);
  to.setMemoryMb(from.memory_mb);
  if (from.ngres > 0)
    put_gres(from.gres, from.ngres, to.initGres(static_cast<unsigned>(from.ngres)));
}

void put_report(const xce_report_t& from, wire::Report::Builder to) {
  to.setOutboxSeq(from.outbox_seq);
  to.setKind(static_cast<wire::NotifyKind>(from.kind));
  to.setJobId(from.job_id);
  to.setAttempt(from.attempt);
  to.setExitCode(from.exit_code);
  to.setExitSignal(from.exit_signal);
  to.setOutcome(static_cast<wire::JobState>(from.outcome));
  auto usage = to.initUsage();
  usage.setCpuMs(from.usage.cpu_ms);
  usage.setPeakMemoryKb(from.usage.peak_memory_kb);
  usage.setWallMs(from.usage.wall_ms);
  to.setMessage(or_empty(from.message));
  to.setTimeMs(from.time_ms);
  to.setStdoutFile(or_empty(from.stdout_file));
  to.setStderrFile(or_empty(from.stderr_file));
}

uint64_t body_hash(const xce_job_spec_t& s) {
  Hash h;
  for (const char* t :
       {s.name, s.user, s.queue, s.work_dir, s.stdin_path, s.stdout_path, s.stderr_path, s.comment})
    h.text(t);
  h.bytes(s.script, s.script_len);
  for (uint64_t v : {uint64_t{s.uid}, uint64_t{s.gid}, uint64_t{std::max(s.cpus, 1U)}, s.memory_mb,
                     uint64_t{std::max(s.nodes, 1U)}, uint64_t{s.exclusive}, uint64_t{s.hold},
                     uint64_t{s.requeue}, uint64_t{s.time_limit_s}, uint64_t{s.warn_signal},
                     uint64_t{s.warn_before_s}, static_cast<uint64_t>(int64_t{s.priority}),
                     uint64_t{s.array_limit}})
    h.number(v);
  h.number(s.nargs);
  for (size_t i = 0; i < s.nargs; ++i) h.text(s.args[i]);
  h.number(s.nenv);
  for (size_t i = 0; i < s.nenv; ++i) h.text(s.env[i]);
  h.number(s.ngres);
  for (size_t i = 0; i < s.ngres; ++i) {
    h.text(s.gres[i].name);
    h.number(s.gres[i].count);
  }
  h.number(s.narray);
  for (size_t i = 0; i < s.narray; ++i) h.number(s.array[i]);
  h.number(s.ndependencies);
  for (size_t i = 0; i < s.ndependencies; ++i) {
    h.number(static_cast<uint64_t>(s.dependencies[i].kind));
    h.number(s.dependencies[i].job_id);
  }
  if (s.step.job_id != 0) {  // not of others, whose hash must stay what it was
    h.number(s.step.job_id);
    for (size_t i = 0; i < s.step.nhosts; ++i) h.text(s.step.hosts[i]);
  }
  return h.value() == 0 ? 1 : h.value();  // 0 means "no hash"
}

}  // namespace xce::client
