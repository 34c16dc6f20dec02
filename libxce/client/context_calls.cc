// The calls of a context: encode, send, wait, decide, again.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "libxce/client/context_frame.h"
#include "libxce/net/digest.h"
#include "libxce/wire/codec.h"

namespace xce::client {

bool in_hook(const Context* context);  // context_repair.cc

namespace {

constexpr int kFireAndForgetMs = 1000;  // for a repair on behalf of a call without a reply

template <size_t N>
void copy_text(const std::string& from, char (&to)[N]) {
  std::snprintf(to, N, "%s", from.c_str());
}

}  // namespace

int Context::check_usable() {
  if (forked()) return -E_XCE_FORKED;
  if (in_hook(this) || (endpoint_ != nullptr && endpoint_->on_loop_thread())) return -EDEADLK;
  Lock lock(mu_);
  if (stopped_) return -ECANCELED;
  return started_ ? 0 : -EINVAL;
}

int Context::run(Operation* op) {
  Frame frame(op, now_ms(), thread_deadline(uid_, config_.call_deadline_ms));
  int rc = check_usable();
  if (op->category == Category::kWrite) op->chosen = take_thread_op_id(uid_);
  if (rc == 0) {
    {
      Lock lock(mu_);
      ++stats_.calls;
      frame.begin(passes_, attempts_);
    }
    rc = op->category == Category::kFireAndForget ? run_fire_and_forget(op, &frame)
         : op->any_node                           ? run_anywhere(op, &frame)
                                                  : run_with_reply(op, &frame);
  } else if (rc == -EINVAL) {
    frame.message = "the context was not started: call xcecli_start first";
  }
  op->maybe_applied = frame.call.maybe_applied;
  return finish(*op, &frame, rc);
}

int Context::run_fire_and_forget(Operation* op, Frame* frame) {
  Link link;
  {
    Lock lock(mu_);
    link = link_;
    frame->call.deadline_ms =
        std::min(frame->call.deadline_ms, frame->started_ms + kFireAndForgetMs);
    if (link.id == 0 &&
        failover_.not_before_ms > now_ms()) {  // the cluster is down: no backoff for these
      ++stats_.ff_dropped;
      return -E_XCE_NOT_READY;
    }
  }
  if (link.id == 0) {
    FailoverConfig one_pass = failover_config_;
    one_pass.max_retries = 0;
    if (const int rc = acquire(one_pass, frame, &link); rc < 0) {
      Lock lock(mu_);
      ++stats_.ff_dropped;
      return rc;
    }
  }
  uint64_t seq;
  {
    Lock lock(mu_);
    seq = next_seq_++;
  }
  const std::string bytes = encode(*op, *frame, seq);
  if (bytes.empty()) {
    frame->message = "the message is too large";
    return -E_XCE_INVALID;
  }
  endpoint_->send(link.id, seq, bytes, nullptr);
  return 0;
}

// A write of its own sequence number.
int Context::take_op_seq(Operation* op, Frame* frame) {
  Lock lock(mu_);
  // No more writes unanswered at once than the cluster remembers of a client.
  const bool room = changed_.wait_until(lock, time_point_of(frame->call.deadline_ms), [&] {
    return stopped_ || open_ops_.empty() || next_op_seq_ - *open_ops_.begin() < XCE_DEDUP_WINDOW;
  });
  if (stopped_) return -ECANCELED;
  if (!room) return -E_XCE_BUSY;
  op->op_seq = next_op_seq_++;
  open_ops_.insert(op->op_seq);
  return 0;
}

// A write under an id that its caller chose: to the cluster, the only write of a client of that id.
void Context::take_chosen_id(Operation* op, Frame* frame) {
  op->op_seq = frame->lowest_unanswered = 1;
  if (op->chosen->birth != 0) {
    frame->birth = op->chosen->birth;
    frame->has_birth = frame->keeps_birth = true;
    frame->call.sends = 1;  // perhaps sent by an earlier process: "sent only once" is not known
  }
  capnp::MallocMessageBuilder message;
  const auto asked = message.initRoot<wire::Op>();
  op->encode(asked);
  // The canonical form is the same in every version that knows these fields.
  const auto words = capnp::canonicalize(asked.asReader());
  const auto bytes = words.asBytes();
  op->op_hash = net::digest128({reinterpret_cast<const char*>(bytes.begin()), bytes.size()})[0] | 1;
}

int Context::run_with_reply(Operation* op, Frame* frame) {
  if (op->chosen.has_value())
    take_chosen_id(op, frame);
  else if (const int rc = frame->call.write ? take_op_seq(op, frame) : 0; rc < 0)
    return rc;
  int result = 0;
  for (;;) {
    Link link;
    result = acquire(failover_config_, frame, &link);
    if (result < 0 || attempt(op, frame, link, &result)) break;
  }
  if (frame->call.write && !op->chosen.has_value()) {
    Lock lock(mu_);
    open_ops_.erase(op->op_seq);
    changed_.notify_all();
  }
  return result;
}

bool Context::attempt(Operation* op, Frame* frame, const Link& link, int* result) {
  uint64_t seq;
  {
    Lock lock(mu_);
    seq = next_seq_++;
    if (!frame->keeps_birth) {
      if (frame->wants_new_birth) birth_ = link.applied;
      if (frame->wants_new_birth || !frame->has_birth) frame->birth = birth_;
    }
    frame->has_birth = true;
    frame->wants_new_birth = false;
    if (!op->chosen.has_value())
      frame->lowest_unanswered = open_ops_.empty() ? next_op_seq_ : *open_ops_.begin();
  }
  std::string bytes = encode(*op, *frame, seq);
  if (bytes.empty()) {
    frame->message = absl::StrCat("the request is larger than ", net::kMaxFrame, " bytes");
    *result = -E_XCE_INVALID;
    return true;
  }
  const auto waiter = std::make_shared<Waiter>();
  endpoint_->send(link.id, seq, std::move(bytes), waiter);
  const bool answered = waiter->wait_until(time_point_of(frame->call.deadline_ms));
  // Written or withdrawn, once for all: a request that is still on its way to the loop must not
  // be sent after its caller was told "not applied".
  const bool written = answered ? waiter->written() : waiter->withdraw();
  if (written) ++frame->call.sends;
  if (!answered) {
    endpoint_->forget(link.id, seq);
    if (frame->call.write && written) frame->call.maybe_applied = true;
    // Alive or not, nobody served within the deadline: one distinct status for all of it (L3.3,
    // L3.4).
    *result = -E_XCE_NOT_READY;
    frame->message = absl::StrCat("no answer from ", to_string(address_of(link.target)),
                                  " within the call's deadline");
    return true;
  }
  if (waiter->error() == 0) return on_answer(op, frame, link, waiter->words(), result);
  return on_no_answer(op, frame, link, waiter->error(), written, result);
}

bool Context::on_no_answer(Operation* op, Frame* frame, const Link& link, int error, bool written,
                           int* result) {
  (void)op;
  Outcome o;
  o.from = link.target;
  o.delivered = written;
  {
    Lock lock(mu_);
    if (stopped_) {
      if (frame->call.write && written) frame->call.maybe_applied = true;
      *result = -ECANCELED;
      return true;
    }
    if (link_.id == link.id) note_attempt(link.target, xce_errname(error));
  }
  const Decision d = settle(frame, link, o);
  *result = d.result;
  return d.action != Action::kConnect;
}

bool Context::on_answer(Operation* op, Frame* frame, const Link& link, const Words& words,
                        int* result) {
  Outcome o;
  o.kind = Outcome::Kind::kReply;
  o.from = link.target;
  std::string message;
  int reply_outcome = 0, accepted = 0;
  try {
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()),
        wire::reader_options(words.size() * 8));
    const auto reply = reader.getRoot<wire::ServerMessage>().getReply();
    o.status = reply.getStatus();
    o.term = reply.getTerm();
    o.cluster_id = reply.getClusterId();
    if (op->any_node) o.term = o.cluster_id = 0;  // it need not be a primary's: no fence
    message = reply.getMessage().cStr();
    reply_outcome = reply.getOutcome();
    const std::string host = reply.getRedirectHost().cStr();
    o.has_hint = o.status == E_XCE_REDIRECT && !host.empty() && reply.getRedirectPort() != 0;
    if (o.has_hint) o.hint = target_of(host, reply.getRedirectPort());
    if (o.status == E_XCE_DUP_JOB && reply.getBody().isSubmitted()) {
      const auto dup = reply.getBody().getSubmitted();
      op->dup = {dup.getJobId(), dup.getCount(), dup.getExisting()};
    }
    const Decision d = settle(frame, link, o);
    if (d.action == Action::kConnect) {
      frame->wants_new_birth = d.new_birth;
      return false;
    }
    if (d.action == Action::kReturn && o.status == 0) {
      accepted = op->accept ? op->accept(reply) : 0;
      frame->served = true;
      *result = accepted;
      if (accepted < 0) frame->message = "the answer is not what the operation expects";
      return true;
    }
    frame->message = message;
    frame->reply_outcome = d.action == Action::kReturn ? reply_outcome : 0;
    frame->served = d.action == Action::kReturn;
    *result = d.result;
    return true;
  } catch (const kj::Exception& e) {
    frame->message = absl::StrCat("malformed answer: ", e.getDescription().cStr());
    if (frame->call.write) frame->call.maybe_applied = true;
    *result = -EPROTO;
    return true;
  }
}

