// Processes of jobs that nobody watches any more: part of supervisor.h.
//
// A job's processes are found by the mark in their environment, whatever else was lost: the data
// directory, or the shepherd.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <set>

#include "worker/agent/clock.h"
#include "worker/agent/supervisor.h"
#include "worker/shepherd/process_tree.h"

namespace xce::worker {
namespace {

constexpr int64_t kOrderlyMs = 7000;  // more than a shepherd takes from TERM to KILL
constexpr int64_t kKillMs = 2000;
constexpr useconds_t kPauseUs = 10000;

}  // namespace

// At start, before anything is launched or told: ends the jobs of this data directory that it knows
// nothing of (it was removed while they ran). They were given up, or will be: two of one job must
// not run.
void Supervisor::end_orphans() {
  std::set<std::string> told;
  std::set<pid_t> asked;
  const int64_t begin_ms = monotonic_ms();
  for (;;) {
    const int64_t passed_ms = monotonic_ms() - begin_ms;
    bool any = false;
    for (const MarkedProcess& process : marked_processes(options_.data_dir)) {
      Key key;
      if (parse_dir_name(process.job_dir_name, &key.job, &key.attempt)) {
        absl::MutexLock lock(&lifecycle_mutex_);
        const LocalJob* job = lifecycle_.find(key);
        if (job != nullptr && job->phase != Phase::kEnded) continue;
      }
      any = true;
      if (told.insert(process.job_dir_name).second)
        spdlog::warn(
            "orphan: job {} runs here (process {}), but this worker's data directory knows nothing "
            "of it; it is ended",
            process.job_dir_name, process.pid);
      const pid_t shepherd = shepherd_above(process.pid, options_.data_dir);
      if (shepherd == 0 || passed_ms > kOrderlyMs) {
        kill(process.pid, SIGKILL);
      } else if (asked.insert(shepherd).second) {
        kill(shepherd, SIGTERM);  // it takes the whole job along
      }
    }
    if (!any) break;
    if (passed_ms > kOrderlyMs + kKillMs) {
      spdlog::error("some orphans could not be ended; see ps");
      break;
    }
    usleep(kPauseUs);
  }
}

// A job whose shepherd is dead goes too, also those of its processes that left its session.
void Supervisor::kill_marked(Key key) {
  const std::string name = dir_name(key.job, key.attempt);
  const int64_t end_ms = monotonic_ms() + kKillMs;
  for (bool any = true; any && monotonic_ms() < end_ms;) {
    any = false;
    for (const MarkedProcess& process : marked_processes(options_.data_dir)) {
      if (process.job_dir_name != name) continue;
      any = true;
      kill(process.pid, SIGKILL);
    }
    if (any) usleep(1000);
  }
}

}  // namespace xce::worker
