// Hosts: joining, capacity, draining, loss. PURE.
//
//   UP           its worker is heard of
//   DRAINED      the same, but no job starts there: an operator wants it so, or its worker says
//   that
//                it cannot (HostAttrs::fault)
//   UNREACHABLE  silent for the grace time: its jobs may well go on
//   GONE         silent for so long that the leases of its jobs with requeue have run out: they are
//                started elsewhere. The others still count as running: only their host, when it
//                comes back, or an operator (kill, host remove --lost) can tell.
//
// A host's name belongs to the worker that joined with it first (HostAttrs::worker_id), until the
// host is removed. What a host has in use is the sum of the allocations of the jobs that hold it;
// allocate() and release() keep it so.
#ifndef XCE_CONTROLLER_STATE_HOSTS_H_
#define XCE_CONTROLLER_STATE_HOSTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/state/jobs.h"
#include "libxce/model/command.h"
#include "libxce/model/host.h"

namespace xce::state {

struct Turn;

class HostTable {
 public:
  const std::map<std::string, Host>& all() const { return hosts_; }
  Host* find(const std::string& name);
  const Host* find(const std::string& name) const;

  Host& add(const HostAttrs& attrs);
  void remove(const std::string& name);  // its outbox sequence is remembered

  // Whether the host is up and has alloc free. exclusive: for a job that wants the host for itself.
  bool fits(const Alloc& alloc, bool exclusive) const;
  // Chooses which of the host's generic resources alloc gets: the lowest free ones.
  void choose_indices(Alloc* alloc) const;
  void allocate(const Alloc& alloc, JobId job, bool exclusive);
  void release(const Alloc& alloc, JobId job);

  uint64_t outbox_applied(const std::string& name) const;
  // The job that has the host for itself, or 0.
  JobId exclusive_holder(const std::string& name) const;
  // Whether the host came back, or told, smaller than what its jobs already held: then it may be
  // over-allocated for a while.
  bool has_shrunk(const std::string& name) const { return shrunk_.count(name) != 0; }
  void note_size(const Host& host);  // to be called when its attributes changed
  const std::map<std::string, JobId>& exclusive_holders() const { return exclusive_; }
  const std::map<std::string, uint64_t>& removed_outboxes() const { return removed_outboxes_; }

  // From a snapshot.
  void restore(const Host& host, bool shrunk, JobId holder);
  void restore_indices(const Alloc& alloc) { take_indices(alloc); }
  void restore_outbox(const std::string& name, uint64_t seq) { removed_outboxes_[name] = seq; }

 private:
  void take_indices(const Alloc& alloc);

  std::map<std::string, Host> hosts_;
  // Which ones of its generic resources are in use: by host, then by name.
  std::map<std::string, std::map<std::string, std::set<uint32_t>>> indices_;
  std::map<std::string, JobId> exclusive_;
  std::set<std::string> shrunk_;
  // A host that was removed and comes back goes on counting its reports where it left off.
  std::map<std::string, uint64_t> removed_outboxes_;
};

// A host's resources of one name are told apart up to this many (gpus are, licences need not be).
inline constexpr uint32_t kMaxIndexed = 1024;

uint32_t count_of(const std::vector<Gres>& gres, const std::string& name);

Result join_host(Turn& turn, const Join& join);
// A lost host that is heard of again is up again.
void hear_from(Turn& turn, Host& host);
Result control_host(Turn& turn, const Command& command, const HostControl& control);
Result update_resvals(Turn& turn, const Command& command, const UpdateResvals& update);
Result lose_host(Turn& turn, const Command& command, const HostLost& lost);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_HOSTS_H_
