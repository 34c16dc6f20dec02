#include "controller/state/queues.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "xce/errnox.h"

namespace xce::state {
namespace {

bool is_good_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

Result check_times(const Queue& queue) {
  if (queue.max_time_s && queue.default_time_s > queue.max_time_s) {
    return refuse(E_XCE_INVALID, absl::StrCat("the default time of ", queue.default_time_s,
                                              " s is above the maximum of ", queue.max_time_s,
                                              " s: lower the one or raise the other"));
  }
  return {};
}

void set_attributes(Turn& turn, Queue& queue, const Queue& given) {
  queue.priority = given.priority;
  queue.default_time_s = given.default_time_s;
  queue.max_time_s = given.max_time_s;
  queue.max_running = given.max_running;
  queue.max_running_per_user = given.max_running_per_user;
  if (given.is_default && !queue.is_default) {
    for (auto& [name, other] : turn.tables.queues) {
      if (!other.is_default) continue;
      other.is_default = false;
      turn.touch(other);
    }
    queue.is_default = true;
  }
  turn.touch(queue);
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
  if (Result r = check_times(given); r.status) return r;
  Queue& queue = turn.tables.queues[given.name];
  queue.name = given.name;
  set_attributes(turn, queue, given);
  return {};
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

Queue first_queue() {
  Queue queue;
  queue.name = "default";
  queue.is_default = true;
  return queue;
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
    case QueueAction::kUpdate:
      if (Result r = check_times(control.queue); r.status) return r;
      set_attributes(turn, queue, control.queue);
      return {};
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
