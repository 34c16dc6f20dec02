#include "controller/state/steps.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xce/errnox.h"

namespace xce::state {
namespace {

constexpr char kAllHosts[] = "*";
constexpr uint32_t kSignalKill = 9;

std::vector<std::string> hosts_of(const Job& job) {
  std::vector<std::string> hosts;
  for (const Alloc& alloc : job.allocs) hosts.push_back(alloc.host);
  return hosts;
}

// Where the step is to run, as places among the job's hosts.
std::vector<size_t> places_of(const Step& step, const std::vector<std::string>& hosts) {
  std::vector<size_t> places;
  if (step.hosts.empty()) return {0};
  for (size_t i = 0; i < hosts.size(); ++i) {
    const bool wanted = std::count(step.hosts.begin(), step.hosts.end(), hosts[i]) != 0;
    if (wanted || step.hosts.front() == kAllHosts) places.push_back(i);
  }
  return places;
}

// What is left of the job's time limit; 0: it has none.
uint32_t time_left_s(const Job& job, int64_t now_ms) {
  if (job.spec.time_limit_s == 0) return 0;
  const int64_t ran_s = (now_ms - job.start_ms) / 1000;
  return static_cast<uint32_t>(std::max<int64_t>(1, int64_t{job.spec.time_limit_s} - ran_s));
}

// The request becomes what its job is, but for what it may choose itself.
void fill_from(const Job& job, int64_t now_ms, JobSpec& spec) {
  Step step;
  step.job = job.id;
  step.hosts = hosts_of(job);
  step.attempt = job.attempt;
  step.array_id = job.array_id;
  step.array_index = job.array_index;
  JobBody body;
  body.script = spec.body->script;
  body.args = spec.body->args;
  if (spec.body->env.empty()) {
    body.env = job.spec.body->env;
  } else {
    std::vector<std::string> env = job.spec.body->env.list();
    for (const std::string& entry : spec.body->env) {
      const std::string name = entry.substr(0, entry.find('=') + 1);
      env.erase(std::remove_if(
                    env.begin(), env.end(),
                    [&](const std::string& old) { return old.compare(0, name.size(), name) == 0; }),
                env.end());
      env.push_back(entry);
    }
    body.env = SharedTexts(std::move(env));
  }
  JobSpec made = job.spec;
  made.step = std::make_shared<const Step>(std::move(step));
  made.body = std::make_shared<const JobBody>(std::move(body));
  made.name = spec.name;
  made.submit_key = spec.submit_key;
  made.body_hash = spec.body_hash;
  made.comment = std::move(spec.comment);
  if (!spec.work_dir.empty()) made.work_dir = spec.work_dir;
  made.stdin_path = std::move(spec.stdin_path);
  made.stdout_path = std::move(spec.stdout_path);
  made.stderr_path = std::move(spec.stderr_path);
  made.gres.clear();
  made.dependencies.clear();
  made.nodes = 1;
  made.exclusive = made.hold = false;
  made.array_limit = 0;
  const uint32_t left_s = time_left_s(job, now_ms);
  made.time_limit_s = spec.time_limit_s && left_s ? std::min(spec.time_limit_s, left_s)
                                                  : std::max(spec.time_limit_s, left_s);
  made.warn_signal = spec.warn_signal;
  made.warn_before_s = spec.warn_before_s;
  spec = std::move(made);
}

}  // namespace

Result find_owner(const Tables& tables, const Command& command, const JobSpec& spec) {
  const JobId id = spec.step->job;
  const Job* job = tables.jobs.find(id);
  if (!job) {
    const bool ever = id < tables.jobs.next_id();
    return refuse(E_XCE_NOENT, absl::StrCat(ever ? "job " : "there is no job ", id,
                                            ever ? " ended long ago" : "",
                                            ": a command runs in a job that runs"));
  }
  const Identity& who = command.who;
  if (!is_privileged(who) && (who.role != Role::kUser || who.user != job->spec.user)) {
    return refuse(E_XCE_PERM,
                  absl::StrCat("job ", id, " belongs to ", job->spec.user,
                               ": only its owner or an administrator may run a command in it"));
  }
  if (job->spec.step) {
    return refuse(E_XCE_INVALID, absl::StrCat("job ", id, " is itself a command inside job ",
                                              job->spec.step->job, ": name that one"));
  }
  if (job->state != JobState::kRunning || job->desired != Desired::kRun) {
    const bool leaving = job->state == JobState::kRunning;
    return refuse(E_XCE_INVALID,
                  absl::StrCat("job ", id, " is ",
                               !leaving                         ? name_of(job->state)
                               : job->desired == Desired::kKill ? "being killed"
                                                                : "being suspended",
                               ": a command can run in it only while it is RUNNING"));
  }
  for (const std::string& host : spec.step->hosts) {
    if (host == kAllHosts && spec.step->hosts.size() == 1) break;
    const std::vector<std::string> hosts = hosts_of(*job);
    if (std::count(hosts.begin(), hosts.end(), host) == 0) {
      return refuse(E_XCE_INVALID, absl::StrCat("job ", id, " does not run on host '", host,
                                                "': it has ", absl::StrJoin(hosts, ", ")));
    }
  }
  for (const size_t place : places_of(*spec.step, hosts_of(*job))) {
    const std::string& name = job->allocs[place].host;
    const Host* host = tables.hosts.find(name);
    if (host == nullptr || host->state >= HostState::kUnreachable) {
      return refuse(E_XCE_BUSY, absl::StrCat("host ", name, " of job ", id,
                                             " does not answer now: try again later"));
    }
  }
  if (tables.jobs.steps_of(id).size() + std::max<size_t>(1, spec.step->hosts.size()) > kMaxSteps) {
    return refuse(E_XCE_BUSY,
                  absl::StrCat("job ", id, " runs ", kMaxSteps,
                               " commands at once, no more are started: wait for some"));
  }
  return {};
}

Result add_steps(Turn& turn, JobSpec spec) {
  JobTable& jobs = turn.tables.jobs;
  const Job& owner = *jobs.find(spec.step->job);
  const std::vector<size_t> places = places_of(*spec.step, hosts_of(owner));
  fill_from(owner, turn.now_ms, spec);
  spec.body = turn.tables.interner.share(std::move(spec.body));
  Job job;
  job.submit_ms = job.eligible_ms = turn.now_ms;
  job.attempt = 1;
  job.spec = std::move(spec);
  const JobId first = jobs.next_id();
  for (const size_t place : places) {
    if (places.size() > 1) {
      job.array_id = first;
      job.array_index = static_cast<uint32_t>(place);
    }
    // What it may use of the host is its job's; nothing is taken twice.
    job.spec.cpus = owner.allocs[place].cpus;
    Alloc alloc;
    alloc.host = owner.allocs[place].host;
    alloc.gres = owner.allocs[place].gres;  // to know which gpus; they stay its job's
    Job& added = jobs.add(job);
    jobs.set_allocs(added, {std::move(alloc)});
    jobs.set_state(added, JobState::kStarting);
    turn.touch(added);
  }
  turn.tables.keys.add(job.spec, first, static_cast<uint32_t>(places.size()));
  Result result;
  result.job = first;
  result.count = static_cast<uint32_t>(places.size());
  return result;
}

void kill_steps(Turn& turn, const Job& job) {
  const IdSet steps = turn.tables.jobs.steps_of(job.id);  // a copy: some may end here
  for (const JobId id : steps) {
    Job* step = turn.tables.jobs.find(id);
    step->desired = Desired::kKill;
    step->kill_signal = kSignalKill;
    step->reason = absl::StrCat("being killed: its job ", job.id, " does not run any more");
    turn.touch(*step);
  }
}

void step_ended(Turn& turn, Job& step) {
  Job* job = turn.tables.jobs.find(step.spec.step->job);
  const bool alone =
      job == nullptr || !has_hosts(job->state) || job->attempt != step.spec.step->attempt;
  if (step.state == JobState::kKilled && alone && step.reason.empty())
    step.reason = absl::StrCat("ended with its job ", step.spec.step->job);
  if (job == nullptr || job->state != JobState::kHeld || job->reason != kWaitsForSteps ||
      !turn.tables.jobs.steps_of(job->id).empty())
    return;
  turn.tables.jobs.set_state(*job, JobState::kPending);
  job->reason.clear();
  job->eligible_ms = turn.now_ms;
  turn.touch(*job);
}

void limit_steps(Turn& turn, const Job& job) {
  for (const JobId id : turn.tables.jobs.steps_of(job.id)) {
    Job* step = turn.tables.jobs.find(id);
    step->spec.time_limit_s = time_left_s(job, step->submit_ms);
    turn.touch(*step);
  }
}

}  // namespace xce::state
