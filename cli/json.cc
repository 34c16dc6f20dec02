#include "cli/json.h"

#include "cli/labels.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

std::string text(const char* s) { return s == nullptr ? "" : s; }

Json time_json(int64_t ms) { return ms == 0 ? Json(nullptr) : Json(iso_time(ms)); }

Json gres_json(const xce_gres_t* gres, size_t n) {
  Json out = Json::object();
  for (size_t i = 0; i < n; ++i) out[text(gres[i].name)] = gres[i].count;
  return out;
}

Json indices_json(const xce_gres_t* gres, size_t n) {
  Json out = Json::object();
  for (size_t i = 0; i < n; ++i)
    if (gres[i].nindices > 0)
      out[text(gres[i].name)] =
          std::vector<uint32_t>(gres[i].indices, gres[i].indices + gres[i].nindices);
  return out;
}

Json strings_json(const char* const* items, size_t n) {
  Json out = Json::array();
  for (size_t i = 0; i < n; ++i) out.push_back(text(items[i]));
  return out;
}

void add_spec(const xce_job_spec_t& spec, bool full, Json* out) {
  Json& j = *out;
  j["cpus"] = spec.cpus == 0 ? 1 : spec.cpus;
  j["memory_mb"] = spec.memory_mb;
  j["gres"] = gres_json(spec.gres, spec.ngres);
  j["nodes"] = spec.nodes == 0 ? 1 : spec.nodes;
  j["exclusive"] = spec.exclusive;
  j["requeue"] = spec.requeue;
  j["priority"] = spec.priority;
  j["time_limit_s"] = spec.time_limit_s == 0 ? Json(nullptr) : Json(spec.time_limit_s);
  j["warn_signal"] = spec.warn_signal;
  j["warn_before_s"] = spec.warn_before_s;
  j["array_limit"] = spec.array_limit;
  Json dependencies = Json::array();
  for (size_t i = 0; i < spec.ndependencies; ++i) {
    dependencies.push_back(Json{{"kind", dependency_word(spec.dependencies[i].kind)},
                                {"job_id", spec.dependencies[i].job_id}});
  }
  j["dependencies"] = dependencies;
  j["step_of"] = spec.step.job_id == 0 ? Json(nullptr) : Json(spec.step.job_id);
  j["submit_key"] = text(spec.submit_key);
  j["comment"] = text(spec.comment);
  j["work_dir"] = text(spec.work_dir);
  j["stdin_path"] = text(spec.stdin_path);
  j["stdout_path"] = text(spec.stdout_path);
  j["stderr_path"] = text(spec.stderr_path);
  if (full) {
    j["script"] = std::string(static_cast<const char*>(spec.script == nullptr ? "" : spec.script),
                              spec.script_len);
    j["args"] = strings_json(spec.args, spec.nargs);
    j["env"] = strings_json(spec.env, spec.nenv);
  }
}

}  // namespace

Json job_json(const xce_job_t& job, bool full) {
  Json j;
  j["id"] = job.id;
  j["array_id"] = job.array_id == 0 ? Json(nullptr) : Json(job.array_id);
  j["array_index"] = job.array_id == 0 ? Json(nullptr) : Json(job.array_index);
  j["name"] = text(job.spec.name);
  j["user"] = text(job.spec.user);
  j["queue"] = text(job.spec.queue);
  j["state"] = state_word(job.state);
  j["desired"] = desired_word(job.desired);
  j["reason"] = text(job.reason);
  const bool ended = is_ended(job);
  const bool ran = job.start_ms != 0 || job.exit_code != 0;
  j["exit_code"] = ended && ran ? Json(job.exit_code) : Json(nullptr);
  j["exit_signal"] = ended && job.exit_signal != 0 ? Json(job.exit_signal) : Json(nullptr);
  j["submit_time"] = time_json(job.submit_ms);
  j["eligible_time"] = time_json(job.eligible_ms);
  j["estimated_start_time"] = time_json(job.estimated_start_ms);
  j["start_time"] = time_json(job.start_ms);
  j["end_time"] = time_json(job.end_ms);
  Json hosts = Json::array(), allocations = Json::array();
  for (size_t i = 0; i < job.nallocs; ++i) {
    const xce_alloc_t& alloc = job.allocs[i];
    hosts.push_back(text(alloc.host));
    allocations.push_back(Json{{"host", text(alloc.host)},
                               {"cpus", alloc.cpus},
                               {"memory_mb", alloc.memory_mb},
                               {"gres", gres_json(alloc.gres, alloc.ngres)},
                               {"gres_indices", indices_json(alloc.gres, alloc.ngres)}});
  }
  j["hosts"] = hosts;
  j["allocations"] = allocations;
  j["attempt"] = job.attempt;
  j["starts"] = job.starts;
  j["usage"] = Json{{"cpu_ms", job.usage.cpu_ms},
                    {"peak_memory_kb", job.usage.peak_memory_kb},
                    {"wall_ms", job.usage.wall_ms}};
  j["stdout_file"] = text(job.stdout_file);
  j["stderr_file"] = text(job.stderr_file);
  add_spec(job.spec, full, &j);
  j["modify_index"] = job.modify_index;
  return j;
}

