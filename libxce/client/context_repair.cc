// The repair of a context's connection, which one thread does for all.
#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "libxce/client/context_frame.h"
#include "libxce/wire/codec.h"

namespace xce::client {
namespace {

thread_local const Context* in_hook_of = nullptr;
constexpr size_t kMaxLearned = 16;

// What the failover decision and the context need of hello's reply.
struct HelloAnswer {
  bool ok = false;
  int status = 0;
  uint64_t term = 0, cluster_id = 0, applied = 0;
  std::string host, message;
  uint16_t port = 0;
  std::vector<Address> members;
};

std::vector<Address> members_of(wire::HelloReply::Reader hello) {
  std::vector<Address> out;
  for (const auto node : hello.getMembers())
    if (node.getPort() != 0 && node.getHost().size() > 0 && out.size() < kMaxLearned)
      out.push_back({node.getHost().cStr(), node.getPort()});
  return out;
}

HelloAnswer read_hello(const Words& words) {
  HelloAnswer a;
  try {
    capnp::FlatArrayMessageReader message(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()),
        wire::reader_options(words.size() * 8));
    const auto reply = message.getRoot<wire::ServerMessage>().getReply();
    a.status = reply.getStatus();
    a.term = reply.getTerm();
    a.cluster_id = reply.getClusterId();
    a.host = reply.getRedirectHost().cStr();
    a.port = reply.getRedirectPort();
    a.message = reply.getMessage().cStr();
    if (reply.getBody().isHello()) {
      a.applied = reply.getBody().getHello().getApplied();
      a.members = members_of(reply.getBody().getHello());
    }
    a.ok = true;
  } catch (const kj::Exception&) {
  }
  return a;
}

}  // namespace

bool in_hook(const Context* context) { return in_hook_of == context; }

void Context::learn(wire::HelloReply::Reader hello) {
  const std::vector<Address> members = members_of(hello);
  if (members.empty()) return;
  Lock lock(mu_);
  set_learned(members);
}

void Context::set_learned(const std::vector<Address>& members) {
  learned_.clear();
  for (const Address& each : members)
    if (std::find(candidates_.begin(), candidates_.end(), each) == candidates_.end())
      learned_.push_back(each);
}

// Gives the connection, repaired if need be; or why there is none.
int Context::acquire(const FailoverConfig& config, Frame* frame, Link* link) {
  Lock lock(mu_);
  for (;;) {
    if (stopped_) return -ECANCELED;
    if (link_.id != 0) {
      *link = link_;
      return 0;
    }
    frame->call.retries = static_cast<int>(passes_ - frame->passes_before);
    if (exhausted(config, frame->call, now_ms())) return -E_XCE_NOT_READY;
    const auto deadline = time_point_of(frame->call.deadline_ms);
    if (repairing_) {
      changed_.wait_until(lock, deadline);
      continue;
    }
    repairing_ = true;
    const int64_t until = std::min(failover_.not_before_ms, frame->call.deadline_ms);
    changed_.wait_until(lock, time_point_of(until), [&] { return stopped_; });
    int rc = 0;
    if (!stopped_ && now_ms() < frame->call.deadline_ms) rc = repair(&lock, config, frame);
    repairing_ = false;
    changed_.notify_all();
    if (rc != 0) return stopped_ ? -ECANCELED : rc;
  }
}

// One attempt at a connection. 0 to look again (connected, or not yet), < 0 when the call is over.
int Context::repair(Lock* lock, const FailoverConfig& config, Frame* frame) {
  std::vector<Target> targets = {failover_.target};
  // Nobody of the whole list serves: the cluster may have moved to others. Every second try is
  // theirs.
  if (failover_.round > 0 && !learned_.empty() && ++learned_turn_ % 2 == 0) {
    const Address& other = learned_[learned_turn_ / 2 % learned_.size()];
    targets = {Target{-1, other.host, other.port}, failover_.target};
  }
  for (const bool tried : {false, true})  // those that this pass has not tried come first
    for (int i = 0; i < config.candidates; ++i) {
      const Target t{i, "", 0};
      if (std::find(targets.begin(), targets.end(), t) == targets.end() &&
          ((failover_.tried >> i & 1u) != 0) == tried)
        targets.push_back(t);
    }
  std::vector<Address> addresses;
  for (const Target& t : targets) addresses.push_back(address_of(t));
  closed_.clear();
  lock->unlock();
  const Handshake h = endpoint_->handshake(addresses, time_point_of(frame->call.deadline_ms));
  lock->lock();
  if (stopped_) return -ECANCELED;
  for (const size_t loser : h.failed) {
    note_certificate(targets[loser], false);
    note_attempt(targets[loser], "no answer");
    note_failed(&failover_, targets[loser]);
  }
  const Target& target = targets[h.target];
  if (h.connection != 0) {
    note_certificate(target, false);
    return after_hello(lock, config, frame, h, target);
  }
  Outcome o;
  o.from = target;
  note_attempt(target, xce_errname(h.error));
  if (note_certificate(target, h.error == EKEYREJECTED)) {
    // With every controller it is the same: asking again would not help.
    o.kind = Outcome::Kind::kHelloReply;
    o.status = E_XCE_AUTH;
    frame->message =
        "the controllers and this client do not accept each other's certificates; the log says why";
    frame->served = true;
  }
  const Decision d = decide_shared(config, &frame->call, o);
  return d.action == Action::kConnect ? 0 : d.result;
}

