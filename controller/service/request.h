// What the client I/O thread hands to the consensus thread: requests as values, with who asks.
// PURE.
#ifndef XCE_CONTROLLER_SERVICE_REQUEST_H_
#define XCE_CONTROLLER_SERVICE_REQUEST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "controller/push/batch.h"
#include "libxce/model/command.h"

namespace xce::net {
class TlsSession;
}  // namespace xce::net

namespace xce::service {

using push::ConnId;

// The operations of client.capnp's Op, with its numbers.
enum class Ask : uint16_t {
  kNop,
  kHello,
  kJobList,
  kJobInfo,
  kJobHist,
  kWorkerList,
  kQueueList,
  kUserList,
  kResList,
  kResVal,
  kClusterConf,
  kClusterStatus,
  kJobLog,
  kJoin,
  kJobSubmit,
  kJobCtrl,
  kQueueCtrl,
  kHostCtrl,
  kUpdateResvals,
  kRunTask,
  kJobDispatch,
  kSetPendReason,
  kSchedAdmin,
  kMemberCtrl,
  kNotify,
  kHeartbeat,
  kWakeup,
  kSubscribe,
  kUnsubscribe,
  kBackup,
  kTick,
  kHostLost,
  kJobLogData,
  kBackupRead,
  kEstimates,
  kReservationCtrl,
  kReservationList,
};
inline constexpr int kAsks = 37;
const char* name_of(Ask ask);       // "jobSubmit", ...
constexpr bool is_write(Ask ask) {  // becomes a command of the replicated log
  return (ask >= Ask::kJoin && ask <= Ask::kSetPendReason) || ask == Ask::kNotify ||
         ask == Ask::kReservationCtrl;
}
constexpr bool is_read(Ask ask) {  // answered from the state, after a barrier
  return (ask >= Ask::kJobList && ask <= Ask::kResVal) || ask == Ask::kReservationList;
}
constexpr bool is_one_way(Ask ask) {  // no reply when all is well
  return ask == Ask::kNotify || ask == Ask::kHeartbeat || ask == Ask::kWakeup ||
         ask == Ask::kJobLogData || ask == Ask::kEstimates;
}

struct LogRequest {
  JobId job = 0;
  Stream stream = Stream::kStdout;
  uint64_t offset = 0;
  uint32_t limit = 0;
  uint32_t wait_ms = 0;
};
struct Subscription {
  Index from = 0;
  std::vector<JobId> jobs;  // these alone; empty: all events
};
struct LogChunk {
  uint64_t query_id = 0;
  int32_t status = 0;
  std::string data;
  uint64_t offset = 0;
  bool eof = false;
  std::string message;
};
struct Estimate {
  JobId job = 0;
  int64_t start_ms = 0;
};
struct EstimateList {
  uint64_t epoch = 0;
  std::vector<Estimate> items;
};
struct MemberControl {
  enum Action : uint8_t { kAdd, kRemove, kReplace, kTransfer } action = kAdd;
  uint64_t node_id = 0;
  std::string host;
  uint16_t port = 0;
};

// A person whom an apiserver has authenticated and for whom it asks.
struct Person {
  std::string user;
  uint32_t uid = 0, gid = 0;
  bool administrator = false;
};

struct BackupPosition {
  uint64_t id = 0;
  uint64_t offset = 0;
};

struct Request {
  ConnId conn = 0;
  uint64_t seq = 0;
  ClientId client;
  uint64_t op_seq = 0;
  uint64_t lowest_unanswered = 0;
  Index birth = 0;
  uint64_t deadline_ms = 0;  // on the clock of now_ms() (uv_hrtime), 0: none
  uint64_t op_hash = 0;      // of a write whose op id the caller chose
  bool resent = false;
  bool stale_ok = false;
  Ask ask = Ask::kNop;
  // Of writes an Op; of jobList and jobHist a JobFilter; of jobInfo a number; of
  // resVal and schedAdmin a text.
  std::variant<std::monostate, Op, JobFilter, uint64_t, std::string, LogRequest, LogChunk,
               MemberControl, BackupPosition, EstimateList, Subscription>
      what;
  std::shared_ptr<const Identity> who;
  std::vector<std::string> groups;  // of the user that it is for; only where they matter
  std::shared_ptr<push::Flow> flow;
};

struct Closed {  // the connection is gone; nothing can be sent to it any more
  ConnId conn = 0;
};
struct PeerConnection {  // another controller connected; the receiver owns fd
  int fd = -1;
  std::string already_read;              // bytes read so far, the preamble first, decrypted
  std::shared_ptr<net::TlsSession> tls;  // its session; null without TLS
};
struct Drained {};  // a connection that held up its pushes can take more

using Inbound = std::variant<Request, Closed, PeerConnection, Drained>;

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_REQUEST_H_
