// Commands: what may change the replicated state, with who asks. PURE.
#ifndef XCE_LIBXCE_MODEL_COMMAND_H_
#define XCE_LIBXCE_MODEL_COMMAND_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "libxce/model/host.h"
#include "libxce/model/job.h"
#include "libxce/model/types.h"

namespace xce {

struct Identity {  // established by the connection, never by the request
  Role role = Role::kNone;
  std::string user;  // of role kUser, and of whom the apiserver acts for
  uint32_t uid = 0, gid = 0;
  std::string name;                 // host name of a worker, name of a daemon
  std::vector<std::string> groups;  // of the user, where a queue's access depends on them
};

struct JobFilter {
  std::vector<JobId> ids;
  uint32_t states = 0;  // bit mask of 1 << JobState; 0: all
  std::string user, queue, host, name;
  JobId array_id = 0, after_id = 0;
  uint32_t limit = 0;
  bool descending = false, full = false;
  int64_t since_ms = 0, until_ms = 0;  // ended within [since, until); 0: no bound
};

// Whether the job is one of those that the filter's criteria describe; ids, pages and order aside.
bool matches(const Job& job, const JobFilter& filter);

struct Join {
  Role role = Role::kNone;
  HostAttrs host;
  uint64_t instance = 0;
  uint32_t lease_ms = 0;  // set by the primary
};
struct JobControl {
  std::vector<JobId> ids;
  JobAction action = JobAction::kKill;
  uint32_t signal = 0;
  bool whole_array = false;
  JobSpec modify;
  uint32_t modify_mask = 0;  // 1 priority, 2 time_limit_s, 4 name, 8 queue
};
struct QueueControl {
  QueueAction action = QueueAction::kCreate;
  Queue queue;
  uint32_t mask = 0;  // of kUpdate: see client.capnp
};
struct HostControl {
  HostAction action = HostAction::kDrain;
  std::string name, reason;
};
struct ReservationControl {
  ReservationAction action = ReservationAction::kCreate;
  Reservation reservation;  // of kRemove: its name
};
struct Dispatch {
  JobId job = 0;
  uint32_t attempt = 0;  // the job's attempt + 1, or the same again
  std::vector<Alloc> allocs;
};
struct Eviction {
  JobId job = 0;
  uint32_t attempt = 0;
  std::string reason;
};
struct Dispatches {
  uint64_t epoch = 0;
  std::vector<Dispatch> items;
  std::vector<Eviction> evictions;  // before the items
};
struct PendReason {
  JobId job = 0;
  std::string reason;
  bool hopeless = false;  // the job is ended for this reason
};
struct PendReasons {
  uint64_t epoch = 0;
  std::vector<PendReason> items;
};
struct Report {  // of a worker: see client.capnp
  uint64_t outbox_seq = 0;
  NotifyKind kind = NotifyKind::kStart;
  JobId job = 0;
  uint32_t attempt = 0;
  int32_t exit_code = 0;
  uint32_t exit_signal = 0;
  JobState outcome = JobState::kCompleted;
  Usage usage;
  std::string message;
  int64_t time_ms = 0;
  std::string stdout_file, stderr_file;
};
struct Notify {
  std::string host;
  uint64_t instance = 0;
  std::vector<Report> items;
};
struct UpdateResvals {
  std::vector<Gres> gres;
};
struct Tick {};
struct HostLost {
  std::string name;
};

using Op =
    std::variant<std::monostate, Join, JobSpec, JobControl, QueueControl, HostControl, Dispatches,
                 PendReasons, Notify, UpdateResvals, Tick, HostLost, ReservationControl>;

struct Command {
  ClientId client;
  uint64_t op_seq = 0;  // 0: not deduplicated (made by the primary, or idempotent by nature)
  uint64_t lowest_unanswered = 0;
  Index birth = 0;
  uint64_t op_hash = 0;  // of what is asked, when its caller chose the op id; else 0
  bool resent = false;
  Identity who;
  Op op;
};

struct Entry {
  int64_t time_ms = 0;
  std::vector<Command> commands;
};

// What a command came to. Replicated, and kept for replays.
struct Result {
  int32_t status = 0;     // 0 or a positive E_XCE_ value of xce/errnox.h
  std::string message;    // for people: what is wrong and what to do
  JobId job = 0;          // of a submission: the (first) job
  uint32_t count = 0;     // of a submission: tasks; of a control: jobs changed
  bool existing = false;  // of a submission: the job was there already (submit key)
  Index revision = 0;     // of a join: the index it was applied at
  uint64_t epoch = 0;     // of a scheduler's join
  bool active = false;
  uint64_t outbox_applied = 0;       // of a worker's join or notify
  std::vector<int32_t> item_status;  // of dispatches
  uint64_t op_hash = 0;              // of the command; sessions.cc sets it
};

}  // namespace xce

#endif  // XCE_LIBXCE_MODEL_COMMAND_H_