Decision Context::settle(Frame* frame, const Link& link, const Outcome& o) {
  Decision d;
  bool left = false;
  {
    Lock lock(mu_);
    frame->call.retries = static_cast<int>(passes_ - frame->passes_before);
    if (link_.id !=
        link.id) {  // others have left this connection: only this call learns from the outcome
      FailoverState copy = failover_;
      d = decide(failover_config_, &copy, &frame->call, o, now_ms(), 0);
    } else {
      d = decide_shared(failover_config_, &frame->call, o);
      left = d.action == Action::kConnect || d.action == Action::kGiveUp;
      if (left) link_ = Link{};
      if (left && o.kind == Outcome::Kind::kReply)
        note_attempt(link.target, d.fenced ? "is primary of an old term" : xce_errname(o.status));
    }
  }
  if (left) endpoint_->close(link.id);
  return d;
}

std::string Context::encode(const Operation& op, const Frame& frame, uint64_t seq) {
  capnp::MallocMessageBuilder message;
  auto request = message.initRoot<wire::Request>();
  request.setSeq(seq);
  request.setClientIdHi(op.chosen ? op.chosen->hi : client_id_[0]);
  request.setClientIdLo(op.chosen ? op.chosen->lo : client_id_[1]);
  if (op.category == Category::kWrite) {
    request.setOpHash(op.op_hash);
    request.setOpSeq(op.op_seq);
    request.setLowestUnanswered(frame.lowest_unanswered);
    request.setBirth(frame.birth);
    request.setResent(frame.call.maybe_applied);
  }
  request.setDeadlineMs(
      static_cast<uint32_t>(std::max<int64_t>(1, frame.call.deadline_ms - now_ms())));
  request.setStaleOk(op.stale_ok);
  if (const Person* person = thread_person(uid_)) {
    auto to = request.initOnBehalf();
    to.setUser(person->user);
    to.setUid(person->uid);
    to.setGid(person->gid);
    to.setAdministrator(person->administrator);
  }
  op.encode(request.initOp());
  const std::string payload = wire::flatten(message);
  std::string out;
  if (payload.size() <= net::kMaxFrame) net::append_frame(payload, &out);
  return out;
}

