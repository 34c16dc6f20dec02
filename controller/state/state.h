// The replicated state machine: what the cluster knows, and how each log entry changes it. PURE:
// values in, values out; no clock (time comes with the entries), no randomness, no I/O, sorted
// containers only. Every controller applies the same entries in the same order and so holds the
// same state; that is what makes a standby a primary in no time.
//
// Split by noun; start at state.cc, which hands each command to one of:
//   sessions  exactly once: which writes were applied already, and what came of them
//   submit    a submission becomes jobs: validation, arrays, submit keys
//   control   people's wishes about jobs: kill, suspend, resume, hold, release, requeue, modify
//   scheduler who schedules, its dispatches and pending reasons
//   reports   what workers say became of jobs
//   hosts, queues   joining, draining, capacity; queue definitions
//   reservations    hosts kept for some users and queues for a time
//   jobs      the job table with its indexes; listing.cc answers queries from them
//   check     invariants and the fingerprint that replicas are compared by
//   snapshot  the whole state as a row of parts, out and in
//
// Thread: none of its own. One thread applies; queries belong on that thread or between two
// applies. Pointers that queries return stay valid until the next apply.
//
// Who may do what rests on Command.who, which the service fills from the connection:
//   controller  Tick and HostLost (the primary makes them with that role); everything below too
//   worker      Join, Notify and UpdateResvals of the host named who.name. Join and Notify, even
//               an empty Notify, bring a lost host up again: propose one on a hello of such a host
//   scheduler   Join, Dispatches, PendReasons; control of any job, queue and host
//   apiserver   control of any job, queue and host; submits for spec.user (else for who.user)
//   user        submits as who.user, controls its own jobs (same user name); the user "root" with
//               uid 0 controls everything, and submits for spec.user too
#ifndef XCE_CONTROLLER_STATE_STATE_H_
#define XCE_CONTROLLER_STATE_STATE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libxce/model/command.h"
#include "libxce/model/event.h"

namespace xce::state {

class StateSink;

// What an entry came to. Events carry the state after the whole entry, one per changed thing,
// removals first.
struct Applied {
  std::vector<Result> results;  // one a command, in order
  std::vector<Event> events;
  // Ended jobs that are no longer part of the state, as they were: history now, for the caller to
  // keep. The same entry always gives the same ones.
  std::vector<Job> departed;
};

class State {
 public:
  // Empty but for the queue "default".
  State();
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Applies one entry of the log. Indexes rise; an index that was applied before is a bug of the
  // caller and aborts. Entries without commands are welcome: they advance applied() and now_ms().
  Applied apply(Index index, const Entry& entry);

  // The job, or null: never existed, or it has departed.
  const Job* job(JobId id) const;
  // Ids below this one have been given to jobs.
  JobId next_job() const;

  struct JobPage {
    std::vector<const Job*> jobs;
    JobId next_after_id = 0;  // ask again with this after_id; 0: last page. A page may be short,
                              // even empty, and yet not the last.
    uint64_t total = 0;  // matching jobs on all pages. Exact for at most one criterion (states,
                         // user, queue, host, array) and for ids; with more than one a lower bound,
                         // counted among the first 5,000 candidates.
  };
  // Jobs by rising id (descending: by falling id) after filter.after_id, at most min(filter.limit,
  // max_rows); limit 0: max_rows. Visits at most 20,000 jobs a call. Answers from the smallest
  // index that fits: states, user, queue, host, array or ids. host matches the jobs that hold an
  // allocation there, and ended ones that ran there.
  JobPage jobs(const JobFilter& filter, size_t max_rows) const;

  const std::map<std::string, Host>& hosts() const;
  const std::map<std::string, Queue>& queues() const;
  const std::map<std::string, Reservation>& reservations() const;
  std::vector<User> users() const;  // by name

  struct Stats {
    uint64_t pending = 0;   // waiting, held ones included
    uint64_t running = 0;   // holding an allocation: starting, running, suspended
    uint64_t finished = 0;  // ends since the cluster began, also of those that departed
    uint64_t sessions = 0;
  };
  Stats stats() const;

  struct Scheduler {  // the active one; epoch 0: there never was one
    uint64_t epoch = 0;
    ClientId client;
    std::string name;
  };
  const Scheduler& scheduler() const;

  int64_t now_ms() const;  // time of the newest entry, never going back
  Index applied() const;   // index of the newest entry

  // Reports up to here are applied of that host, also when it was removed since; 0 for an unknown
  // host. For hello's reply.
  uint64_t outbox_applied(const std::string& host) const;

  // What is wrong, in words; empty when all is well. Reads everything: for tests and --check.
  std::vector<std::string> check_invariants() const;
  // Equal on two replicas exactly if their states are equal. Reads everything.
  std::string fingerprint() const;

  // Hands every part of the state to the sink; see snapshot.h. Reads everything.
  void save(StateSink& sink) const;
  // Exchanges the two states' contents.
  void swap(State& other);

 private:
  friend class StateBuilder;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_STATE_H_
