// Sessions: each write of a client has its effect once, however often it arrives (DESIGN, "Exactly
// once"). PURE.
//
// A session is what is remembered of one client: the results of its recent writes, as a set and not
// as a maximum, since many may be in flight and arrive in any order. A result is forgotten when the
// client says that it has the answer (lowest_unanswered), or when more than kWindow would be kept;
// a write below what was forgotten is not applied again.
//
// Sessions end after kIdleMs without a write, or when there are more than kMaxSessions. A client
// that is unknown and might be one of the forgotten (its birth is below the eviction floor) cannot
// be told from a new one, so its write is refused with E_XCE_OUTCOME_UNKNOWN: it may have been
// applied in the session that is gone. The floor is the highest birth that was evicted, plus one: a
// client born later has certainly never been evicted.
//
// An operation id that a caller chose (xcecli_set_op_id) is a client with one write. Its result is
// kept with a hash of the request, so that one id never stands for two requests.
#ifndef XCE_CONTROLLER_STATE_SESSIONS_H_
#define XCE_CONTROLLER_STATE_SESSIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "libxce/model/command.h"

namespace xce::state {

inline constexpr size_t kWindow = 1024;
inline constexpr int64_t kIdleMs = 3600 * 1000;
inline constexpr size_t kMaxSessions = 100000;

class Sessions {
 public:
  // The answer to a write that must not be applied (again), or nothing: then apply it and call
  // record().
  std::optional<Result> admit(const Command& command, Index index, int64_t now_ms);
  // Keeps the result of a write that admit() let through.
  void record(const Command& command, const Result& result);
  // Ends the sessions that have been idle for kIdleMs.
  void expire(int64_t now_ms);

  size_t size() const { return sessions_.size(); }
  Index floor() const { return floor_; }

  struct Session {
    Index birth = 0;
    int64_t used_ms = 0;
    uint64_t lowest = 0;  // writes below this one are answered or forgotten
    std::map<uint64_t, Result> results;
  };
  const std::map<ClientId, Session>& all() const { return sessions_; }
  const std::set<std::pair<int64_t, ClientId>>& by_use() const { return by_use_; }

  // From a snapshot.
  void restore(const ClientId& client, Session session) {
    by_use_.insert({session.used_ms, client});
    sessions_[client] = std::move(session);
  }
  void restore_floor(Index floor) { floor_ = floor; }

 private:
  void evict_oldest();
  void touch(const ClientId& client, Session& session, int64_t now_ms);

  std::map<ClientId, Session> sessions_;
  std::set<std::pair<int64_t, ClientId>> by_use_;  // longest idle first
  Index floor_ = 0;
};

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_SESSIONS_H_
