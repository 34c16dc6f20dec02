#include "controller/state/queues.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "xce/errnox.h"

namespace xce::state {
namespace {

// The fields of a queue, as the bits of QueueControl::mask.
enum : uint32_t {
  kPriority = 1,
  kDefaultTime = 2,
  kMaxTime = 4,
  kMaxRunning = 8,
  kMaxRunningPerUser = 16,
  kDefault = 32,
  kAllowedUsers = 64,
  kAllowedGroups = 128,
  kMaxPendingPerUser = 256,
  kMaxCpusPerUser = 512,
  kPreemptible = 1024,
  kFirstFields = 63,  // that older clients know: what they do not know they leave alone
  kAllFields = 2047,
};

Result check_names(const std::vector<std::string>& names) {
  if (names.size() > kMaxAllowedNames) {
    return refuse(E_XCE_INVALID,
                  absl::StrCat("a queue names at most ", kMaxAllowedNames,
                               " users and as many groups: name a group of them instead"));
  }
  for (const std::string& name : names) {
    if (name.empty() || name.size() > 256)
      return refuse(E_XCE_INVALID, "a user or group of a queue has a name of 1 to 256 bytes");
  }
  return {};
}

// What the queue would be like after the change.
Result check(const Queue& queue) {
  if (queue.max_time_s && queue.default_time_s > queue.max_time_s) {
    return refuse(E_XCE_INVALID, absl::StrCat("the default time of ", queue.default_time_s,
                                              " s is above the maximum of ", queue.max_time_s,
                                              " s: lower the one or raise the other"));
  }
  if (Result r = check_names(queue.allowed_users); r.status) return r;
  return check_names(queue.allowed_groups);
}

// The queue with what the mask names of `given`; is_default is settled by make_default.
Queue merged(const Queue& queue, const Queue& given, uint32_t mask) {
  Queue to = queue;
  if (mask & kPriority) to.priority = given.priority;
  if (mask & kDefaultTime) to.default_time_s = given.default_time_s;
  if (mask & kMaxTime) to.max_time_s = given.max_time_s;
  if (mask & kMaxRunning) to.max_running = given.max_running;
  if (mask & kMaxRunningPerUser) to.max_running_per_user = given.max_running_per_user;
  if (mask & kAllowedUsers) to.allowed_users = given.allowed_users;
  if (mask & kAllowedGroups) to.allowed_groups = given.allowed_groups;
  if (mask & kMaxPendingPerUser) to.max_pending_per_user = given.max_pending_per_user;
  if (mask & kMaxCpusPerUser) to.max_cpus_per_user = given.max_cpus_per_user;
  if (mask & kPreemptible) to.preemptible = given.preemptible;
  return to;
}

void make_default(Turn& turn, Queue& queue) {
  if (queue.is_default) return;
  for (auto& [name, other] : turn.tables.queues) {
    if (!other.is_default) continue;
    other.is_default = false;
    turn.touch(other);
  }
  queue.is_default = true;
}

Result update(Turn& turn, Queue& queue, const Queue& given, uint32_t mask) {
  if (mask & ~kAllFields)
    return refuse(E_XCE_INVALID,
                  "the change names a field of queues that this version does not know: upgrade the "
                  "controllers first");
  if (mask == 0) mask = kFirstFields;
  Queue to = merged(queue, given, mask);
  if (Result r = check(to); r.status) return r;
  queue = std::move(to);
  if ((mask & kDefault) && given.is_default) make_default(turn, queue);
  turn.touch(queue);
  return {};
}

Result create(Turn& turn, const Queue& given) {
  if (!is_good_name(given.name)) {
    return refuse(E_XCE_INVALID,
                  "a queue's name has 1 to 64 letters, digits, '-', '_' or '.': choose another");
  }
  if (turn.tables.queues.count(given.name)) {
    return refuse(
        E_XCE_INVALID,
        absl::StrCat("queue '", given.name, "' exists already: update it, or choose another name"));
  }
  if (turn.tables.queues.size() >= kMaxQueues) {
    return refuse(E_XCE_BUSY,
                  absl::StrCat("there are ", kMaxQueues, " queues already: remove one first"));
  }
  Queue queue;
  queue.name = given.name;
  if (Result r = check(merged(queue, given, kAllFields)); r.status) return r;
  return update(turn, turn.tables.queues[given.name] = queue, given, kAllFields);
}

Result remove(Turn& turn, const Queue& queue) {
  if (queue.is_default) {
    return refuse(E_XCE_INVALID, absl::StrCat("queue '", queue.name,
                                              "' is the default: make another the default first"));
  }
  if (queue.pending || queue.running) {
    return refuse(
        E_XCE_BUSY,
        absl::StrCat(
            "queue '", queue.name, "' has ", queue.pending, " pending and ", queue.running,
            " running jobs: close it, wait for them or move or kill them, then remove it"));
  }
  turn.queues_removed.insert(queue.name);
  turn.tables.queues.erase(std::string(queue.name));
  return {};
}

}  // namespace

bool is_good_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Queue first_queue() {
  Queue queue;
  queue.name = "default";
  queue.is_default = true;
  return queue;
}

Result check_access(const Queue& queue, const Identity& who, const std::string& user) {
  if (queue.allowed_users.empty() && queue.allowed_groups.empty()) return {};
  // The apiserver speaks for the user that it names.
  const bool administrator = is_privileged(who) && who.role != Role::kApiserver;
  if (administrator || is_one_of(queue.allowed_users, user)) return {};
  for (const std::string& group : who.groups)
    if (is_one_of(queue.allowed_groups, group)) return {};
  return refuse(E_XCE_PERM, absl::StrCat("user ", user, " may not use queue '", queue.name,
                                         "': use another queue, or ask an administrator"));
}

Result check_pending(const Tables& tables, const Queue& queue, const std::string& user,
                     size_t more) {
  const uint32_t most = queue.max_pending_per_user;
  const uint32_t waiting = tables.jobs.waiting(queue.name, user);
  if (most == 0 || waiting + more <= most) return {};
  return refuse(E_XCE_BUSY,
                absl::StrCat("user ", user, " has ", waiting, " waiting jobs in queue '",
                             queue.name, "', which takes at most ", most, " of a user: wait until ",
                             "some have started, or use another queue"));
}

Result control_queue(Turn& turn, const Command& command, const QueueControl& control) {
  if (!is_privileged(command.who))
    return refuse(E_XCE_PERM, "only an administrator may change queues: ask root");
  if (control.action == QueueAction::kCreate) return create(turn, control.queue);
  const auto it = turn.tables.queues.find(control.queue.name);
  if (it == turn.tables.queues.end()) {
    return refuse(E_XCE_NOENT, absl::StrCat("there is no queue '", control.queue.name,
                                            "': list the queues, or create it"));
  }
  Queue& queue = it->second;
  switch (control.action) {
    case QueueAction::kUpdate: return update(turn, queue, control.queue, control.mask);
    case QueueAction::kRemove: return remove(turn, queue);
    case QueueAction::kOpen:
    case QueueAction::kClose: queue.open = control.action == QueueAction::kOpen; break;
    case QueueAction::kStart:
    case QueueAction::kStop: queue.active = control.action == QueueAction::kStart; break;
    default:
      return refuse(
          E_XCE_INVALID,
          "no such action on a queue: create, update, remove, open, close, start or stop it");
  }
  turn.touch(queue);
  return {};
}

}  // namespace xce::state
