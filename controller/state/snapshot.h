// The whole state as a row of parts, out and in. PURE.
//
// State::save() hands every part to a sink; a StateBuilder is a sink that makes a state of them
// again, with the same fingerprint. How parts become bytes is the sink's matter
// (controller/service/state_codec.h). What can be derived from other parts (indexes, counters of
// waiting and running jobs) is not saved.
#ifndef XCE_CONTROLLER_STATE_SNAPSHOT_H_
#define XCE_CONTROLLER_STATE_SNAPSHOT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/state/state.h"
#include "controller/state/submit_keys.h"

namespace xce::state {

struct SavedTotals {
  Index applied = 0;
  int64_t now_ms = 0;
  JobId next_job = 1;
  uint64_t finished = 0;
  Index session_floor = 0;
  State::Scheduler scheduler;
};

struct SavedSession {
  ClientId client;
  Index birth = 0;
  int64_t used_ms = 0;
  uint64_t lowest = 0;
  const std::map<uint64_t, Result>* results = nullptr;
};

struct SavedKey {
  std::string user;
  KeyHash key;
  JobId job = 0;
  uint32_t count = 0;
  uint32_t kept = 0;
  uint64_t body_hash = 0;
};

// Gets the totals first, queues and reservations before jobs, jobs by rising id, sessions and keys
// in their order. What is referred to stays where it is until State::save returns.
class StateSink {
 public:
  virtual ~StateSink() = default;
  virtual void totals(const SavedTotals& totals) = 0;
  virtual void queue(const Queue& queue) = 0;
  virtual void user(const User& user) = 0;
  // shrunk: see HostTable::has_shrunk. holder: the job that has the host for itself, or 0.
  virtual void host(const Host& host, bool shrunk, JobId holder) = 0;
  virtual void outbox(const std::string& host, uint64_t seq) = 0;  // of a host that was removed
  virtual void job(const Job& job, bool requeue_wanted) = 0;
  virtual void session(const SavedSession& session) = 0;
  virtual void key(const SavedKey& key) = 0;
  virtual void orphan(const SubmitKeys::Orphan& orphan) = 0;
  virtual void reservation(const Reservation& reservation) = 0;
};

class StateBuilder final : public StateSink {
 public:
  StateBuilder();
  ~StateBuilder() override;

  void totals(const SavedTotals& totals) override;
  void queue(const Queue& queue) override;
  void user(const User& user) override;
  void host(const Host& host, bool shrunk, JobId holder) override;
  void outbox(const std::string& host, uint64_t seq) override;
  void job(const Job& job, bool requeue_wanted) override;
  void session(const SavedSession& session) override;
  void key(const SavedKey& key) override;
  void orphan(const SubmitKeys::Orphan& orphan) override;
  void reservation(const Reservation& reservation) override;
  // As job(), without a copy.
  void take_job(Job job, bool requeue_wanted);

  // The state, once everything was handed over. DataLoss: the parts do not fit together; says
  // which.
  absl::StatusOr<std::unique_ptr<State>> finish();

 private:
  void fault(std::string what);

  std::unique_ptr<State> state_;
  std::string fault_;  // the first one
  bool has_totals_ = false;
};

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_SNAPSHOT_H_
