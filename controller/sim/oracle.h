// Who knows everything: it sees each entry that any node applies, applies it to a state of its own,
// and checks what must hold whatever happens.
//
// - A term has one primary.
// - All nodes apply the same entry at an index, none twice, and leave none out; their states are
//   equal after it.
// - A write is done once: its result is the same each time that the log holds it, and no two jobs
//   have one name (each submission gives another).
// - Job ids rise; what is allocated equals what runs (controller/state/check.h).
// - An acknowledged write is in the log, with the result that was answered. One that its caller was
//   told is not applied is not, then and later.
// - Reads are linearizable: what one answers is at least as new as anything that anybody was told
//   before it was asked.
#ifndef XCE_CONTROLLER_SIM_ORACLE_H_
#define XCE_CONTROLLER_SIM_ORACLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "controller/sim/network.h"
#include "controller/sim/world.h"
#include "controller/state/state.h"

namespace xce::sim {

class Oracle {
 public:
  using WriteId = std::pair<ClientId, uint64_t>;  // client and sequence

  explicit Oracle(World* world) : world_(world) {}

  // ---- nodes
  void started(HostId node) { nodes_[node] = 0; }
  void ended(HostId node) { nodes_.erase(node); }
  void leads(HostId node, uint64_t term);
  void applied(HostId node, uint64_t index, uint64_t term, std::string_view entry);
  // The node's state after an entry; looked at now and then.
  void compare(HostId node, uint64_t index, const state::State& state);
  void restored(HostId node, uint64_t index, const state::State& state);

  // ---- clients
  // The newest entry that anybody was told of.
  Index known() const { return known_; }
  // A call was answered with success, from the state at `index`.
  void acknowledged(const WriteId& write, const Result& told, Index index);
  // A call is over: its caller was told that it is not applied.
  void told_not_applied(const WriteId& write);
  // A read that began when known() was `before` was answered.
  void read(Index before, Index index, const std::string& what);
  // A read found no such job.
  void not_found(JobId id, bool was_acknowledged);

  const state::State& model() const { return model_; }
  Index last_index() const { return entries_.empty() ? 0 : entries_.rbegin()->first; }
  uint64_t writes() const { return results_.size(); }
  uint64_t terms() const { return leaders_.size(); }
  // Everything once more, at the end.
  void check_model();
  void check_equal(HostId node, const state::State& state);

 private:
  void apply_to_model(uint64_t index, std::string_view bytes);
  void check_result(const WriteId& write, const Result& result, Index index);

  World* const world_;
  state::State model_;
  std::map<HostId, Index> nodes_;       // that run, and the last entry each has applied
  std::map<uint64_t, HostId> leaders_;  // by term
  std::map<Index, uint64_t> entries_;   // a hash of each
  std::map<Index, std::string> fingerprints_;
  std::map<WriteId, std::pair<Result, Index>> results_;
  std::set<WriteId> never_;  // must not be applied
  std::map<std::string, JobId> names_;
  JobId last_job_ = 0;
  Index known_ = 0;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_ORACLE_H_
