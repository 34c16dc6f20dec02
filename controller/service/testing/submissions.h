// Many jobs as people make them, for measurements.
#ifndef XCE_CONTROLLER_SERVICE_TESTING_SUBMISSIONS_H_
#define XCE_CONTROLLER_SERVICE_TESTING_SUBMISSIONS_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/state/state.h"

namespace xce::service::testing {

// As `xce submit` makes them: an environment of 40 variables, the same for all jobs of a user, a
// key of its own, a script's path and an argument that tells the jobs apart.
inline JobSpec submission(uint64_t n) {
  JobSpec spec;
  spec.user = "user" + std::to_string(n % 100);
  spec.uid = 1000 + static_cast<uint32_t>(n % 100);
  spec.name = "simulation-" + std::to_string(n);
  spec.work_dir = "/home/" + spec.user + "/project/runs";
  char key[64];
  std::snprintf(key, sizeof key, "xce-%032llx", static_cast<unsigned long long>(n));
  spec.submit_key = key;
  auto body = std::make_shared<JobBody>();
  body->args = {"/home/" + spec.user + "/bin/simulate", "--seed=" + std::to_string(n)};
  std::vector<std::string> env = {"HOME=/home/" + spec.user, "PATH=/usr/local/bin:/usr/bin:/bin"};
  for (int i = 0; i < 38; ++i)
    env.push_back("VARIABLE_" + std::to_string(i) + "=/opt/software/of/" + spec.user + "/lib");
  body->env = std::move(env);
  spec.body = body;
  return spec;
}

// Submits `jobs` of them, from number `first` on, 500 an entry, in entries after `index`; the index
// of the last.
inline Index submit_many(state::State* state, Index index, uint64_t jobs, uint64_t first = 0) {
  for (uint64_t n = first; n < first + jobs;) {
    Entry entry;
    entry.time_ms = 1000000;
    for (int i = 0; i < 500 && n < first + jobs; ++i) {
      Command command;
      JobSpec spec = submission(n++);
      command.who.role = Role::kUser;
      command.who.user = spec.user;
      command.who.uid = spec.uid;
      command.op = std::move(spec);
      entry.commands.push_back(std::move(command));
    }
    state->apply(++index, entry);
  }
  return index;
}

// Such a job, which has run and ended.
inline Job ended(JobId id) {
  Job job;
  job.id = id;
  job.spec = submission(id);
  job.spec.queue = "default";
  job.state = JobState::kCompleted;
  job.attempt = job.starts = 1;
  job.allocs = {{"node" + std::to_string(id % 50), 1, 0, {}}};
  job.submit_ms = static_cast<int64_t>(1700000000000 + id);
  job.start_ms = job.submit_ms + 1000;
  job.end_ms = job.start_ms + 60000;
  job.usage = {59000, 120000, 60000};
  job.stdout_file = job.spec.work_dir + "/xce-" + std::to_string(id) + ".out";
  return job;
}

}  // namespace xce::service::testing

#endif  // XCE_CONTROLLER_SERVICE_TESTING_SUBMISSIONS_H_
