// A client's context: what libxce's Context does (libxce/client/context_*.cc), over the simulated
// network and without threads. Whom to ask next, when, and what to believe is decided by the real
// failover decision (libxce/client/failover.h).
#ifndef XCE_CONTROLLER_SIM_CONTEXT_H_
#define XCE_CONTROLLER_SIM_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "controller/service/answer.h"
#include "controller/service/request.h"
#include "controller/sim/network.h"
#include "controller/sim/world.h"
#include "libxce/client/failover.h"

namespace xce::sim {

struct CallResult {
  int result = 0;              // 0 or -E_XCE_...
  bool maybe_applied = false;  // of a write that failed
  service::Answer answer;      // of the last reply
  uint64_t op_seq = 0;         // of a write
};
using CallDone = std::function<void(const CallResult&)>;

class Context {
 public:
  // controllers: hosts 1 to n, the list of candidates.
  Context(World* world, Network* network, HostId host, ClientId client, Identity who,
          int controllers);

  // Calls, sends again, follows; `done` is called once, within deadline_ms.
  void call(service::Ask ask, decltype(service::Request::what) what, uint64_t deadline_ms,
            CallDone done);
  // Fire and forget: lost when there is no connection.
  void tell(service::Ask ask, decltype(service::Request::what) what);
  const ClientId& client() const { return client_; }
  size_t under_way() const { return calls_.size(); }
  // Connections made so far: a daemon joins again when it has changed.
  uint64_t generation() const { return generation_; }

 private:
  struct Call {
    service::Ask ask = service::Ask::kNop;
    decltype(service::Request::what) what;
    client::CallState state;
    uint64_t op_seq = 0;
    uint64_t birth = 0;
    bool has_birth = false, wants_new_birth = false;
    uint64_t seq = 0;  // in flight; 0: not
    CallDone done;
  };
  using CallId = uint64_t;

  int64_t now_ms() const { return static_cast<int64_t>(world_->now() / kMs); }
  void look_for_link();
  void dial();
  void on_event(uint64_t link, NetEvent event);
  void on_hello(const service::Answer& answer);
  void on_answer(CallId id, const service::Answer& answer);
  void send_call(CallId id);
  void send_waiting();
  void lose_link(bool failed, CallId spare);
  void finish(CallId id, int result, const service::Answer& answer);
  void watch();
  client::Outcome outcome_of(const service::Answer& answer, client::Outcome::Kind kind) const;
  client::Decision decide(client::CallState* call, const client::Outcome& outcome);

  World* const world_;
  Network* const network_;
  const HostId host_;
  const ClientId client_;
  const std::shared_ptr<const Identity> who_;
  Random random_;
  client::FailoverConfig config_;
  client::FailoverState failover_;
  std::map<CallId, Call> calls_;
  std::map<uint64_t, CallId> in_flight_;  // by seq
  std::set<uint64_t> open_ops_;
  ConnectionPtr connection_;
  client::Target target_;  // of connection_
  uint64_t link_ = 0;      // counts connections; events of an older one do not count
  bool connecting_ = false, up_ = false;
  uint64_t applied_ = 0;  // by the newest hello
  uint64_t birth_ = 0;
  bool born_ = false;
  uint64_t generation_ = 0;
  uint64_t next_seq_ = 1, next_op_seq_ = 1, last_call_ = 0;
  uint64_t heard_ = 0;  // when anything came
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_CONTEXT_H_
