// What the consensus thread hands to the client I/O thread: replies, pushes and orders as values.
// PURE.
#ifndef XCE_CONTROLLER_SERVICE_ANSWER_H_
#define XCE_CONTROLLER_SERVICE_ANSWER_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "controller/push/batch.h"
#include "controller/service/request.h"
#include "libxce/model/command.h"

namespace xce::service {

inline constexpr char kVersion[] = "0.1.0";

enum Outcome : uint8_t {
  kNone = 0,
  kNotApplied = 1,
  kUnknown = 2,
  kApplied = 3
};  // of a failed write, as in Reply

struct HelloBody {
  uint64_t node_id = 0;
  Index applied = 0;
  uint64_t outbox_applied = 0;
  bool joined = false;
  int64_t server_ms = 0;
  uint64_t scheduler_epoch = 0;
  bool host_known = false;
  std::vector<std::pair<std::string, uint16_t>> members;  // where the controllers are; of a primary
  uint32_t lease_ms = 0;                                  // of a joined worker
};
struct JobPageBody {
  std::vector<Job> jobs;
  bool full = false;
  JobId next_after_id = 0;
  uint64_t total = 0;
};
struct JoinedBody {
  Index revision = 0;
  uint64_t epoch = 0;
  bool active = false;
  uint64_t outbox_applied = 0;
};
struct SubmittedBody {
  JobId job = 0;
  uint32_t count = 0;
  bool existing = false;
};
struct AffectedBody {
  uint32_t count = 0;
};
struct NodeView {  // one controller, as the answering one sees it
  uint64_t id = 0;
  std::string host;
  uint16_t port = 0;
  std::string role;  // "leader", "follower", "candidate", "unknown"
  bool connected = false;
  uint64_t match_index = 0;
  int64_t last_contact_ms = -1;  // ago; -1: never
  bool voter = true;             // false: it is joining
};
struct ClusterView {
  uint64_t node_id = 0;
  std::string role;
  uint64_t leader_id = 0, term = 0, commit = 0, applied = 0, last_index = 0;
  std::vector<NodeView> nodes;
  int64_t uptime_ms = 0;
  uint64_t jobs_pending = 0, jobs_running = 0, jobs_finished = 0, sessions = 0;
  int64_t last_election_ms = 0, last_election_took_ms = 0;
  bool ready = false;
  std::string disk;
  std::string scheduler;
  uint32_t heartbeat_ms = 0, election_timeout_ms = 0;
  uint64_t cluster_id = 0;
};
struct BackupBody {  // a piece of a backup
  uint64_t id = 0;
  Index index = 0;
  uint64_t total = 0;
  uint64_t offset = 0;
  std::string data;
  uint32_t crc = 0;
};
struct ClusterConfBody {
  ClusterView view;
};

using Body = std::variant<std::monostate, HelloBody, JobPageBody, std::vector<Host>,
                          std::vector<Queue>, std::vector<User>, std::vector<Gres>, ClusterConfBody,
                          ClusterView, LogChunk, JoinedBody, SubmittedBody, AffectedBody,
                          std::vector<int32_t>, std::string, BackupBody, std::vector<Reservation>>;

struct Answer {
  ConnId conn = 0;
  uint64_t seq = 0;
  int32_t status = 0;
  std::string message;
  std::string redirect_host;
  uint16_t redirect_port = 0;
  uint64_t term = 0;
  Index index = 0;
  uint8_t outcome = kNone;
  uint64_t cluster_id = 0;
  Ask ask = Ask::kNop;  // what is answered, for the statistics
  bool counted = true;  // false: of a one-way request, which nobody counts as in flight
  Body body;
};

struct CloseConn {
  ConnId conn = 0;
  bool flush = false;  // send what is queued first
  std::string why;     // for the log; empty: not worth a line
};
struct LookUpGroups {  // whether submissions come with their user's groups from now on
  bool wanted = false;
};
struct StopAccepting {};
struct Finish {};  // send what is queued, close every connection and end the I/O thread

using Outgoing =
    std::variant<Answer, push::Delivery, CloseConn, LookUpGroups, StopAccepting, Finish>;

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_ANSWER_H_
