// What a controller tells about itself: one consistent picture, taken on the consensus thread and
// read by whoever answers /metrics and its like.
#ifndef XCE_CONTROLLER_SERVICE_TELEMETRY_H_
#define XCE_CONTROLLER_SERVICE_TELEMETRY_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "controller/service/answer.h"
#include "controller/service/request.h"
#include "libxce/base/histogram.h"
#include "libxce/model/types.h"

namespace xce::service {

struct DiskView {              // of the log on this node's disk
  Histogram sync_s;            // time of one write with its sync, in seconds
  uint64_t backlog_bytes = 0;  // queued and not yet on disk
};

struct Telemetry {
  uint64_t taken_us = 0;  // monotonic
  ClusterView cluster;    // cluster.ready: it is the primary and serves
  bool stopping = false;
  std::string primary;                      // "host:port" of the primary; empty: not known
  std::array<uint64_t, kJobStates> jobs{};  // by JobState; ended ones as far as they are remembered
  std::map<std::pair<Ask, int32_t>, uint64_t> requests;  // answered, by status; ever
  uint64_t elections = 0;                                // times that a leader became known
  Histogram proposal_commands;                           // commands of one entry proposed
  DiskView disk;
  // Queues of the consensus thread, and of the mailbox to it.
  uint64_t writes_under_way = 0;  // entries
  uint64_t writes_under_way_bytes = 0;
  uint64_t reads_waiting = 0;
  uint64_t inbox = 0;
};

// Where the consensus thread puts its newest picture for other threads. Thread safe.
class TelemetryBoard {
 public:
  void put(Telemetry telemetry) {
    auto fresh = std::make_shared<const Telemetry>(std::move(telemetry));
    const std::lock_guard<std::mutex> lock(mutex_);
    newest_ = std::move(fresh);
  }
  // Never null.
  std::shared_ptr<const Telemetry> get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return newest_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Telemetry> newest_ = std::make_shared<const Telemetry>();
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_TELEMETRY_H_
