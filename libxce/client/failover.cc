#include "libxce/client/failover.h"

#include <algorithm>

#include "xce/errnox.h"

namespace xce::client {
namespace {

constexpr int kMaxUnknowns =
    2;  // replies OUTCOME_UNKNOWN to a resent write before its caller is told

// Statuses that say "not applied, ask another or later".
bool is_elsewhere(int status) {
  return status == E_XCE_REDIRECT || status == E_XCE_STANDBY || status == E_XCE_NOMASTER ||
         status == E_XCE_NOT_READY;
}

// Whether the answer means that there is no primary yet, so that asking again at once is useless.
bool wants_backoff(const Outcome& o) {
  switch (o.kind) {
    case Outcome::Kind::kTransport: return false;
    case Outcome::Kind::kHookFailed: return true;
    case Outcome::Kind::kHelloReply:
    case Outcome::Kind::kReply:
      return o.status == E_XCE_NOMASTER || o.status == E_XCE_NOT_READY || o.status == E_XCE_BUSY;
  }
  return true;
}

bool is_fenced(const FailoverState& s, const Outcome& o) {
  if (o.status != 0 || o.term == 0 || o.term >= s.term) return false;
  return o.cluster_id == s.cluster_id || o.cluster_id == 0 || s.cluster_id == 0;
}

void served(FailoverState* s, const Outcome& o) {
  s->target = o.from;
  s->serving = true;
  s->tried = 0;
  s->strangers.clear();
  s->redirects = 0;
  s->round = 0;
  s->not_before_ms = 0;
  if (o.cluster_id != 0 && s->cluster_id != 0 && o.cluster_id != s->cluster_id)
    s->term = 0;  // another cluster
  if (o.cluster_id != 0) s->cluster_id = o.cluster_id;
  s->term = std::max(s->term, o.term);
}

bool was_tried(const FailoverState& s, const Target& t) {
  if (t.candidate >= 0) return (s.tried >> t.candidate & 1u) != 0;
  return std::find(s.strangers.begin(), s.strangers.end(), t) != s.strangers.end();
}

// The next of the list after `from` that this pass has not tried, or -1.
int next_untried(const FailoverConfig& config, const FailoverState& s, int from) {
  for (int i = 1; i <= config.candidates; ++i) {
    const int c = (from + i) % config.candidates;
    if ((s.tried >> c & 1u) == 0) return c;
  }
  return -1;
}

int backoff_ms(const FailoverConfig& config, int round, double share, double random) {
  double ceiling = config.initial_delay_ms;
  for (int i = 0; i < round && ceiling < config.max_delay_ms; ++i) ceiling *= config.multiplier;
  return static_cast<int>(random * share * std::min<double>(ceiling, config.max_delay_ms));
}

Decision give_up() {
  Decision d;
  d.action = Action::kGiveUp;
  d.result = -E_XCE_NOT_READY;
  return d;
}

// This attempt failed: where next, and when.
Decision move_on(const FailoverConfig& config, FailoverState* s, CallState* call, const Outcome& o,
                 int64_t now_ms, double random) {
  s->serving = false;
  note_failed(s, o.from);
  Decision d;
  d.action = Action::kConnect;
  const double share = wants_backoff(o) ? 1.0 / config.candidates : 1.0;
  const int from = std::max(o.from.candidate, 0);
  if (const int next = next_untried(config, *s, from);
      o.has_hint && s->redirects < config.candidates && !was_tried(*s, o.hint)) {
    ++s->redirects;
    s->target = o.hint;
  } else if (next >= 0) {
    s->target = Target{next, "", 0};
    if (wants_backoff(o)) d.delay_ms = backoff_ms(config, s->round, share, random);
  } else {  // a pass of the whole list found no primary
    s->target = Target{(from + 1) % config.candidates, "", 0};
    s->tried = 0;
    s->strangers.clear();
    s->redirects = 0;
    d.delay_ms = backoff_ms(config, s->round, share, random);
    s->round = std::min(s->round + 1, 1000);
    ++call->retries;
  }
  s->not_before_ms = now_ms + d.delay_ms;
  if (call->retries > config.max_retries || s->not_before_ms >= call->deadline_ms) return give_up();
  return d;
}

Decision done(int status) {
  Decision d;
  d.action = Action::kReturn;
  d.result = -status;
  return d;
}

// "May or may not have been applied": resend under the same operation sequence, by which the
// cluster knows whether it was. When the cluster does not know this client's session, a write sent
// only once was never applied: a new birth makes it good.
Decision on_unknown(const FailoverConfig& config, FailoverState* s, CallState* call,
                    const Outcome& o, int64_t now_ms, double random) {
  ++call->unknowns;
  call->maybe_applied = call->write;
  const bool once = call->sends <= 1;
  if (call->write && !once && call->unknowns > kMaxUnknowns) return done(E_XCE_OUTCOME_UNKNOWN);
  if (!call->write || !once) return move_on(config, s, call, o, now_ms, random);
  s->serving = false;
  s->target = o.from;
  s->not_before_ms = now_ms;
  if (now_ms >= call->deadline_ms) return give_up();
  Decision d;
  d.action = Action::kConnect;
  d.new_birth = true;
  return d;
}

}  // namespace

Decision decide(const FailoverConfig& config, FailoverState* state, CallState* call,
                const Outcome& o, int64_t now_ms, double random) {
  const bool hello = o.kind == Outcome::Kind::kHelloReply;
  if (!hello && o.kind != Outcome::Kind::kReply) {
    if (o.kind == Outcome::Kind::kTransport && o.delivered && call->write)
      call->maybe_applied = true;
    return move_on(config, state, call, o, now_ms, random);
  }
  if (is_fenced(*state, o)) {
    if (!hello && call->write) call->maybe_applied = true;
    Decision d = move_on(config, state, call, o, now_ms, random);
    d.fenced = true;
    return d;
  }
  if (is_elsewhere(o.status)) return move_on(config, state, call, o, now_ms, random);
  if (hello && o.status == E_XCE_BUSY) return move_on(config, state, call, o, now_ms, random);
  if (o.status == E_XCE_OUTCOME_UNKNOWN) return on_unknown(config, state, call, o, now_ms, random);
  if (o.status != 0) return done(o.status);
  served(state, o);
  Decision d;
  d.action = hello ? Action::kProceed : Action::kReturn;
  return d;
}

void note_failed(FailoverState* state, const Target& target) {
  if (target.candidate >= 0)
    state->tried |= 1u << target.candidate;
  else if (!was_tried(*state, target))
    state->strangers.push_back(target);
}

bool exhausted(const FailoverConfig& config, const CallState& call, int64_t now_ms) {
  return call.retries > config.max_retries || now_ms >= call.deadline_ms;
}

}  // namespace xce::client
