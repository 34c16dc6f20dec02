#include "controller/state/check.h"

#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace xce::state {
namespace {

class Faults {
 public:
  template <typename... Words>
  void unless(bool good, const Words&... words) {
    if (!good && found_.size() < kMaxFaults) found_.push_back(absl::StrCat(words...));
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

// What the job table should say if it were made anew from the jobs.
struct Recount {
  uint64_t waiting = 0, holding = 0, ended = 0;
  std::map<std::string, Queue> queues;
  std::map<std::string, User> users;
  std::map<std::string, Host> hosts;
  std::array<size_t, kJobStates> states{};
};

template <typename Counted>
void tally(Counted& counted, JobState state) {
  counted.pending += is_waiting(state);
  counted.running += has_hosts(state);
}

void check_job(const Tables& tables, const Job& job, Faults& faults) {
  const bool holds = has_hosts(job.state);
  faults.unless(job.id != 0 && job.id < tables.jobs.next_id(), "job ", job.id,
                " has an id that was never given");
  faults.unless(job.modify_index <= tables.applied, "job ", job.id, " was changed in the future");
  faults.unless(job.spec.body != nullptr, "job ", job.id, " has no body");
  faults.unless(!holds || !job.allocs.empty(), "job ", job.id, " is ", name_of(job.state),
                " without hosts");
  faults.unless(!is_waiting(job.state) || job.allocs.empty(), "job ", job.id,
                " waits and yet holds hosts");
  faults.unless(job.starts <= job.attempt, "job ", job.id,
                " started more often than it was dispatched");
  faults.unless(is_ended(job.state) == (job.end_ms != 0), "job ", job.id, " is ",
                name_of(job.state), " with end time ", job.end_ms);
  faults.unless(!job.end_ms || tables.jobs.ended().count({job.modify_index, job.id}), "job ",
                job.id, " is not among the ended");
  faults.unless(tables.jobs.of_state(job.state).count(job.id), "job ", job.id,
                " is missing in the index of its state");
  faults.unless(tables.jobs.of_queue(job.spec.queue).count(job.id), "job ", job.id,
                " is missing in the index of its queue");
  faults.unless(tables.jobs.of_user(job.spec.user).count(job.id), "job ", job.id,
                " is missing in the index of its user");
  faults.unless(is_ended(job.state) || tables.queues.count(job.spec.queue), "job ", job.id,
                " is alive in no queue");
  if (job.spec.step) {
    faults.unless(!is_waiting(job.state), "job ", job.id, " is a step and waits");
    faults.unless(holds == (tables.jobs.steps_of(job.spec.step->job).count(job.id) != 0), "job ",
                  job.id, " is a step and not rightly among those of job ", job.spec.step->job);
  }
  for (const Alloc& alloc : job.allocs) {
    faults.unless(tables.jobs.of_host(alloc.host).count(job.id), "job ", job.id,
                  " is missing in the index of host ", alloc.host);
    faults.unless(!holds || tables.hosts.find(alloc.host), "job ", job.id, " holds host ",
                  alloc.host, ", which is gone");
  }
}

Recount recount(const Tables& tables, Faults& faults) {
  Recount sum;
  for (const auto& [id, job] : tables.jobs.all()) {
    faults.unless(id == job.id, "job ", job.id, " is kept under ", id);
    check_job(tables, job, faults);
    sum.waiting += is_waiting(job.state);
    sum.holding += has_hosts(job.state);
    sum.ended += is_ended(job.state);
    ++sum.states[static_cast<size_t>(job.state)];
    tally(sum.queues[job.spec.queue], job.state);
    tally(sum.users[job.spec.user], job.state);
    if (!has_hosts(job.state) || job.spec.step) continue;
    for (const Alloc& alloc : job.allocs) {
      Host& host = sum.hosts[alloc.host];
      host.used_cpus += alloc.cpus;
      host.used_memory_mb += alloc.memory_mb;
      ++host.running_jobs;
      for (const Gres& gres : alloc.gres) host.used_gres.push_back(gres);
    }
  }
  return sum;
}

void check_counters(const Tables& tables, Recount& sum, Faults& faults) {
  const JobTable& jobs = tables.jobs;
  faults.unless(sum.waiting == jobs.waiting(), "counted ", sum.waiting, " waiting jobs, not ",
                jobs.waiting());
  faults.unless(sum.holding == jobs.holding(), "counted ", sum.holding, " running jobs, not ",
                jobs.holding());
  faults.unless(sum.ended == jobs.ended().size(), "counted ", sum.ended, " ended jobs, not ",
                jobs.ended().size());
  faults.unless(sum.ended <= jobs.finished(), "more ended jobs than ever ended");
  for (int state = 0; state < kJobStates; ++state) {
    const size_t indexed = jobs.of_state(static_cast<JobState>(state)).size();
    faults.unless(indexed == sum.states[state], "index of state ",
                  name_of(static_cast<JobState>(state)), " has ", indexed, " jobs, not ",
                  sum.states[state]);
  }
  int defaults = 0;
  for (const auto& [name, queue] : tables.queues) {
    const Queue& counted = sum.queues[name];
    faults.unless(queue.name == name, "queue ", queue.name, " is kept under ", name);
    faults.unless(queue.pending == counted.pending && queue.running == counted.running, "queue ",
                  name, " counts ", queue.pending, "+", queue.running, " jobs, not ",
                  counted.pending, "+", counted.running);
    defaults += queue.is_default;
  }
  faults.unless(defaults == 1, "there are ", defaults, " default queues");
  for (const auto& [name, record] : jobs.users()) {
    const User& counted = sum.users[name];
    faults.unless(record.user.pending == counted.pending && record.user.running == counted.running,
                  "user ", name, " counts ", record.user.pending, "+", record.user.running,
                  " jobs, not ", counted.pending, "+", counted.running);
  }
}

void check_host(const Tables& tables, const Host& host, const Host& counted, Faults& faults) {
  const std::string& name = host.attrs.name;
  faults.unless(host.used_cpus == counted.used_cpus &&
                    host.used_memory_mb == counted.used_memory_mb &&
                    host.running_jobs == counted.running_jobs,
                "host ", name, " counts ", host.used_cpus, " CPUs of ", host.running_jobs,
                " jobs in use, not ", counted.used_cpus, " of ", counted.running_jobs);
  std::map<std::string, uint64_t> gres;
  std::map<std::string, std::set<uint32_t>> indices;
  for (const Gres& item : counted.used_gres) {
    gres[item.name] += item.count;
    faults.unless(item.indices.empty() || item.indices.size() == item.count, "host ", name,
                  " tells a job ", item.indices.size(), " of ", item.count, " ", item.name);
    for (const uint32_t index : item.indices)
      faults.unless(indices[item.name].insert(index).second, "host ", name, " gives away ",
                    item.name, " ", index, " twice");
  }
  faults.unless(gres.size() == host.used_gres.size(), "host ", name,
                " counts other generic resources than its jobs hold");
  for (const auto& [what, count] : gres) {
    faults.unless(count == count_of(host.used_gres, what), "host ", name, " miscounts ", what);
    faults.unless(tables.hosts.has_shrunk(name) || count <= count_of(host.attrs.gres, what),
                  "host ", name, " gives away ", count, " ", what, " and has ",
                  count_of(host.attrs.gres, what));
  }
  faults.unless(tables.hosts.has_shrunk(name) || (host.used_cpus <= host.attrs.cpus &&
                                                  host.used_memory_mb <= host.attrs.memory_mb),
                "host ", name, " gives away ", host.used_cpus, " CPUs and ", host.used_memory_mb,
                " MB and has ", host.attrs.cpus, " and ", host.attrs.memory_mb);
  const JobId holder = tables.hosts.exclusive_holder(name);
  faults.unless(!holder || host.running_jobs == 1, "host ", name, " is exclusively held by job ",
                holder, " among ", host.running_jobs);
}

void check_sessions(const Sessions& sessions, Faults& faults) {
  faults.unless(sessions.size() <= kMaxSessions, "too many sessions: ", sessions.size());
  faults.unless(sessions.size() == sessions.by_use().size(),
                "sessions and their order of use differ");
  for (const auto& [client, session] : sessions.all()) {
    faults.unless(session.results.size() <= kWindow, "a session keeps ", session.results.size(),
                  " results");
    faults.unless(sessions.by_use().count({session.used_ms, client}),
                  "a session is missing in the order of use");
    faults.unless(session.results.empty() || session.results.begin()->first >= session.lowest,
                  "a session keeps answered results");
  }
}

}  // namespace

std::vector<std::string> find_faults(const Tables& tables) {
  Faults faults;
  Recount sum = recount(tables, faults);
  check_counters(tables, sum, faults);
  for (const auto& [name, host] : tables.hosts.all())
    check_host(tables, host, sum.hosts[name], faults);
  check_sessions(tables.sessions, faults);
  for (const JobId id : tables.requeue_wanted) {
    const Job* job = tables.jobs.find(id);
    faults.unless(job && has_hosts(job->state), "job ", id, " is to be requeued and does not run");
  }
  for (const auto& [id, job] : tables.jobs.all()) {
    if (job.spec.submit_key.empty()) continue;
    const SubmitKeys::Made* made = tables.keys.find(job.spec.user, job.spec.submit_key);
    faults.unless(made && made->kept && made->job <= id && id < made->job + made->count, "job ", id,
                  " is not known by its key");
  }
  return faults.take();
}

}  // namespace xce::state
