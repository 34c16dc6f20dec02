// What all parts of the state machine work on: the tables, and the turn, which is the applying of
// one entry. Internal. PURE.
#ifndef XCE_CONTROLLER_STATE_TABLES_H_
#define XCE_CONTROLLER_STATE_TABLES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "controller/state/hosts.h"
#include "controller/state/intern.h"
#include "controller/state/jobs.h"
#include "controller/state/reservations.h"
#include "controller/state/sessions.h"
#include "controller/state/state.h"
#include "controller/state/submit_keys.h"

namespace xce::state {

// Ended jobs that are kept; those that ended first depart, into the history. Enough for what is
// asked of jobs that have just ended (listing, requeue) and for daemons that were away for a
// moment.
inline constexpr size_t kMaxEndedJobs = 10000;
// At most so many depart with one entry, or an eighth of what is too much: an entry that ends a
// hundred thousand jobs must not cost its followers a pause.
inline constexpr size_t kMaxDepartures = 1000;
inline constexpr size_t kMaxWaitingJobs = 2000000;  // more submissions are refused
inline constexpr uint32_t kMaxLostStarts = 10;      // a job that was lost so often is not requeued

struct Tables {
  std::map<std::string, Queue> queues;
  std::map<std::string, Reservation> reservations;
  JobTable jobs{&queues};
  HostTable hosts;
  Sessions sessions;
  SubmitKeys keys;
  Interner interner;
  State::Scheduler scheduler;
  IdSet requeue_wanted;  // jobs being killed that shall then wait again
  int64_t now_ms = 0;
  Index applied = 0;
};

struct State::Impl {
  Tables tables;
};

// One entry being applied. Operations change the tables and touch what they changed; the events are
// made of the touched at the end, so that a thing that changed twice is told once.
struct Turn {
  Tables& tables;
  Index index;
  int64_t now_ms;

  std::set<JobId> jobs, jobs_removed;
  std::set<std::string> hosts, hosts_removed, queues, queues_removed;
  std::set<std::string> reservations, reservations_removed;
  std::map<std::string, uint64_t> outboxes;
  bool scheduler_changed = false;

  void touch(Job& job) {
    job.modify_index = index;
    jobs.insert(job.id);
  }
  void touch(Host& host) {
    host.modify_index = index;
    hosts.insert(host.attrs.name);
  }
  void touch(Queue& queue) {
    queue.modify_index = index;
    queues.insert(queue.name);
  }
  void touch(Reservation& reservation) {
    reservation.modify_index = index;
    reservations.insert(reservation.name);
  }
};

// A result that refuses. message: what is wrong, and what to do.
Result refuse(int status, std::string message);

// Whether who may do an administrator's work (root, the primary itself, the apiserver, the
// scheduler).
bool is_privileged(const Identity& who);
// "alice", "root", "the scheduler": for messages.
std::string words_for(const Identity& who);

// The reason of a job that is to run again and is held until the steps of its last attempt, if any
// are left, have ended: two attempts of a job never run at once.
inline constexpr char kWaitsForSteps[] =
    "waits until what its last attempt started in it (xce run --job) has ended";

// Moves used by several operations; each keeps tables consistent and touches what changes.
void place(Turn& turn, Job& job, std::vector<Alloc> allocs);  // waiting -> STARTING
void release_hosts(Turn& turn, Job& job);  // gives back what it holds; the record stays
void end_job(Turn& turn, Job& job, JobState outcome, int64_t end_ms, std::string reason);
void wait_again(Turn& turn, Job& job,
                std::string reason);  // ended -> PENDING, a new attempt to come
// The job's attempt is no more, and nobody knows what became of it: LOST, or PENDING for jobs that
// are requeued (they asked for it, or a person has), or KILLED when that was wanted.
void lose_job(Turn& turn, Job& job, int64_t end_ms, const std::string& reason);
// A job that was dispatched and not started waits again, as if it had never been dispatched.
void give_back(Turn& turn, Job& job, std::string reason);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_TABLES_H_
