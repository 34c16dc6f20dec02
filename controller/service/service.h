// The service: what a controller does with each request, and with each change of its role. Requests
// come in as values from the client I/O thread; answers and pushes leave as values. It stands
// between the connections, the replicated log and the state.
//
// Thread: the consensus thread; no I/O and no clock of its own (runner.h drives it), so that tests
// can.
//
// A request's way: take() -> not the primary: refuse(), with the way to the primary
//                         -> write: Writes -> Replica::propose -> apply() -> the result
//                         -> read:  Replica::barrier -> turn() answers a bounded number a turn
#ifndef XCE_CONTROLLER_SERVICE_SERVICE_H_
#define XCE_CONTROLLER_SERVICE_SERVICE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controller/history/archive.h"
#include "controller/push/hub.h"
#include "controller/service/answer.h"
#include "controller/service/estimates.h"
#include "controller/service/liveness.h"
#include "controller/service/log_queries.h"
#include "controller/service/reads.h"
#include "controller/service/replica.h"
#include "controller/service/request.h"
#include "controller/service/telemetry.h"
#include "controller/service/writes.h"
#include "controller/state/state.h"

namespace xce::service {

struct ServiceOptions {
  uint64_t node_id = 1;
  uint64_t host_grace_ms = 10000;  // a host unheard of for so long is given up
  // A job with requeue may run so long after a hello of its host's worker, is then ended there and
  // started elsewhere kFenceMs later; 0: such jobs wait for their host, as others do.
  uint32_t lease_ms = 30000;
  uint64_t log_query_ms = 5000;  // a worker's time to answer for a job's output
  uint64_t scheduler_grace_ms =
      1500;  // the active scheduler may be away for so long before the others hear of it, unless it
             // left a serving primary: then they hear at once
  uint64_t scheduler_silence_ms = 2500;  // or connected, and silent
  uint64_t tick_ms = 60000;              // an entry that lets time pass, while there are sessions
  uint64_t read_budget_us = 4000;        // of one turn, for reads
  uint64_t first_query_id = 1;
  uint32_t operator_uid = 0;  // may control the membership, as root may
  push::HubOptions hub;
};

class Service {
 public:
  struct Clock {
    std::function<uint64_t()> monotonic_us;
    std::function<int64_t()> wall_ms;
  };
  using Outlet = std::function<void(std::vector<Outgoing>)>;

  // All must outlive it. archive: null keeps no ended jobs but the state's.
  Service(ServiceOptions options, Clock clock, state::State* state, Replica* replica, Outlet outlet,
          history::Archive* archive = nullptr);

  void take(std::vector<Inbound> batch);
  // Applies an entry of the log (of an empty or foreign kind: not at all). Aborts on an entry that
  // cannot be read.
  void apply(Index index, std::string_view entry);
  // The state was replaced by one from a snapshot: subscribers must take it anew, and what waits is
  // refused.
  void restored();
  void role_changed(const RoleView& role);
  // The disk or the log failed: nothing is served from now on but the cluster's status, which says
  // why.
  void failed(std::string why);
  // Proposes, asks for barriers, answers, pushes. To be called before the loop waits; true: call
  // again soon.
  bool turn();
  // Time passes: hosts, log questions, ticks. To be called a few times a second.
  void tick();
  // Nothing that a client waits for is under way.
  bool idle() const {
    return writes_.idle() && barrier_reads_.empty() && waiting_reads_ == 0 &&
           ready_reads_.empty() && archive_reads_ == 0;
  }
  bool serving() const { return role_.role == NodeRole::kLeader && role_.ready && disk_ == "ok"; }
  // What there is to tell about this node now; all but `stopping` and `inbox` is filled.
  Telemetry telemetry() const;
  // Every subscriber is told to look elsewhere (a shutdown).
  void end_pushes() { hub_.end_all(); }

