// The seam between the service and consensus: what the service asks of the replicated log.
// real_replica.h implements it with controller/consensus; tests with a fake that commits on demand.
// Thread: the consensus thread.
#ifndef XCE_CONTROLLER_SERVICE_REPLICA_H_
#define XCE_CONTROLLER_SERVICE_REPLICA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/service/answer.h"
#include "controller/service/request.h"
#include "controller/service/telemetry.h"
#include "libxce/model/types.h"

namespace xce::net {
class TlsSession;
}  // namespace xce::net

namespace xce::service {

enum class NodeRole : uint8_t { kUnavailable, kFollower, kCandidate, kLeader };

struct RoleView {
  NodeRole role = NodeRole::kUnavailable;
  uint64_t term = 0;
  uint64_t leader = 0;  // node id; 0: none is known
  bool ready = false;   // of a leader: everything before its own first entry is applied
};

struct Proposed {
  enum Kind : uint8_t { kApplied, kNotApplied, kUnknown } kind = kUnknown;
  Index index = 0;
  uint64_t term = 0;
};

// What became of a wish to change the members.
struct MembersChanged {
  enum Kind : uint8_t {
    kDone,
    kRefused,  // `status` (an E_XCE_ value) and `message` say why; nothing was changed
    kMoved,    // nothing was changed, and another node leads, or soon will: ask that one
    kLost      // begun, and the role was lost: ask the new primary, as a request sent again
  } kind = kRefused;
  int32_t status = 0;
  std::string message;
};

// A backup's bytes: the same ones however long they are read.
class BackupSource {
 public:
  virtual ~BackupSource() = default;
  virtual Index index() const = 0;     // everything up to here is in it
  virtual uint64_t total() const = 0;  // bytes
  // At most n bytes from offset on.
  virtual absl::StatusOr<std::string> read(uint64_t offset, size_t n) const = 0;
};
using BackupReady = std::function<void(absl::StatusOr<std::unique_ptr<BackupSource>>)>;

class Replica {
 public:
  virtual ~Replica() = default;
  // Puts an entry into the log. done: right after the entry was applied (so that its results are at
  // hand), or when it is known never to be (kNotApplied) or can no longer be followed (kUnknown).
  virtual void propose(std::string entry, std::function<void(const Proposed&)> done) = 0;
  // done(true): this node was the leader after the call began, and everything committed until then
  // is applied.
  virtual void barrier(std::function<void(bool)> done) = 0;
  // Hands leadership to a node (0: the best one). done(""): another node leads; else why not.
  virtual void transfer(uint64_t to, std::function<void(const std::string& failure)> done) = 0;
  // Adds, removes or replaces a node. resent: it may have been asked for before; birth: what was
  // applied when its asker began.
  virtual void change_members(const MemberControl& wish, bool resent, Index birth,
                              std::function<void(const MembersChanged&)> done) = 0;
  // A backup of everything that is applied now.
  virtual void backup(BackupReady ready) = 0;
  // Takes over the connection of another controller; owns fd.
  virtual void adopt_peer(int fd, std::string already_read,
                          std::shared_ptr<net::TlsSession> tls) = 0;
  virtual RoleView role() const = 0;
  // Where clients find that node; false: unknown.
  virtual bool address_of(uint64_t node, std::string* host, uint16_t* port) const = 0;
  // Fills commit, applied (of the log: barriers count too), last_index, nodes, heartbeat_ms,
  // election_timeout_ms, cluster_id.
  virtual void describe(ClusterView* view) const = 0;
  virtual uint64_t cluster_id() const = 0;
  // How the disk does; a replica without one leaves it empty.
  virtual void measure(DiskView* view) const { (void)view; }
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_REPLICA_H_
