// The failover decision: what a client does next, given how its last attempt came out. PURE: values
// in, values out; the time and the random number are given.
//
// The intuition. A client has a list of candidates and sticks to the one that serves. When that one
// fails, it walks the list: a pass. A redirect names a node that is tried at once, before the next
// of the list, if this pass has not tried it yet. Refusals and redirects cost no sleep within a
// pass, so that a dead primary is left in a round trip; nodes that say "no primary" cost a share of
// the backoff. A pass without a primary ends in a backoff, twice as long each time (full jitter),
// and counts as one retry. So neither a redirect loop nor a dead cluster can make a client spin.
//
// Two states: FailoverState belongs to a context and survives its calls; CallState belongs to one
// call.
#ifndef XCE_LIBXCE_CLIENT_FAILOVER_H_
#define XCE_LIBXCE_CLIENT_FAILOVER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace xce::client {

struct FailoverConfig {
  int candidates = 1;    // length of the list, 1..32
  int max_retries = 20;  // passes of one call after its first
  int initial_delay_ms = 10;
  int max_delay_ms = 5000;
  double multiplier = 2.0;
};

// A node: of the list, or one that a redirect named and that the list does not hold.
struct Target {
  int candidate = 0;  // index of the list; -1: host and port say it
  std::string host;   // with candidate -1 only
  uint16_t port = 0;
  friend bool operator==(const Target& a, const Target& b) {
    return a.candidate == b.candidate &&
           (a.candidate >= 0 || (a.host == b.host && a.port == b.port));
  }
};

struct FailoverState {
  Target target;                  // where to connect next; where the connection is, while serving
  bool serving = false;           // target answered hello as primary and no failure came since
  uint32_t tried = 0;             // candidates that failed in this pass: bit i
  std::vector<Target> strangers;  // nodes out of the list that failed in this pass
  int redirects = 0;              // followed in this pass
  int round = 0;              // passes in succession without a primary: the exponent of the backoff
  int64_t not_before_ms = 0;  // no attempt before this time
  uint64_t cluster_id = 0;    // of the primary that served last
  uint64_t term = 0;          // highest of a primary of that cluster that served: fences lower ones
};

struct CallState {
  bool write = false;
  int64_t deadline_ms = 0;     // absolute
  int retries = 0;             // passes that ended since the call began
  int sends = 0;               // times the request was handed to a connection
  bool maybe_applied = false;  // an attempt may have been applied
  int unknowns = 0;            // replies OUTCOME_UNKNOWN so far
};

// How an attempt came out.
struct Outcome {
  enum class Kind {
    kHelloReply,  // a new connection answered hello with `status`
    kReply,       // a request was answered with `status`
    kTransport,   // refused, timed out, reset, garbage: `error`
    kHookFailed,  // the rejoin hook said no
  };
  Kind kind = Kind::kTransport;
  Target from;     // whose outcome it is
  int status = 0;  // E_XCE_... or 0
  uint64_t term = 0, cluster_id = 0;
  bool has_hint = false;  // `hint` names the primary, says the reply or a probe
  Target hint;
  bool delivered = false;  // kTransport of a request: it may have reached the node
};

enum class Action {
  kProceed,  // the node serves as primary: resume the requests
  kReturn,   // the call is over with `result`
  kConnect,  // wait until state.not_before_ms, connect to state.target, send again
  kGiveUp,   // the call is over with `result`: the budget is used up. Others go on from the state.
};

struct Decision {
  Action action = Action::kReturn;
  int delay_ms = 0;        // of kConnect
  int result = 0;          // 0 or -E_XCE_...; of kReturn and kGiveUp
  bool new_birth = false;  // of kConnect: take the birth of the write from the next hello
  bool fenced = false;     // the node believes to be primary in a term that is over
};

// Decides. `random` is in [0, 1). Changes *state and *call to what holds afterwards.
Decision decide(const FailoverConfig& config, FailoverState* state, CallState* call,
                const Outcome& outcome, int64_t now_ms, double random);

// Remembers for this pass that `target` failed, without deciding anything: for a node that lost a
// race of connects.
void note_failed(FailoverState* state, const Target& target);

// True for a call that must not wait any longer: its passes or its time are used up (for calls that
// wait while another one repairs the connection).
bool exhausted(const FailoverConfig& config, const CallState& call, int64_t now_ms);

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_FAILOVER_H_