 private:
  struct Conn {
    std::shared_ptr<const Identity> who;
    std::shared_ptr<push::Flow> flow;
    ClientId client;
    bool joined = false;
    uint64_t heard_ms = 0;  // of a worker or scheduler: its newest request
  };

  void take_request(Request request);
  void serve(Request request);
  void closed(ConnId conn);

  Answer answer_to(const Request& request) const;
  void answer(Answer answer) {
    ++requests_[{answer.ask, answer.status}];
    outgoing_.emplace_back(std::move(answer));
  }
  void answer_status(const Request& request, int32_t status, std::string message);
  void refuse(const Request& request);
  void fill_refusal(Answer* answer) const;
  void hello(const Request& request);
  HelloBody hello_body(const Request& request) const;
  void write(Request request);
  void written(const Waiter& waiter, const Writes::Fate& fate);
  void fill_result(const Waiter& waiter, const Result& result, Answer* answer);
  void joined(ConnId conn);
  // Another worker that joined under the name of this request's sender and is still heard of; 0:
  // none.
  ConnId rival_of(const Request& request) const;
  void read(Request request);
  void answer_now(const Request& request);
  void barrier_done(std::vector<Request> reads, bool leader);
  void subscribe(const Request& request);
  ClusterView cluster_view() const;
  void cluster(const Request& request);
  bool may_operate(const Request& request);
  void transfer(const Request& request);
  void change_members(const Request& request);
  void begin_backup(const Request& request);
  void read_backup(const Request& request);
  void answer_late_changes(uint64_t now_ms);
  // Answers a read from the state and the archive, when that has answered.
  void ask_archive(const Request& request, HalfAnswer half);
  void ask_for_log(const Request& request);
  void ask_worker(const Request& request, const Job& job);
  void worker_answered(const Request& request);
  void give_up_hosts(const std::vector<Event>& events);
  void propose_own(Op op);
  void watch_groups(bool told_anew);
  void watch_scheduler(uint64_t now_ms);
  void scheduler_away();
  uint64_t silence_of(uint64_t leader) const;

  const ServiceOptions options_;
  const Clock clock_;
  state::State* const state_;
  Replica* const replica_;
  const Outlet outlet_;
  history::Archive* const archive_;
  push::Hub hub_;
  Writes writes_;
  Liveness liveness_;
  LogQueries log_queries_;
  // Who waits for a change of the members. Set to null when answered.
  std::vector<std::shared_ptr<std::optional<Request>>> changes_;
  struct Backup {  // being read on a connection, from its beginning to its end
    uint64_t id = 0;
    std::unique_ptr<BackupSource> source;
    uint64_t offset = 0;
    uint32_t crc = 0;  // of what was read
  };
  std::unordered_map<ConnId, Backup> backups_;
  uint64_t next_backup_ = 1;
  Estimates estimates_;
  bool groups_matter_ = false;  // some queue's access depends on its users' groups
  RoleView role_;
  std::string disk_ = "ok";
  std::unordered_map<ConnId, Conn> conns_;  // that have said hello
  std::vector<Request> barrier_reads_;      // came since the last barrier was asked for
  size_t waiting_reads_ = 0;                // behind a barrier under way
  std::deque<Request> ready_reads_;
  size_t archive_reads_ = 0;        // of which the archive has not answered
  std::vector<Outgoing> outgoing_;  // of this turn
  Index results_index_ = 0;
  std::vector<Result> results_;  // of the entry at results_index_
  std::vector<Result> no_results_;
  uint64_t started_us_ = 0;
  uint64_t last_tick_ms_ = 0;
  uint64_t scheduler_seen_ms_ = 0;  // the active one was connected; soft state of the primary
  bool scheduler_gone_ = false;
  uint64_t leaderless_since_ms_ = 0;  // 0: a leader is known
  int64_t last_election_ms_ = 0, last_election_took_ms_ = 0;
  uint64_t elections_ = 0;
  std::map<std::pair<Ask, int32_t>, uint64_t> requests_;  // answered, by status
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_SERVICE_H_
