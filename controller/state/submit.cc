#include "controller/state/submit.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "controller/state/queues.h"
#include "controller/state/steps.h"
#include "xce/errnox.h"

namespace xce::state {
namespace {

// Whose job it is: a user's own, whatever the request claims; root, the apiserver and daemons
// submit for whom they name. The group is the one that the service put there: a command in the log
// does not tell who.gid.
Result set_owner(const Identity& who, JobSpec& spec) {
  if (who.role != Role::kUser && !is_privileged(who)) {
    return refuse(E_XCE_PERM, absl::StrCat("role ", name_of(who.role),
                                           " may not submit jobs: submit as a user"));
  }
  if (!is_privileged(who) || spec.user.empty()) {
    spec.user = who.user;
    spec.uid = who.uid;
  }
  if (spec.user.empty()) {
    return refuse(
        E_XCE_INVALID,
        "whose job it is to be is not known: say hello with a user name, or name the user");
  }
  return {};
}

Result check_texts(const JobSpec& spec) {
  const std::pair<const char*, const std::string*> texts[] = {
      {"name", &spec.name},
      {"user", &spec.user},
      {"queue", &spec.queue},
      {"working directory", &spec.work_dir},
      {"input path", &spec.stdin_path.get()},
      {"output path", &spec.stdout_path.get()},
      {"error path", &spec.stderr_path.get()},
      {"submit key", &spec.submit_key},
      {"comment", &spec.comment.get()}};
  for (const auto& [what, text] : texts) {
    if (text->size() > kMaxTextBytes) {
      return refuse(E_XCE_INVALID, absl::StrCat("the ", what, " is longer than ", kMaxTextBytes,
                                                " bytes: shorten it"));
    }
    if (text->find('\0') != std::string::npos) {
      return refuse(E_XCE_INVALID, absl::StrCat("the ", what, " holds a zero byte: leave it out"));
    }
  }
  return {};
}

Result check_resources(const JobSpec& spec) {
  if (!spec.body || (spec.body->script.empty() && spec.body->args.empty())) {
    return refuse(E_XCE_INVALID, "there is nothing to run: give a script or a command");
  }
  if (spec.cpus == 0)
    return refuse(E_XCE_INVALID, "a job needs at least one CPU: ask for cpus >= 1");
  if (spec.nodes > kMaxNodes) {
    return refuse(E_XCE_INVALID,
                  absl::StrCat("at most ", kMaxNodes, " hosts a job, not ", spec.nodes));
  }
  std::set<std::string> names;
  for (const Gres& gres : spec.gres) {
    if (gres.name.empty() || gres.count == 0) {
      return refuse(E_XCE_INVALID,
                    "a generic resource needs a name and a count >= 1, such as gpu:1");
    }
    if (!names.insert(gres.name).second) {
      return refuse(E_XCE_INVALID, absl::StrCat("the resource ", gres.name,
                                                " is asked for twice: give one count"));
    }
  }
  return {};
}

Result check_array(const Tables& tables, const JobSpec& spec) {
  if (spec.array.size() > kMaxArrayTasks) {
    return refuse(E_XCE_INVALID,
                  absl::StrCat("an array has at most ", kMaxArrayTasks, " tasks, not ",
                               spec.array.size(), ": submit several arrays"));
  }
  std::vector<uint32_t> sorted = spec.array;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return refuse(E_XCE_INVALID,
                  absl::StrCat("array index ", *twice, " appears twice: give each index once"));
  }
  if (tables.jobs.waiting() + std::max<size_t>(1, spec.array.size()) > kMaxWaitingJobs) {
    return refuse(E_XCE_BUSY, absl::StrCat("the cluster already has ", tables.jobs.waiting(),
                                           " waiting jobs, and takes at most ", kMaxWaitingJobs,
                                           ": try again later"));
  }
  return {};
}

Result check_dependencies(const Tables& tables, const JobSpec& spec) {
  for (const Dependency& dependency : spec.dependencies) {
    if (dependency.kind == DependencyKind::kSingleton) continue;
    if (dependency.job == 0 || dependency.job >= tables.jobs.next_id()) {
      return refuse(E_XCE_INVALID,
                    absl::StrCat("the dependency ", name_of(dependency.kind), ":", dependency.job,
                                 " names a job that never existed: check the id"));
    }
  }
  return {};
}

// Chooses the queue and the time limit.
Result settle_queue(const Tables& tables, const Identity& who, JobSpec& spec) {
  if (spec.queue.empty()) {
    for (const auto& [name, queue] : tables.queues) {
      if (queue.is_default) spec.queue = name;
    }
    if (spec.queue.empty()) return refuse(E_XCE_INVALID, "there is no default queue: name a queue");
  }
  const auto it = tables.queues.find(spec.queue);
  if (it == tables.queues.end()) {
    return refuse(E_XCE_NOENT, absl::StrCat("there is no queue '", spec.queue,
                                            "': list the queues and name one of them"));
  }
  const Queue& queue = it->second;
  if (!queue.open) {
    return refuse(E_XCE_INVALID,
                  absl::StrCat("queue '", spec.queue,
                               "' is closed: use another queue, or wait until it is opened"));
  }
  if (Result r = check_access(queue, who, spec.user); r.status) return r;
  if (Result r = check_pending(tables, queue, spec.user, std::max<size_t>(1, spec.array.size()));
      r.status) {
    return r;
  }
  if (spec.time_limit_s == 0)
    spec.time_limit_s = queue.default_time_s ? queue.default_time_s : queue.max_time_s;
  if (queue.max_time_s && spec.time_limit_s > queue.max_time_s) {
    return refuse(E_XCE_INVALID, absl::StrCat("queue '", spec.queue, "' allows ", queue.max_time_s,
                                              " s, and the job asks for ", spec.time_limit_s,
                                              " s: ask for less time, or use another queue"));
  }
  if (spec.warn_signal && spec.time_limit_s && spec.warn_before_s >= spec.time_limit_s) {
    return refuse(E_XCE_INVALID, absl::StrCat("the warning would come ", spec.warn_before_s,
                                              " s before the limit of ", spec.time_limit_s,
                                              " s, before the job starts: warn later"));
  }
  return {};
}

Result duplicate(const SubmitKeys::Made& made, const JobSpec& spec) {
  Result result;
  result.status = E_XCE_DUP_JOB;
  result.job = made.job;
  result.count = made.count;
  result.existing = made.body_hash == spec.body_hash;
  result.message =
      result.existing
          ? absl::StrCat("this submission was made before, with the same key: it is job ", made.job)
          : absl::StrCat("the submit key '", spec.submit_key, "' belongs to job ", made.job,
                         ", which is another submission: choose another key, or none");
  return result;
}

std::string default_name(const JobSpec& spec) {
  if (spec.body->args.empty() || !spec.body->script.empty()) return "job";
  const std::string& path = spec.body->args[0];
  return path.substr(path.rfind('/') + 1).substr(0, 64);
}

Result add_jobs(Turn& turn, JobSpec spec) {
  const std::vector<uint32_t> indices = spec.array.get();
  spec.array.clear();  // each task knows its own index; the list would cost its square
  if (spec.name.empty()) spec.name = default_name(spec);
  if (spec.nodes == 0) spec.nodes = 1;
  spec.body = turn.tables.interner.share(std::move(spec.body));
  const bool has_dependencies = !spec.dependencies.empty();
  Job job;
  job.state = spec.hold ? JobState::kHeld : JobState::kPending;
  if (spec.hold) job.reason = "held at submission";
  job.submit_ms = turn.now_ms;
  job.eligible_ms = spec.hold || has_dependencies ? 0 : turn.now_ms;
  job.spec = std::move(spec);
  const JobId first = turn.tables.jobs.next_id();
  const size_t count = std::max<size_t>(1, indices.size());
  for (size_t i = 0; i < count; ++i) {
    if (!indices.empty()) {
      job.array_id = first;
      job.array_index = indices[i];
    }
    turn.touch(turn.tables.jobs.add(job));
  }
  turn.tables.keys.add(job.spec, first, static_cast<uint32_t>(count));
  Result result;
  result.job = first;
  result.count = static_cast<uint32_t>(count);
  return result;
}

}  // namespace

Result submit(Turn& turn, const Command& command, const JobSpec& request) {
  const Tables& tables = turn.tables;
  JobSpec spec = request;
  if (Result r = set_owner(command.who, spec); r.status) return r;
  if (spec.step && is_privileged(command.who)) {
    if (const Job* job = tables.jobs.find(spec.step->job)) spec.user = job->spec.user;
  }
  if (Result r = check_texts(spec); r.status) return r;
  // Before what may have changed since the first time, such as a queue that is closed now.
  if (const SubmitKeys::Made* made =
          spec.submit_key.empty() ? nullptr : tables.keys.find(spec.user, spec.submit_key)) {
    return duplicate(*made, spec);
  }
  if (Result r = check_resources(spec); r.status) return r;
  if (spec.step) {
    if (Result r = find_owner(tables, command, spec); r.status) return r;
    if (spec.name.empty()) spec.name = default_name(spec);
    return add_steps(turn, std::move(spec));
  }
  if (Result r = check_array(tables, spec); r.status) return r;
  if (Result r = check_dependencies(tables, spec); r.status) return r;
  if (Result r = settle_queue(tables, command.who, spec); r.status) return r;
  return add_jobs(turn, std::move(spec));
}

}  // namespace xce::state
