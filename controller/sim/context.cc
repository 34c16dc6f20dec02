#include "controller/sim/context.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "controller/sim/client_message.h"
#include "xce/errnox.h"

namespace xce::sim {
namespace {

constexpr uint64_t kPatience = 2 * kSecond;  // TCP_USER_TIMEOUT
constexpr uint64_t kHandshake = 400 * kMs;   // until another candidate is tried
constexpr uint64_t kSilence = 600 * kMs;     // of a connection on which answers are due
constexpr uint64_t kWatchEvery = 100 * kMs;
constexpr uint64_t kHelloSeq = 0;

}  // namespace

Context::Context(World* world, Network* network, HostId host, ClientId client, Identity who,
                 int controllers)
    : world_(world),
      network_(network),
      host_(host),
      client_(client),
      who_(std::make_shared<const Identity>(std::move(who))),
      random_(world->random().fork()) {
  config_.candidates = controllers;
  config_.max_retries = 1000000;  // the deadline ends a call
  failover_.target.candidate = static_cast<int>(random_.below(static_cast<uint64_t>(controllers)));
  watch();
}

void Context::call(service::Ask ask, decltype(service::Request::what) what, uint64_t deadline_ms,
                   CallDone done) {
  const CallId id = ++last_call_;
  Call& call = calls_[id];
  call.ask = ask;
  call.what = std::move(what);
  call.done = std::move(done);
  call.state.write = service::is_write(ask) && !service::is_one_way(ask);
  call.state.deadline_ms = now_ms() + static_cast<int64_t>(deadline_ms);
  if (call.state.write) {
    call.op_seq = next_op_seq_++;
    open_ops_.insert(call.op_seq);
  }
  world_->after(deadline_ms * kMs, [this, id] {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    if (found->second.seq != 0 && found->second.state.write)
      found->second.state.maybe_applied = true;
    finish(id, -E_XCE_NOT_READY, {});
  });
  if (up_)
    send_call(id);
  else
    look_for_link();
}

void Context::finish(CallId id, int result, const service::Answer& answer) {
  const auto found = calls_.find(id);
  Call call = std::move(found->second);
  calls_.erase(found);
  in_flight_.erase(call.seq);
  open_ops_.erase(call.op_seq);
  CallResult out;
  out.result = result;
  out.maybe_applied = call.state.maybe_applied || answer.outcome == service::kUnknown;
  out.answer = answer;
  out.op_seq = call.op_seq;
  call.done(out);
}

// ---- the connection -----------------------------------------------------------------------------

void Context::look_for_link() {
  if (up_ || connecting_ || calls_.empty()) return;
  connecting_ = true;
  const int64_t wait = failover_.not_before_ms - now_ms();
  world_->after(wait > 0 ? static_cast<uint64_t>(wait) * kMs : 0, [this] { dial(); });
}

void Context::dial() {
  target_ = failover_.target;
  const uint64_t link = ++link_;
  connection_ = network_->dial(host_, target_.candidate + 1, kPatience,
                               [this, link](NetEvent event) { on_event(link, std::move(event)); });
  world_->after(kHandshake, [this, link] {
    if (link == link_ && connecting_) lose_link(true, 0);
  });
}

void Context::on_event(uint64_t link, NetEvent event) {
  if (link != link_) return;
  heard_ = world_->now();
  if (event.kind == NetEvent::kEnd) {
    lose_link(true, 0);
  } else if (event.kind == NetEvent::kUp) {
    network_->send(connection_, 0, ClientPreamble{who_});
    ToServer hello;
    hello.request.ask = service::Ask::kHello;
    hello.request.client = client_;
    hello.request.seq = kHelloSeq;
    network_->send(connection_, 0, std::move(hello));
  } else {
    const service::Answer answer = std::any_cast<ToClient>(&event.data)->answer;
    if (connecting_ && answer.seq == kHelloSeq) {
      on_hello(answer);
      return;
    }
    const auto call = in_flight_.find(answer.seq);
    if (call != in_flight_.end()) on_answer(call->second, answer);
  }
}

client::Decision Context::decide(client::CallState* call, const client::Outcome& outcome) {
  return client::decide(config_, &failover_, call, outcome, now_ms(), random_.unit());
}

client::Outcome Context::outcome_of(const service::Answer& answer,
                                    client::Outcome::Kind kind) const {
  client::Outcome outcome;
  outcome.kind = kind;
  outcome.from = target_;
  outcome.status = answer.status;
  outcome.term = answer.term;
  outcome.cluster_id = answer.cluster_id;
  outcome.has_hint = answer.status == E_XCE_REDIRECT && answer.redirect_port != 0;
  if (outcome.has_hint) outcome.hint.candidate = answer.redirect_port - 1;
  return outcome;
}

void Context::on_hello(const service::Answer& answer) {
  client::CallState nobody;
  nobody.deadline_ms = INT64_MAX;
  const client::Decision decision =
      decide(&nobody, outcome_of(answer, client::Outcome::Kind::kHelloReply));
  if (decision.action != client::Action::kProceed) {
    if (decision.action == client::Action::kReturn)
      world_->wrong("hello was answered with status " + std::to_string(answer.status));
    lose_link(false, 0);
    return;
  }
  connecting_ = false;
  up_ = true;
  ++generation_;
  applied_ = 0;
  if (const auto* const body = std::get_if<service::HelloBody>(&answer.body))
    applied_ = body->applied;
  if (!born_) birth_ = applied_;
  born_ = true;
  send_waiting();
}

// failed: the connection, not the node's word, is the reason, and is to be decided on. All calls in
// flight but `spare` may have reached the node.
void Context::lose_link(bool failed, CallId spare) {
  const bool was_up = up_;
  up_ = connecting_ = false;
  ++link_;
  network_->close(connection_, 0);
  client::Outcome outcome;
  outcome.from = target_;
  if (failed) {
    client::CallState nobody;
    nobody.deadline_ms = INT64_MAX;
    decide(&nobody, outcome);
  }
  if (was_up) {
    outcome.delivered = true;
    for (auto& [id, call] : calls_) {
      if (call.seq == 0 || id == spare) continue;
      client::FailoverState copy = failover_;
      (void)client::decide(config_, &copy, &call.state, outcome, now_ms(), 0);
      call.seq = 0;
    }
    in_flight_.clear();
  }
  look_for_link();
}

// A stopped process does not answer, and its kernel does not tell.
void Context::watch() {
  if (up_ && !in_flight_.empty() && world_->now() - heard_ > kSilence) lose_link(true, 0);
  world_->after(kWatchEvery, [this] { watch(); });
}

// ---- calls --------------------------------------------------------------------------------------

void Context::send_waiting() {
  std::vector<CallId> waiting;
  for (const auto& [id, call] : calls_)
    if (call.seq == 0) waiting.push_back(id);
  for (const CallId id : waiting) send_call(id);
}

void Context::send_call(CallId id) {
  Call* const call = &calls_.at(id);
  if (in_flight_.empty()) heard_ = world_->now();
  if (call->wants_new_birth) birth_ = applied_;
  if (call->wants_new_birth || !call->has_birth) call->birth = birth_;
  call->has_birth = true;
  call->wants_new_birth = false;
  call->seq = ++next_seq_;
  ++call->state.sends;
  in_flight_[call->seq] = id;
  ToServer message;
  service::Request& request = message.request;
  request.seq = call->seq;
  request.client = client_;
  request.ask = call->ask;
  request.what = call->what;
  if (call->state.write) {
    request.op_seq = call->op_seq;
    request.lowest_unanswered = *open_ops_.begin();
    request.birth = call->birth;
    request.resent = call->state.maybe_applied;
  }
  request.deadline_ms =
      static_cast<uint64_t>(std::max<int64_t>(1, call->state.deadline_ms - now_ms()));
  network_->send(connection_, 0, std::move(message));
}

void Context::tell(service::Ask ask, decltype(service::Request::what) what) {
  if (!up_) return;
  ToServer message;
  message.request.seq = ++next_seq_;
  message.request.client = client_;
  message.request.ask = ask;
  message.request.what = std::move(what);
  network_->send(connection_, 0, std::move(message));
}

void Context::on_answer(CallId id, const service::Answer& answer) {
  Call& call = calls_.at(id);
  in_flight_.erase(call.seq);
  call.seq = 0;
  const client::Decision decision =
      decide(&call.state, outcome_of(answer, client::Outcome::Kind::kReply));
  switch (decision.action) {
    case client::Action::kProceed:
    case client::Action::kReturn: finish(id, decision.result, answer); return;
    case client::Action::kConnect:
      call.wants_new_birth = decision.new_birth;
      lose_link(false, id);
      return;
    case client::Action::kGiveUp:
      finish(id, decision.result, answer);
      lose_link(false, 0);
      return;
  }
}

}  // namespace xce::sim
