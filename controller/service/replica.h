// The seam between the service and consensus: what the service asks of the replicated log.
// real_replica.h implements it with controller/consensus; tests with a fake that commits on demand.
// Thread: the consensus thread.
#ifndef XCE_CONTROLLER_SERVICE_REPLICA_H_
#define XCE_CONTROLLER_SERVICE_REPLICA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "controller/service/answer.h"
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
