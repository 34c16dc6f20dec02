#include "controller/state/hosts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/state/tables.h"
#include "xce/errnox.h"

namespace xce::state {
namespace {

constexpr size_t kMaxReasonBytes = 1024;

void change(std::vector<Gres>& gres, const std::vector<Gres>& by, int sign) {
  for (const Gres& item : by) {
    auto it =
        std::find_if(gres.begin(), gres.end(), [&](const Gres& g) { return g.name == item.name; });
    if (it == gres.end()) it = gres.insert(gres.end(), Gres{item.name, 0});
    it->count += sign * item.count;
    if (it->count == 0) gres.erase(it);
  }
  std::sort(gres.begin(), gres.end(), [](const Gres& a, const Gres& b) { return a.name < b.name; });
}

std::string no_news(const std::string& host) {
  return absl::StrCat("host ", host, " is unreachable: waiting for news of the job");
}

bool lost_sight_of(const Host& host) { return host.state >= HostState::kUnreachable; }

// An operator's wish to drain goes before the worker's own word that it can start nothing.
void settle_state(Host& host) {
  if (!host.drained) host.drain_reason = host.attrs.fault;
  if (lost_sight_of(host)) return;
  host.state = host.drained || !host.attrs.fault.empty() ? HostState::kDrained : HostState::kUp;
}

// Gives up the jobs that hold something on a host that does not answer. Those that ask for it wait
// again; the others end as LOST if `all`, else they stay.
void give_up_jobs(Turn& turn, const std::string& host, bool all) {
  const IdSet& held = turn.tables.jobs.of_host(host);
  const std::vector<JobId> ids(held.begin(), held.end());
  for (const JobId id : ids) {
    Job* job = turn.tables.jobs.find(id);
    if (!has_hosts(job->state)) continue;
    // A job of many hosts runs, and has its lease, on its first one.
    if (!all && (!job->spec.requeue || job->allocs.front().host != host)) continue;
    lose_job(turn, *job, turn.now_ms, absl::StrCat("host ", host, " was lost"));
  }
}

// Jobs and steps that have not ended there.
size_t jobs_there(const Turn& turn, const std::string& host) {
  size_t n = 0;
  for (const JobId id : turn.tables.jobs.of_host(host))
    n += has_hosts(turn.tables.jobs.find(id)->state);
  return n;
}

// Tells the host's jobs that it is lost, or takes that back.
void mark_jobs(Turn& turn, const std::string& host, bool lost) {
  const std::string reason = no_news(host);
  for (const JobId id : turn.tables.jobs.of_host(host)) {
    Job* job = turn.tables.jobs.find(id);
    if (!has_hosts(job->state) || (!lost && job->reason != reason)) continue;
    job->reason = lost ? reason : std::string();
    turn.touch(*job);
  }
}

void bring_up(Turn& turn, Host& host) {
  const bool was_lost = lost_sight_of(host);
  host.state = HostState::kUp;
  settle_state(host);
  if (was_lost) mark_jobs(turn, host.attrs.name, /*lost=*/false);
  turn.touch(host);
}

Result check_gres(const std::vector<Gres>& gres) {
  std::set<std::string> names;
  for (const Gres& item : gres) {
    if (item.name.empty() || !names.insert(item.name).second) {
      return refuse(
          E_XCE_INVALID,
          absl::StrCat("each generic resource needs a name of its own, unlike '", item.name, "'"));
    }
  }
  return {};
}

}  // namespace

uint32_t count_of(const std::vector<Gres>& gres, const std::string& name) {
  for (const Gres& item : gres) {
    if (item.name == name) return item.count;
  }
  return 0;
}

Host* HostTable::find(const std::string& name) {
  const auto it = hosts_.find(name);
  return it == hosts_.end() ? nullptr : &it->second;
}

const Host* HostTable::find(const std::string& name) const {
  const auto it = hosts_.find(name);
  return it == hosts_.end() ? nullptr : &it->second;
}

Host& HostTable::add(const HostAttrs& attrs) {
  Host& host = hosts_[attrs.name];
  host.attrs = attrs;
  const auto removed = removed_outboxes_.find(attrs.name);
  if (removed != removed_outboxes_.end()) {
    host.outbox_applied = removed->second;
    removed_outboxes_.erase(removed);
  }
  return host;
}

void HostTable::restore(const Host& host, bool shrunk, JobId holder) {
  hosts_[host.attrs.name] = host;
  if (shrunk) shrunk_.insert(host.attrs.name);
  if (holder != 0) exclusive_[host.attrs.name] = holder;
}

void HostTable::remove(const std::string& name) {
  const auto it = hosts_.find(name);
  if (it == hosts_.end()) return;
  if (it->second.outbox_applied) removed_outboxes_[name] = it->second.outbox_applied;
  shrunk_.erase(name);
  indices_.erase(name);
  hosts_.erase(it);
}

void HostTable::note_size(const Host& host) {
  const HostAttrs& has = host.attrs;
  const bool fits =
      host.used_cpus <= has.cpus && host.used_memory_mb <= has.memory_mb &&
      std::all_of(host.used_gres.begin(), host.used_gres.end(),
                  [&](const Gres& gres) { return gres.count <= count_of(has.gres, gres.name); });
  if (fits) {
    shrunk_.erase(has.name);
  } else {
    shrunk_.insert(has.name);
  }
}

bool HostTable::fits(const Alloc& alloc, bool exclusive) const {
  const Host* host = find(alloc.host);
  if (!host || host->state != HostState::kUp || host->drained) return false;
  if (exclusive_.count(alloc.host) || (exclusive && host->running_jobs != 0)) return false;
  // Sums in 64 bits: what is asked for comes from outside.
  if (uint64_t{host->used_cpus} + alloc.cpus > host->attrs.cpus) return false;
  const uint64_t memory_mb = host->attrs.memory_mb;
  if (host->used_memory_mb > memory_mb || alloc.memory_mb > memory_mb - host->used_memory_mb)
    return false;
  std::set<std::string> names;
  return std::all_of(alloc.gres.begin(), alloc.gres.end(), [&](const Gres& gres) {
    const uint64_t used = count_of(host->used_gres, gres.name);
    return names.insert(gres.name).second &&
           used + gres.count <= count_of(host->attrs.gres, gres.name);
  });
}

void HostTable::choose_indices(Alloc* alloc) const {
  const Host* host = find(alloc->host);
  const auto taken = indices_.find(alloc->host);
  for (Gres& gres : alloc->gres) {
    gres.indices.clear();
    const uint32_t total = count_of(host->attrs.gres, gres.name);
    if (total > kMaxIndexed) continue;
    const std::set<uint32_t>* in_use = nullptr;
    if (taken != indices_.end()) {
      const auto of_name = taken->second.find(gres.name);
      if (of_name != taken->second.end()) in_use = &of_name->second;
    }
    for (uint32_t i = 0; i < total && gres.indices.size() < gres.count; ++i)
      if (in_use == nullptr || in_use->count(i) == 0) gres.indices.push_back(i);
  }
}

void HostTable::take_indices(const Alloc& alloc) {
  for (const Gres& gres : alloc.gres) {
    if (gres.indices.empty()) continue;
    indices_[alloc.host][gres.name].insert(gres.indices.begin(), gres.indices.end());
  }
}

void HostTable::allocate(const Alloc& alloc, JobId job, bool exclusive) {
  take_indices(alloc);
  Host* host = find(alloc.host);
  host->used_cpus += alloc.cpus;
  host->used_memory_mb += alloc.memory_mb;
  change(host->used_gres, alloc.gres, 1);
  ++host->running_jobs;
  if (exclusive) exclusive_[alloc.host] = job;
}

void HostTable::release(const Alloc& alloc, JobId job) {
  Host* host = find(alloc.host);
  if (!host) return;
  host->used_cpus -= alloc.cpus;
  host->used_memory_mb -= alloc.memory_mb;
  change(host->used_gres, alloc.gres, -1);
  --host->running_jobs;
  const auto taken = indices_.find(alloc.host);
  for (const Gres& gres : alloc.gres)
    for (const uint32_t index : gres.indices)
      if (taken != indices_.end()) taken->second[gres.name].erase(index);
  if (has_shrunk(alloc.host)) note_size(*host);
  const auto it = exclusive_.find(alloc.host);
  if (it != exclusive_.end() && it->second == job) exclusive_.erase(it);
}

uint64_t HostTable::outbox_applied(const std::string& name) const {
  if (const Host* host = find(name)) return host->outbox_applied;
  const auto removed = removed_outboxes_.find(name);
  return removed == removed_outboxes_.end() ? 0 : removed->second;
}

JobId HostTable::exclusive_holder(const std::string& name) const {
  const auto it = exclusive_.find(name);
  return it == exclusive_.end() ? 0 : it->second;
}

Result join_host(Turn& turn, const Join& join) {
  const std::string& name = join.host.name;
  if (name.empty()) return refuse(E_XCE_INVALID, "a worker joins under its host's name: give one");
  if (join.host.cpus == 0)
    return refuse(E_XCE_INVALID,
                  absl::StrCat("host '", name, "' has no CPUs: it needs at least one"));
  if (Result r = check_gres(join.host.gres); r.status) return r;
  HostTable& hosts = turn.tables.hosts;
  Host* host = hosts.find(name);
  if (host && host->attrs.worker_id != 0 && host->attrs.worker_id != join.host.worker_id) {
    return refuse(
        E_XCE_PERM,
        absl::StrCat("the name '", name, "' belongs to another worker, of another data directory: ",
                     "give this one another --name; or, if that one is gone for good or its data ",
                     "directory was removed, free the name with 'xce host remove ", name,
                     lost_sight_of(*host) && host->running_jobs ? " --lost'" : "'"));
  }
  if (!host) host = &hosts.add(join.host);
  host->attrs = join.host;
  host->attrs.fault.resize(std::min<size_t>(host->attrs.fault.size(), kMaxReasonBytes));
  // A lease that was given may not be counted shorter than it is; one without end neither.
  if (host->running_jobs == 0)
    host->lease_ms = join.lease_ms;
  else if (host->lease_ms != 0)
    host->lease_ms = join.lease_ms == 0 ? 0 : std::max(host->lease_ms, join.lease_ms);
  hosts.note_size(*host);
  host->instance = join.instance;
  host->joined_ms = turn.now_ms;
  bring_up(turn, *host);
  Result result;
  result.revision = turn.index;
  result.outbox_applied = host->outbox_applied;
  return result;
}

void hear_from(Turn& turn, Host& host) {
  if (lost_sight_of(host)) bring_up(turn, host);
}

Result control_host(Turn& turn, const Command& command, const HostControl& control) {
  if (!is_privileged(command.who) ||
      (control.action == HostAction::kGiveUp && command.who.role != Role::kController))
    return refuse(E_XCE_PERM, "only an administrator may change hosts: ask root");
  Host* host = turn.tables.hosts.find(control.name);
  if (!host)
    return refuse(E_XCE_NOENT, absl::StrCat("there is no host '", control.name,
                                            "': list the hosts and name one of them"));
  switch (control.action) {
    case HostAction::kDrain:
      host->drained = true;
      host->drain_reason = control.reason.substr(0, kMaxReasonBytes);
      settle_state(*host);
      break;
    case HostAction::kResume:
      host->drained = false;
      settle_state(*host);
      break;
    case HostAction::kRemove:
      if (const size_t running = jobs_there(turn, control.name)) {
        return refuse(E_XCE_BUSY,
                      absl::StrCat("host '", control.name, "' still runs ", running, " jobs: ",
                                   lost_sight_of(*host)
                                       ? "if it is lost for good, remove it as lost (--lost)"
                                       : "drain it, wait for them or kill them, then remove it"));
      }
      turn.hosts_removed.insert(control.name);
      turn.tables.hosts.remove(control.name);
      return {};
    case HostAction::kRemoveLost:
      if (!lost_sight_of(*host)) {
        return refuse(
            E_XCE_BUSY,
            absl::StrCat("host '", control.name, "' is not lost, it is ", name_of(host->state),
                         ": drain it and remove it once its jobs have ended"));
      }
      give_up_jobs(turn, control.name, /*all=*/true);
      turn.hosts.erase(control.name);
      turn.hosts_removed.insert(control.name);
      turn.tables.hosts.remove(control.name);
      return {};
    case HostAction::kGiveUp:
      if (host->state != HostState::kUnreachable) return {};  // it was heard of meanwhile
      host->state = HostState::kGone;
      // A worker that knows no leases would not have ended its jobs.
      if (host->lease_ms != 0 && host->attrs.worker_id != 0)
        give_up_jobs(turn, control.name, /*all=*/false);
      break;
    default: return refuse(E_XCE_INVALID, "no such action on a host: drain, resume or remove it");
  }
  turn.touch(*host);
  return {};
}

Result update_resvals(Turn& turn, const Command& command, const UpdateResvals& update) {
  if (command.who.role != Role::kWorker)
    return refuse(E_XCE_PERM, "only a host's worker may tell its resources");
  Host* host = turn.tables.hosts.find(command.who.name);
  if (!host)
    return refuse(E_XCE_NOENT,
                  absl::StrCat("host '", command.who.name, "' has not joined: join first"));
  if (Result r = check_gres(update.gres); r.status) return r;
  if (host->attrs.gres == update.gres) return {};
  host->attrs.gres = update.gres;
  turn.tables.hosts.note_size(*host);
  turn.touch(*host);
  return {};
}

Result lose_host(Turn& turn, const Command& command, const HostLost& lost) {
  if (command.who.role != Role::kController)
    return refuse(E_XCE_PERM, "only the primary tells that a host is lost");
  Host* host = turn.tables.hosts.find(lost.name);
  if (!host) return refuse(E_XCE_NOENT, absl::StrCat("there is no host '", lost.name, "'"));
  if (lost_sight_of(*host)) return {};
  host->state = HostState::kUnreachable;
  turn.touch(*host);
  mark_jobs(turn, lost.name, /*lost=*/true);
  return {};
}

}  // namespace xce::state
