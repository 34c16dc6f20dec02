// Queue definitions. PURE. Their pending and running counters belong to the job table.
#ifndef XCE_CONTROLLER_STATE_QUEUES_H_
#define XCE_CONTROLLER_STATE_QUEUES_H_

#include <string>
#include <vector>

#include "controller/state/tables.h"

namespace xce::state {

inline constexpr size_t kMaxQueues = 1000;
inline constexpr size_t kMaxAllowedNames = 1000;  // users, and groups, of one queue

// Of queues and reservations: 1 to 64 letters, digits, '-', '_' or '.'.
bool is_good_name(const std::string& name);
bool is_one_of(const std::vector<std::string>& names, const std::string& name);
// The one that every cluster begins with.
Queue first_queue();

// Whether `who` may have jobs of `user` in that queue: its lists are empty, or name the user or one
// of who's groups, or who is an administrator. PERM, in words, when not.
Result check_access(const Queue& queue, const Identity& who, const std::string& user);
// Whether the user may have `more` waiting jobs there: BUSY, in words, when not.
Result check_pending(const Tables& tables, const Queue& queue, const std::string& user,
                     size_t more);

// create: open and active, whatever is given. update: everything but open and active, which have
// their own actions; with a mask only the fields that it names. is_default of create or update
// makes it the only default; nothing but that takes the default away. remove: not the default, and
// only without alive jobs. For administrators: E_XCE_PERM, E_XCE_NOENT, E_XCE_INVALID, E_XCE_BUSY.
Result control_queue(Turn& turn, const Command& command, const QueueControl& control);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_QUEUES_H_
