#include <variant>

#include "absl/strings/str_cat.h"
#include "controller/state/check.h"

namespace xce::state {
namespace {

// Two independent 64-bit multiplicative hashes. Enough to find replicas that differ by mistake; not
// meant against an adversary.
class Digest {
 public:
  void add(uint64_t value) {
    a_ = mix(a_ ^ value, 0x9e3779b97f4a7c15u);
    b_ = mix(b_ + value, 0xc2b2ae3d27d4eb4fu);
  }
  void add(const std::string& text) {
    add(text.size());
    uint64_t word = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      word = word << 8 | static_cast<unsigned char>(text[i]);
      if (i % 8 == 7) add(word);
    }
    if (text.size() % 8) add(word);
  }
  void add(const ClientId& id) {
    add(id.hi);
    add(id.lo);
  }
  void add(const Gres& gres) {
    add(gres.name);
    add(gres.count);
    add(gres.indices.size());
    for (const uint32_t index : gres.indices) add(index);
  }
  void add(const Dependency& dependency) {
    add(static_cast<uint64_t>(dependency.kind));
    add(dependency.job);
  }
  void add(const Alloc& alloc) {
    add(alloc.host);
    all(alloc.cpus, alloc.memory_mb, alloc.gres);
  }
  void add(const SharedTexts& texts) { add(texts.list()); }
  template <typename T>
  void add(const Rare<T>& value) {
    add(value.get());
  }
  template <typename T>
  void add(const std::vector<T>& items) {
    add(items.size());
    for (const T& item : items) add(item);
  }
  template <typename... Values>
  void all(const Values&... values) {
    (add(values), ...);
  }
  std::string hex() const {
    return absl::StrCat(absl::Hex(a_, absl::kZeroPad16), absl::Hex(b_, absl::kZeroPad16));
  }