Json host_json(const xce_host_t& host) {
  Json j;
  j["name"] = text(host.attrs.name);
  j["state"] = host_state_word(host.state);
  j["drained"] = host.drained;
  j["drain_reason"] = text(host.drain_reason);
  j["cpus"] = host.attrs.cpus;
  j["used_cpus"] = host.used_cpus;
  j["memory_mb"] = host.attrs.memory_mb;
  j["used_memory_mb"] = host.used_memory_mb;
  j["gres"] = gres_json(host.attrs.gres, host.attrs.ngres);
  j["used_gres"] = gres_json(host.used_gres, host.nused_gres);
  j["running_jobs"] = host.running_jobs;
  j["address"] = text(host.attrs.address);
  j["version"] = text(host.attrs.version);
  j["joined_time"] = time_json(host.joined_ms);
  j["modify_index"] = host.modify_index;
  return j;
}

Json queue_json(const xce_queue_t& queue) {
  const auto limit = [](uint32_t n) { return n == 0 ? Json(nullptr) : Json(n); };
  Json j;
  j["name"] = text(queue.name);
  j["default"] = queue.is_default;
  j["open"] = queue.open;
  j["active"] = queue.active;
  j["priority"] = queue.priority;
  j["default_time_s"] = limit(queue.default_time_s);
  j["max_time_s"] = limit(queue.max_time_s);
  j["max_running"] = limit(queue.max_running);
  j["max_running_per_user"] = limit(queue.max_running_per_user);
  j["max_pending_per_user"] = limit(queue.max_pending_per_user);
  j["max_cpus_per_user"] = limit(queue.max_cpus_per_user);
  j["allowed_users"] = strings_json(queue.allowed_users, queue.nallowed_users);
  j["allowed_groups"] = strings_json(queue.allowed_groups, queue.nallowed_groups);
  j["preemptible"] = queue.preemptible;
  j["pending"] = queue.pending;
  j["running"] = queue.running;
  j["modify_index"] = queue.modify_index;
  return j;
}

Json reservation_json(const xce_reservation_t& reservation) {
  Json j;
  j["name"] = text(reservation.name);
  j["hosts"] = strings_json(reservation.hosts, reservation.nhosts);
  j["cpus"] = reservation.cpus == 0 ? Json(nullptr) : Json(reservation.cpus);
  j["start_time"] = time_json(reservation.start_ms);
  j["end_time"] = time_json(reservation.end_ms);
  j["users"] = strings_json(reservation.users, reservation.nusers);
  j["queues"] = strings_json(reservation.queues, reservation.nqueues);
  j["comment"] = text(reservation.comment);
  j["modify_index"] = reservation.modify_index;
  return j;
}

Json cluster_json(const xce_cluster_status_t& status) {
  Json j;
  j["answered_by"] = status.node_id;
  j["role"] = text(status.role);
  j["ready"] = status.ready;
  j["leader_id"] = status.leader_id == 0 ? Json(nullptr) : Json(status.leader_id);
  j["term"] = status.term;
  j["commit"] = status.commit;
  j["applied"] = status.applied;
  j["last_index"] = status.last_index;
  j["cluster_id"] =
      std::to_string(status.cluster_id);  // 64 bits: more than a JSON number holds everywhere
  Json nodes = Json::array();
  for (size_t i = 0; i < status.nnodes; ++i) {
    const xce_node_t& node = status.nodes[i];
    nodes.push_back(Json{{"id", node.id},
                         {"host", text(node.host)},
                         {"port", node.port},
                         {"role", text(node.role)},
                         {"connected", node.connected},
                         {"match_index", node.match_index},
                         {"last_contact_ms",
                          node.last_contact_ms < 0 ? Json(nullptr) : Json(node.last_contact_ms)}});
  }
  j["nodes"] = nodes;
  j["uptime_ms"] = status.uptime_ms;
  j["jobs_pending"] = status.jobs_pending;
  j["jobs_running"] = status.jobs_running;
  j["jobs_finished"] = status.jobs_finished;
  j["sessions"] = status.sessions;
  j["last_election_time"] = time_json(status.last_election_ms);
  j["last_election_took_ms"] = status.last_election_took_ms;
  j["heartbeat_ms"] = status.heartbeat_ms;
  j["election_timeout_ms"] = status.election_timeout_ms;
  j["disk"] = text(status.disk);
  j["scheduler"] = text(status.scheduler);
  return j;
}

std::string dump(const Json& json, bool pretty) {
  return json.dump(pretty ? 2 : -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace xce::cli
