// The life of the jobs of one host, as a pure state machine: (jobs known here, event) -> actions.
//
// Two sides meet here. The controller says what it wants, level triggered: "job 17, attempt 2, is
// yours and should run". The shepherds say what happens: started, suspended, ended. The machine
// compares and says what to do: launch, signal, report, clean up. It keeps three promises: an
// attempt is started once at most, every end is reported, and what the controller no longer counts
// as ours is killed.
//
// PURE: no clock, no I/O; times come in with events, reports go out as actions without a sequence
// number (the outbox gives them one). Not thread safe: the supervisor's loop owns it.
#ifndef XCE_WORKER_LIFECYCLE_LIFECYCLE_H_
#define XCE_WORKER_LIFECYCLE_LIFECYCLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "libxce/model/command.h"
#include "libxce/model/job.h"
#include "libxce/model/types.h"

namespace xce::worker {

// One dispatch of one job. Two attempts of a job are two lives: the older is killed, the newer
// runs.
struct Key {
  JobId job = 0;
  uint32_t attempt = 0;
  friend bool operator<(const Key& a, const Key& b) {
    return a.job != b.job ? a.job < b.job : a.attempt < b.attempt;
  }
  friend bool operator==(const Key& a, const Key& b) {
    return a.job == b.job && a.attempt == b.attempt;
  }
};

enum class Phase : uint8_t {
  kLaunching,  // its shepherd was asked for and has not reported yet
  kRunning,
  kSuspended,
  kEnded,  // its last report is made and waits for the controller's confirmation
};

// ---- events ----

struct Observed {  // the controller's record of a job, from a push, a listing or a question
  Job job;
};
struct Disowned {  // after a join: the controller does not count this attempt as running here
  Key key;
  std::string why;
};
struct Found {  // at start: what lies on this host's disk of a job launched before
  Key key;
  Phase phase = Phase::kLaunching;
  bool start_reported = false, suspend_reported = false;
  std::string stdout_file, stderr_file;
  Key part_of{};
};
struct Started {
  Key key;
  int64_t time_ms = 0;
  std::string stdout_file, stderr_file;
};
struct Suspended {
  Key key;
  int64_t time_ms = 0;
};
struct Resumed {
  Key key;
  int64_t time_ms = 0;
};
struct Exited {  // the shepherd's last word
  Key key;
  int64_t time_ms = 0;
  JobState outcome = JobState::kCompleted;
  int32_t exit_code = 0;
  uint32_t exit_signal = 0;
  Usage usage;
  std::string message;
};
struct Vanished {  // the shepherd is dead and left no last word, or never came to be
  Key key;
  int64_t time_ms = 0;
  JobState outcome = JobState::kLost;
  std::string message;
};
struct GivenBack {  // this host cannot start it, through no fault of the job's
  Key key;
  int64_t time_ms = 0;
  std::string message;
};
struct NotLaunched {  // its launch was put off and is dropped: it is launched when observed again
  Key key;
};
struct ControllersReset {};  // they lost their past: what was remembered of ended jobs is void
struct FinalConfirmed {      // the controller has applied the last report of this attempt
  Key key;
};

using Event = std::variant<Observed, Disowned, Found, Started, Suspended, Resumed, Exited, Vanished,
                           GivenBack, NotLaunched, FinalConfirmed, ControllersReset>;

// ---- actions ----

struct Launch {  // make the job's directory, remember the attempt durably, then start its shepherd
  Key key;
  Job job;
};
struct Send {  // put into the outbox
  Report report;
};
enum class Control : uint8_t { kKill, kSuspend, kResume, kLimit };
struct Order {  // to the job's shepherd
  Key key;
  Control control = Control::kKill;
  uint32_t signal = 0;        // of kKill; 0: TERM, then KILL
  uint32_t time_limit_s = 0;  // of kLimit; 0: none
};
struct Remove {  // the job's directory is of no more use
  Key key;
};
struct Note {  // for the log
  bool warning = false;
  std::string text;
};
using Action = std::variant<Launch, Send, Order, Remove, Note>;

// ---- the machine ----

struct LocalJob {
  Phase phase = Phase::kLaunching;
  Key part_of{};  // of a step: its job, with which it ends; else job 0
  bool start_reported = false;
  bool orphan = false;             // to be killed whatever the controller says later
  Desired wanted = Desired::kRun;  // by the controller, newest word
  uint32_t wanted_signal = 0;
  Desired ordered = Desired::kRun;  // what the shepherd was last told
  uint32_t ordered_signal = 0;
  uint32_t wanted_limit_s = 0;
  std::optional<uint32_t> ordered_limit_s;  // nullopt: what its shepherd has is not known here
  Index modify_index = 0;                   // of the controller's newest record seen
  std::string stdout_file, stderr_file;
};

class Lifecycle {
 public:
  explicit Lifecycle(std::string host) : host_(std::move(host)) {}

  // Takes in what happened at `now_ms` (wall clock, for reports) and says what to do, in order.
  std::vector<Action> step(const Event& event, int64_t now_ms);

  const std::map<Key, LocalJob>& jobs() const { return jobs_; }
  const LocalJob* find(Key key) const;

 private:
  using Actions = std::vector<Action>;
  void on(const Observed& event, int64_t now_ms, Actions* out);
  void on(const Disowned& event, int64_t now_ms, Actions* out);
  void on(const Found& event, int64_t now_ms, Actions* out);
  void on(const Started& event, int64_t now_ms, Actions* out);
  void on(const Suspended& event, int64_t now_ms, Actions* out);
  void on(const Resumed& event, int64_t now_ms, Actions* out);
  void on(const Exited& event, int64_t now_ms, Actions* out);
  void on(const Vanished& event, int64_t now_ms, Actions* out);
  void on(const GivenBack& event, int64_t now_ms, Actions* out);
  void on(const NotLaunched& event, int64_t now_ms, Actions* out);
  void on(const FinalConfirmed& event, int64_t now_ms, Actions* out);
  void on(const ControllersReset& event, int64_t now_ms, Actions* out);

  void observe_unknown(const Job& job, int64_t now_ms, Actions* out);
  void observe_known(Key key, LocalJob* local, const Job& job, Actions* out);
  void disown_older(const Job& job, Actions* out);
  void orphan(Key key, LocalJob* local, const std::string& why, Actions* out);
  void end_steps(Key job, Actions* out);
  bool has_ended(Key key) const;
  void align(Key key, LocalJob* local,
             Actions* out);  // orders what brings the shepherd to what is wanted
  void align_limit(Key key, LocalJob* local, Actions* out);
  void report_start(Key key, LocalJob* local, int64_t time_ms, Actions* out);
  void end(Key key, LocalJob* local, Report report, Actions* out);
  void forget(Key key);
  uint32_t newest_seen(JobId job) const;

  std::string host_;
  std::map<Key, LocalJob> jobs_;
  // Newest attempts of jobs already forgotten: a listing read before their end was confirmed must
  // not start them again.
  std::map<JobId, uint32_t> tombstones_;
  std::deque<JobId> tombstone_order_;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_LIFECYCLE_LIFECYCLE_H_