// Remembers whose certificate, or who our certificate, did not please when last tried. True when
// that is all candidates.
bool Context::note_certificate(const Target& target, bool rejected) {
  if (target.candidate < 0) return false;
  const uint32_t bit = 1u << target.candidate;
  rejected_ = rejected ? rejected_ | bit : rejected_ & ~bit;
  return rejected_ == (1u << candidates_.size()) - 1;
}

int Context::after_hello(Lock* lock, const FailoverConfig& config, Frame* frame, const Handshake& h,
                         const Target& target) {
  const HelloAnswer a = read_hello(h.words);
  Outcome o;
  o.from = target;
  if (a.ok) {
    o.kind = Outcome::Kind::kHelloReply;
    o.status = a.status;
    o.term = a.term;
    o.cluster_id = a.cluster_id;
    o.has_hint = a.status == E_XCE_REDIRECT && !a.host.empty() && a.port != 0;
    if (o.has_hint) o.hint = target_of(a.host, a.port);
  }
  const uint64_t old_cluster = failover_.cluster_id;
  Decision d = decide_shared(config, &frame->call, o);
  if (d.action == Action::kProceed) {
    if (!a.members.empty()) set_learned(a.members);
    if (old_cluster != 0 && a.cluster_id != 0 && a.cluster_id != old_cluster)
      queue_log(XCE_LOG_WARN, absl::StrCat(to_string(address_of(target)),
                                           " belongs to another cluster than before"));
    ++generation_;
    ++stats_.reconnects;
    if (!born_) birth_ = a.applied;
    born_ = true;
    const bool hook_ok = run_hook(lock) >= 0;
    if (stopped_) return -ECANCELED;
    if (hook_ok && closed_.count(h.connection) == 0) {
      link_ = Link{h.connection, target, a.applied};
      return 0;
    }
    o.kind = hook_ok ? Outcome::Kind::kTransport : Outcome::Kind::kHookFailed;
    d = decide_shared(config, &frame->call, o);
    note_attempt(target, hook_ok ? "ended early" : "rejoin failed");
  } else {
    note_attempt(target, d.fenced ? "is primary of an old term"
                         : a.ok   ? xce_errname(a.status)
                                  : "EPROTO");
  }
  endpoint_->close(h.connection);
  if (d.action == Action::kConnect) return 0;
  frame->message = a.message;
  frame->served = d.action == Action::kReturn;
  return d.result;
}

int Context::run_hook(Lock* lock) {
  const xcecli_reconnect_cb cb = reconnect_cb_;
  void* const arg = reconnect_arg_;
  if (cb == nullptr) return 0;
  lock->unlock();
  in_hook_of = this;
  const int rc = cb(static_cast<xcecli_ctx*>(this), arg);
  in_hook_of = nullptr;
  lock->lock();
  return rc;
}

// decide() on the shared state, with what follows from it for all: counts and log lines.
Decision Context::decide_shared(const FailoverConfig& config, CallState* call,
                                const Outcome& outcome) {
  const double random = std::uniform_real_distribution<double>(0, 1)(random_);
  const int retries_before = call->retries;
  const Decision d = decide(config, &failover_, call, outcome, now_ms(), random);
  passes_ += static_cast<uint64_t>(call->retries - retries_before);
  stats_.retries += static_cast<uint64_t>(call->retries - retries_before);
  stats_.backoff_ms += static_cast<uint64_t>(d.delay_ms);
  if (outcome.has_hint) ++stats_.redirects;
  const bool moved = d.action == Action::kConnect || d.action == Action::kGiveUp;
  if (moved && !(failover_.target == outcome.from)) {
    ++stats_.rotations;
    queue_log(XCE_LOG_INFO, absl::StrCat("failing over from ", to_string(address_of(outcome.from)),
                                         " to ", to_string(address_of(failover_.target))));
  }
  return d;
}

// On the loop's thread.
void Context::on_closed(uint64_t id, int error, int probed) {
  bool lost = false;
  {
    Lock lock(mu_);
    closed_.insert(id);
    if (link_.id == id && id != 0) {
      Outcome o;
      o.from = link_.target;
      o.has_hint = probed >= 0;
      if (o.has_hint) o.hint = Target{probed, "", 0};
      link_ = Link{};
      lost = true;
      note_attempt(o.from, xce_errname(error));
      CallState nobody;
      nobody.deadline_ms = INT64_MAX;
      decide_shared(failover_config_, &nobody, o);
    }
  }
  flush_logs();
  if (!lost) return;
  xcecli_disconnect_cb cb;
  void* arg;
  {
    std::lock_guard<std::mutex> lock(push_mu_);
    cb = disconnect_cb_;
    arg = disconnect_arg_;
  }
  if (cb != nullptr) cb(static_cast<xcecli_ctx*>(this), arg);
}

}  // namespace xce::client
