#include "controller/state/sessions.h"

#include <algorithm>
#include <string>

#include "xce/errnox.h"

namespace xce::state {
namespace {
Result unknown(std::string message) {
  Result result;
  result.status = E_XCE_OUTCOME_UNKNOWN;
  result.message = std::move(message);
  return result;
}
Result refused(std::string message) {
  Result result;
  result.status = E_XCE_INVALID;
  result.message = std::move(message);
  return result;
}
}  // namespace

std::optional<Result> Sessions::admit(const Command& command, Index index, int64_t now_ms) {
  if (command.op_seq == 0) return std::nullopt;
  auto it = sessions_.find(command.client);
  if (it == sessions_.end()) {
    if (command.birth < floor_) {
      return unknown(
          "this client has been idle for so long that its earlier writes are forgotten; this one "
          "may have been applied: look "
          "before doing it again");
    }
    while (sessions_.size() >= kMaxSessions) evict_oldest();
    it = sessions_.emplace(command.client, Session{}).first;
    // A birth from the future would lift the floor above honest clients.
    it->second.birth = std::min(command.birth, index);
    it->second.used_ms = now_ms;
    by_use_.insert({now_ms, command.client});
  }
  Session& session = it->second;
  touch(command.client, session, now_ms);
  session.lowest = std::max(session.lowest, std::min(command.lowest_unanswered, command.op_seq));
  session.results.erase(session.results.begin(), session.results.lower_bound(session.lowest));
  const auto known = session.results.find(command.op_seq);
  if (known != session.results.end()) {
    const uint64_t first = known->second.op_hash;
    if (first == command.op_hash || first == 0 || command.op_hash == 0) return known->second;
    return refused(
        "this operation id was used for another request before: give each request an id of its "
        "own");
  }
  if (command.op_seq < session.lowest) {
    return unknown(
        "this write was answered or forgotten before; it is not applied again: look what became of "
        "it");
  }
  return std::nullopt;
}

void Sessions::record(const Command& command, const Result& result) {
  if (command.op_seq == 0) return;
  const auto it = sessions_.find(command.client);
  if (it == sessions_.end()) return;
  Session& session = it->second;
  Result& kept = session.results[command.op_seq] = result;
  kept.op_hash = command.op_hash;
  while (session.results.size() > kWindow) {
    session.lowest = session.results.begin()->first + 1;
    session.results.erase(session.results.begin());
  }
}

void Sessions::expire(int64_t now_ms) {
  while (!by_use_.empty() && by_use_.begin()->first <= now_ms - kIdleMs) evict_oldest();
}

void Sessions::evict_oldest() {
  const auto it = sessions_.find(by_use_.begin()->second);
  floor_ = std::max(floor_, it->second.birth + 1);
  sessions_.erase(it);
  by_use_.erase(by_use_.begin());
}

void Sessions::touch(const ClientId& client, Session& session, int64_t now_ms) {
  if (session.used_ms == now_ms) return;
  by_use_.erase({session.used_ms, client});
  session.used_ms = now_ms;
  by_use_.insert({now_ms, client});
}

}  // namespace xce::state
