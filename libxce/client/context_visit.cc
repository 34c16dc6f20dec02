// Operations that any controller answers for itself (clusterstatus, clusterconf): the primary when
// one serves; otherwise the first candidate that answers hello, whatever it says it is. Such a
// visit has a connection of its own: it changes nothing that other calls share, runs no hook and
// raises no generation. Any thread; blocks within the call's deadline.
#include <algorithm>
#include <cerrno>

#include "libxce/client/context_frame.h"
#include "libxce/wire/codec.h"

namespace xce::client {

int Context::run_anywhere(Operation* op, Frame* frame) {
  FailoverConfig one_pass = failover_config_;
  one_pass.max_retries = 0;
  bool down;
  {
    Lock lock(mu_);
    down = link_.id == 0 && failover_.not_before_ms > now_ms();
  }
  int result = -E_XCE_NOT_READY;
  while (!down) {
    Link link;
    result = acquire(one_pass, frame, &link);
    if (result == 0 && !attempt(op, frame, link, &result)) continue;
    break;
  }
  if (result != -E_XCE_NOT_READY) return result;
  std::vector<Target> targets;
  {
    Lock lock(mu_);
    for (int i = 0; i < failover_config_.candidates; ++i)
      targets.push_back(Target{
          (std::max(failover_.target.candidate, 0) + i) % failover_config_.candidates, "", 0});
  }
  for (size_t first = 0; first < targets.size() && now_ms() < frame->call.deadline_ms; ++first)
    if (visit(op, frame, {targets.begin() + static_cast<ptrdiff_t>(first), targets.end()}, &result))
      break;
  return result;
}

// Connects to the first of `targets`, those after it joining the race when it is silent, and asks
// who answers first. True with *result when the call is over.
bool Context::visit(Operation* op, Frame* frame, const std::vector<Target>& targets, int* result) {
  std::vector<Address> addresses;
  for (const Target& t : targets) addresses.push_back(address_of(t));
  const Handshake h = endpoint_->handshake(addresses, time_point_of(frame->call.deadline_ms));
  const Target& target = targets[h.target];
  uint64_t seq;
  {
    Lock lock(mu_);
    if (stopped_) {
      *result = -ECANCELED;
      return true;
    }
    if (h.connection == 0) note_attempt(target, xce_errname(h.error));
    seq = next_seq_++;
  }
  if (h.connection == 0) return false;
  const auto waiter = std::make_shared<Waiter>();
  endpoint_->send(h.connection, seq, encode(*op, *frame, seq), waiter);
  const bool answered = waiter->wait_until(time_point_of(frame->call.deadline_ms));
  const int error = answered ? waiter->error() : ETIMEDOUT;
  const bool over = error == 0 && take_visit(op, frame, target, waiter->words(), result);
  if (!over && error != 0) {
    Lock lock(mu_);
    note_attempt(target, xce_errname(error));
  }
  endpoint_->close(h.connection);
  return over;
}

bool Context::take_visit(Operation* op, Frame* frame, const Target& target, const Words& words,
                         int* result) {
  try {
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()),
        wire::reader_options(words.size() * 8));
    const auto reply = reader.getRoot<wire::ServerMessage>().getReply();
    if (reply.getStatus() == 0) {
      *result = op->accept(reply);
      frame->served = true;
      return true;
    }
    frame->message = reply.getMessage().cStr();
    Lock lock(mu_);
    note_attempt(target, xce_errname(reply.getStatus()));
  } catch (const kj::Exception&) {
    Lock lock(mu_);
    note_attempt(target, "EPROTO");
  }
  return false;
}

}  // namespace xce::client