// What the endpoint sends by itself: hello on a new connection, nop as a ping.
std::string Context::own_frame(uint64_t seq) const {
  capnp::MallocMessageBuilder message;
  auto request = message.initRoot<wire::Request>();
  request.setSeq(seq);
  request.setClientIdHi(client_id_[0]);
  request.setClientIdLo(client_id_[1]);
  request.setDeadlineMs(2000);
  if (seq == kHelloSeq)
    put_hello(request.initOp().initHello());
  else
    request.initOp().setNop();
  std::string out;
  net::append_frame(wire::flatten(message), &out);
  return out;
}

void Context::put_hello(wire::Hello::Builder hello) const {
  hello.setRole(static_cast<wire::Role>(config_.role));
  hello.setName(config_.name);
  hello.setUser(user_);
  hello.setUid(geteuid());
  hello.setGid(getegid());
  hello.setVersion(kVersion);
  hello.setPid(static_cast<uint32_t>(pid_));
}

// Tells this thread and the log how the call ended.
int Context::finish(const Operation& op, Frame* frame, int result) {
  {
    Lock lock(mu_);
    finish_locked(op, frame, result);
  }
  flush_logs();
  return result;
}

int Context::finish_locked(const Operation& op, Frame* frame, int result) {
  xce_error_t* e = last_error();
  *e = {};
  e->status = result;
  const uint64_t failed = attempts_ - frame->attempts_before;
  e->attempts = static_cast<int>(failed) + (result >= 0 || frame->served ? 1 : 0);
  if (result >= 0) return result;
  ++stats_.failures;
  e->outcome = frame->call.maybe_applied ? XCE_OUTCOME_MAYBE : XCE_NOT_APPLIED;
  if (frame->reply_outcome == 1 && !frame->call.maybe_applied) e->outcome = XCE_NOT_APPLIED;
  if (frame->reply_outcome == 2) e->outcome = XCE_OUTCOME_MAYBE;
  if (frame->reply_outcome == 3) e->outcome = XCE_APPLIED;
  e->job_id = op.dup.job_id;
  e->same_body = op.dup.existing;
  std::string trail;
  const size_t shown = std::min<size_t>(trail_.size(), failed);
  for (size_t i = trail_.size() - shown; i < trail_.size(); ++i)
    absl::StrAppend(&trail, trail.empty() ? "" : "; ", trail_[i].second, " at ",
                    trail_[i].first - frame->started_ms, " ms");
  copy_text(trail, e->trail);
  std::string message = frame->message;
  if (result == -E_XCE_NOT_READY) {
    const int64_t took = now_ms() - frame->started_ms;
    if (op.category != Category::kFireAndForget) {
      ++stats_.exhaustions;
      queue_log(XCE_LOG_WARN, absl::StrCat("no controller serves as primary: gave up after ",
                                           failed, " attempts in ", took, " ms (", trail, ")"));
    }
    message =
        absl::StrCat("the cluster is not ready: none of its controllers served as primary in ",
                     failed, " attempts over ", took, " ms", message.empty() ? "" : ": ", message);
    if (e->outcome == XCE_OUTCOME_MAYBE)
      absl::StrAppend(&message, "; the request may have been applied");
  }
  if (message.empty()) message = xce_strerror(result);
  copy_text(message, e->message);
  return result;
}

}  // namespace xce::client
