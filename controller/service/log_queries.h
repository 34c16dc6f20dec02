// Questions for a job's output that wait for a worker's answer. PURE: the caller gives the time.
#ifndef XCE_CONTROLLER_SERVICE_LOG_QUERIES_H_
#define XCE_CONTROLLER_SERVICE_LOG_QUERIES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/service/request.h"

namespace xce::service {

struct LogQuestion {
  ConnId asker = 0;
  uint64_t seq = 0;
  std::string host;   // whose worker was asked
  std::string where;  // "FILE on HOST", for people
  uint64_t deadline_ms = 0;
};

class LogQueries {
 public:
  // Query ids start at `first`, random per start of the process, so that a late answer to an
  // earlier process matches nothing.
  explicit LogQueries(uint64_t first) : next_(first) {}

  uint64_t add(LogQuestion question) {
    const uint64_t id = next_++;
    open_[id] = std::move(question);
    return id;
  }
  // The question that this host's answer belongs to, once.
  std::optional<LogQuestion> take(uint64_t id, const std::string& host) {
    const auto it = open_.find(id);
    if (it == open_.end() || it->second.host != host) return std::nullopt;
    LogQuestion question = std::move(it->second);
    open_.erase(it);
    return question;
  }
  std::vector<LogQuestion> take_late(uint64_t now_ms) {
    std::vector<LogQuestion> late;
    for (auto it = open_.begin(); it != open_.end();) {
      if (it->second.deadline_ms > now_ms) {
        ++it;
        continue;
      }
      late.push_back(std::move(it->second));
      it = open_.erase(it);
    }
    return late;
  }
  std::vector<LogQuestion> take_all() { return take_late(UINT64_MAX); }

 private:
  uint64_t next_;
  std::map<uint64_t, LogQuestion> open_;
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_LOG_QUERIES_H_
