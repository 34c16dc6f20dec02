// Taking up the jobs that a worker before this one launched: part of supervisor.h.
//
// Three sources tell what was: the outbox (what was launched, what was reported), the directories
// (what the shepherds wrote) and the locks on the status files (which shepherds live). Every
// launched attempt ends in exactly one of: watched again, reported by its last word, reported as
// lost.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "worker/agent/clock.h"
#include "worker/agent/supervisor.h"
#include "worker/shepherd/process_tree.h"

namespace xce::worker {

void Supervisor::adopt_jobs() {
  const std::map<Key, Outbox::LaunchState> launches = outbox_->launches();
  std::set<Key> handled;
  for (const Report& report : outbox_->unconfirmed_finals()) {
    Found found;
    found.key = Key{report.job, report.attempt};
    found.phase = Phase::kEnded;
    found.stdout_file = report.stdout_file;
    found.stderr_file = report.stderr_file;
    handled.insert(found.key);
    step(found);
  }
  for (Key key : store_.scan()) {
    if (handled.insert(key).second) adopt(key, launches);
  }
  for (const auto& [key, state] : launches) {
    if (!handled.insert(key).second) continue;
    step(Found{key, Phase::kLaunching, state.start_reported, state.suspend_reported, "", ""});
    step(Vanished{key, wall_ms(), JobState::kLost,
                  absl::StrCat("its directory on host ", options_.host, " is gone")});
  }
}

// One directory.
void Supervisor::adopt(Key key, const std::map<Key, Outbox::LaunchState>& launches) {
  auto launch = launches.find(key);
  const bool known = launch != launches.end();
  Found found{key};
  found.part_of = store_.part_of(key);
  if (known) {
    found.start_reported = launch->second.start_reported;
    found.suspend_reported = launch->second.suspend_reported;
  }
  if (!store_.launched(key)) {
    if (!known) {  // prepared, but its launch was never written down: the controller will ask for
                   // it again
      store_.remove(key);
      return;
    }
    step(found);
    if (launch->second.boot_id == boot_id_) {
      tracks_[key] = Track{};
      to_ask_.push_back(key);
    } else {
      step(Vanished{key, wall_ms(), JobState::kLost,
                    absl::StrCat("host ", options_.host, " was restarted while it ran")});
    }
    return;
  }
  const bool alive = store_.alive(key);  // before reading: see look_at_all
  const Status status = store_.read_status(key);
  if (!known && status.exit) {  // reported and confirmed; only the removal was missed
    store_.remove(key);
    return;
  }
  Track track;
  if (status.started) {
    const bool suspended = !status.changes.empty() && status.changes.back().suspended;
    found.phase = suspended ? Phase::kSuspended : Phase::kRunning;
    found.stdout_file = status.started->stdout_file;
    found.stderr_file = status.started->stderr_file;
    track.started = true;
    track.changes = status.changes.size();
  }
  tracks_[key] = track;
  step(found);
  if (!alive) {
    look_at(key, true);
    return;
  }
  spdlog::info("job {} (attempt {}) goes on: its shepherd lives", key.job, key.attempt);
  if (status.started && status.started->boot_id == boot_id_ &&
      start_ticks(status.started->shepherd_pid) == status.started->shepherd_start_ticks) {
    watch(key, status.started->shepherd_pid);
  }  // otherwise the look at all jobs watches it by its lock
}

}  // namespace xce::worker