 private:
  static uint64_t mix(uint64_t value, uint64_t factor) {
    value *= factor;
    value ^= value >> 32;
    value *= factor;
    return value ^ value >> 29;
  }
  uint64_t a_ = 1, b_ = 2;
};

uint64_t number(int64_t value) { return static_cast<uint64_t>(value); }
template <typename Enum>
uint64_t code(Enum value) {
  return static_cast<uint64_t>(value);
}

void add_spec(Digest& digest, const JobSpec& spec) {
  digest.all(spec.name, spec.user, spec.queue, spec.work_dir, spec.stdin_path, spec.stdout_path,
             spec.stderr_path, spec.submit_key, spec.comment);
  digest.all(uint64_t{spec.uid}, uint64_t{spec.gid});
  if (spec.body) digest.all(spec.body->script, spec.body->args, spec.body->env);
  digest.all(uint64_t{spec.cpus}, spec.memory_mb, spec.gres, uint64_t{spec.nodes},
             uint64_t{spec.exclusive}, uint64_t{spec.hold}, uint64_t{spec.requeue},
             uint64_t{spec.time_limit_s}, uint64_t{spec.warn_signal}, uint64_t{spec.warn_before_s},
             number(spec.priority), spec.array, uint64_t{spec.array_limit}, spec.dependencies,
             spec.body_hash);
  if (spec.step) {
    digest.all(spec.step->job, spec.step->hosts, uint64_t{spec.step->attempt}, spec.step->array_id,
               uint64_t{spec.step->array_index});
  }
}

void add_job(Digest& digest, const Job& job) {
  digest.all(job.id, job.array_id, uint64_t{job.array_index});
  add_spec(digest, job.spec);
  digest.all(code(job.state), code(job.desired), uint64_t{job.kill_signal}, uint64_t{job.attempt},
             uint64_t{job.starts});
  digest.all(job.allocs, job.reason, number(job.submit_ms), number(job.eligible_ms),
             number(job.start_ms), number(job.end_ms));
  digest.all(number(job.exit_code), uint64_t{job.exit_signal}, job.usage.cpu_ms,
             job.usage.peak_memory_kb, job.usage.wall_ms);
  digest.all(job.stdout_file, job.stderr_file, job.modify_index);
}

void add_host(Digest& digest, const Host& host) {
  const HostAttrs& attrs = host.attrs;
  digest.all(attrs.name, attrs.version, attrs.address, attrs.boot_id, uint64_t{attrs.cpus},
             attrs.memory_mb, attrs.gres, attrs.worker_id, attrs.fault);
  digest.all(code(host.state), uint64_t{host.drained}, host.drain_reason, uint64_t{host.used_cpus},
             host.used_memory_mb, host.used_gres, uint64_t{host.running_jobs},
             number(host.joined_ms), host.instance, host.outbox_applied, uint64_t{host.lease_ms},
             host.modify_index);
}

void add_queue(Digest& digest, const Queue& queue) {
  digest.all(queue.name, number(queue.priority), uint64_t{queue.default_time_s},
             uint64_t{queue.max_time_s}, uint64_t{queue.max_running},
             uint64_t{queue.max_running_per_user}, uint64_t{queue.open}, uint64_t{queue.active},
             uint64_t{queue.is_default}, uint64_t{queue.pending}, uint64_t{queue.running},
             queue.modify_index);
  digest.all(queue.allowed_users, queue.allowed_groups, uint64_t{queue.max_pending_per_user},
             uint64_t{queue.max_cpus_per_user}, uint64_t{queue.preemptible});
}

void add_reservation(Digest& digest, const Reservation& reservation) {
  digest.all(reservation.name, reservation.hosts, uint64_t{reservation.cpus},
             number(reservation.start_ms), number(reservation.end_ms), reservation.users,
             reservation.queues, reservation.comment, reservation.modify_index);
}

void add_result(Digest& digest, const Result& result) {
  digest.all(number(result.status), result.message, result.job, uint64_t{result.count},
             uint64_t{result.existing}, result.revision, result.epoch, uint64_t{result.active},
             result.outbox_applied, result.op_hash);
  digest.add(result.item_status.size());
  for (const int32_t status : result.item_status) digest.add(number(status));
}

void add_sessions(Digest& digest, const Sessions& sessions) {
  digest.all(sessions.floor(), uint64_t{sessions.size()});
  for (const auto& [client, session] : sessions.all()) {
    digest.all(client, session.birth, number(session.used_ms), session.lowest,
               uint64_t{session.results.size()});
    for (const auto& [seq, result] : session.results) {
      digest.add(seq);
      add_result(digest, result);
    }
  }
}

}  // namespace

std::string fingerprint_of(const Tables& tables) {
  Digest digest;
  digest.all(tables.applied, number(tables.now_ms), tables.jobs.next_id(), tables.jobs.finished(),
             uint64_t{tables.jobs.all().size()});
  for (const auto& [id, job] : tables.jobs.all()) add_job(digest, job);
  for (const auto& [name, record] : tables.jobs.users()) {
    const User& user = record.user;
    digest.all(name, uint64_t{user.pending}, uint64_t{user.running}, user.finished, user.cpu_ms);
  }
  for (const auto& [name, host] : tables.hosts.all()) add_host(digest, host);
  for (const auto& [name, job] : tables.hosts.exclusive_holders()) digest.all(name, job);
  for (const auto& [name, seq] : tables.hosts.removed_outboxes()) digest.all(name, seq);
  for (const auto& [name, queue] : tables.queues) add_queue(digest, queue);
  for (const auto& [name, reservation] : tables.reservations) add_reservation(digest, reservation);
  add_sessions(digest, tables.sessions);
  for (const auto& [user, keys] : tables.keys.all()) {
    digest.all(user, uint64_t{keys.size()});
    for (const auto& [key, made] : keys)
      digest.all(key.a, key.b, made.job, uint64_t{made.count}, uint64_t{made.kept}, made.body_hash);
  }
  for (const auto& orphan : tables.keys.orphans())
    digest.all(number(orphan.removed_ms), orphan.user, orphan.key.a, orphan.key.b);
  for (const JobId id : tables.requeue_wanted) digest.add(id);
  digest.all(tables.scheduler.epoch, tables.scheduler.client, tables.scheduler.name);
  return digest.hex();
}

}  // namespace xce::state
