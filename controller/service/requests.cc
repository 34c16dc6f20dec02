// Service: the requests, one by one.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/service/reads.h"
#include "controller/service/service.h"
#include "libxce/net/digest.h"
#include "spdlog/spdlog.h"
#include "xce/errnox.h"

namespace xce::service {
namespace {

constexpr size_t kMaxWriteBytes = 3 * 1024 * 1024 + 256 * 1024;  // of one command in the log

const char* word(NodeRole role) {
  switch (role) {
    case NodeRole::kLeader: return "leader";
    case NodeRole::kFollower: return "follower";
    case NodeRole::kCandidate: return "candidate";
    case NodeRole::kUnavailable: break;
  }
  return "unknown";
}

// An operation id that its caller chose is that caller's own: nobody else can read its answer, or
// use it up first.
ClientId owned_op_id(const ClientId& chosen, const Identity& who) {
  const auto id = net::digest128(absl::StrCat("op id ", chosen.hi, " ", chosen.lo, " ",
                                              name_of(who.role), " ", who.uid, " ", who.user));
  return {id[0], id[1]};
}

}  // namespace

Answer Service::answer_to(const Request& request) const {
  Answer answer;
  answer.conn = request.conn;
  answer.seq = request.seq;
  answer.term = role_.term;
  answer.index = state_->applied();
  answer.cluster_id = replica_->cluster_id();
  answer.ask = request.ask;
  answer.counted = !is_one_way(request.ask);
  return answer;
}

void Service::answer_status(const Request& request, int32_t status, std::string message) {
  Answer failed = answer_to(request);
  failed.status = status;
  failed.message = std::move(message);
  failed.outcome = kNotApplied;
  answer(std::move(failed));
}

void Service::fill_refusal(Answer* answer) const {
  const uint64_t self = options_.node_id;
  answer->term = role_.term;
  answer->index = state_->applied();
  answer->cluster_id = replica_->cluster_id();
  answer->outcome = kNotApplied;
  answer->status = E_XCE_NOT_READY;
  if (disk_ != "ok") {
    answer->message = absl::StrCat("node ", self, " does not serve: ", disk_);
    return;
  }
  switch (role_.role) {
    case NodeRole::kLeader:
      answer->message =
          absl::StrCat("node ", self, " was just elected and is catching up; try again");
      return;
    case NodeRole::kCandidate:
      answer->message = absl::StrCat("node ", self, " is electing a primary; try again");
      return;
    case NodeRole::kUnavailable:
      answer->message = absl::StrCat("node ", self, " is starting; try again");
      return;
    case NodeRole::kFollower: break;
  }
  if (role_.leader != 0 && role_.leader != self &&
      replica_->address_of(role_.leader, &answer->redirect_host, &answer->redirect_port)) {
    answer->status = E_XCE_REDIRECT;
    answer->message =
        absl::StrCat("node ", self, " is a standby; the primary is node ", role_.leader, " at ",
                     answer->redirect_host, ":", answer->redirect_port);
    return;
  }
  answer->status = E_XCE_NOMASTER;
  answer->message = absl::StrCat("node ", self, " is a standby and knows of no primary; try again");
}

void Service::refuse(const Request& request) {
  Answer refusal = answer_to(request);
  fill_refusal(&refusal);
  if (request.ask == Ask::kHello) refusal.body = hello_body(request);  // who this is, all the same
  answer(std::move(refusal));
}

// ---- hello, subscriptions -----------------------------------------------------------------------

HelloBody Service::hello_body(const Request& request) const {
  HelloBody body;
  body.node_id = options_.node_id;
  body.applied = state_->applied();
  body.server_ms = clock_.wall_ms();
  body.scheduler_epoch = state_->scheduler().epoch;
  if (serving()) {
    ClusterView view;
    replica_->describe(&view);
    std::string host;
    uint16_t port = 0;
    for (const NodeView& node : view.nodes)
      if (view.nodes.size() > 1 && replica_->address_of(node.id, &host, &port))
        body.members.emplace_back(host, port);
  }
  const auto conn = conns_.find(request.conn);
  body.joined = conn != conns_.end() && conn->second.joined && hub_.subscribed(request.conn);
  if (request.who->role == Role::kWorker) {
    body.outbox_applied = state_->outbox_applied(request.who->name);
    const auto host = state_->hosts().find(request.who->name);
    body.host_known = host != state_->hosts().end();
    if (body.joined && body.host_known) body.lease_ms = host->second.lease_ms;
  }
  return body;
}

// A worker's hello renews the leases of its jobs, so it must be answered by who is still the
// primary: after a barrier.
void Service::hello(const Request& request) {
  if (request.who->role == Role::kWorker)
    read(request);
  else
    answer_now(request);
}

void Service::subscribe(const Request& request) {
  const auto conn = conns_.find(request.conn);
  if (conn == conns_.end()) return;
  const auto& what = std::get<Subscription>(request.what);
  const Identity& who = *request.who;
  if (what.jobs.empty()) {
    hub_.subscribe(request.conn, who.role, who.name, conn->second.flow, what.from);
  } else if (who.role == Role::kUser || who.role == Role::kApiserver) {
    hub_.watch(request.conn, who.role, conn->second.flow, what.jobs);
  } else {
    answer_status(request, E_XCE_INVALID, "workers and schedulers hear of more than single jobs");
    return;
  }
  answer(answer_to(request));
}

void Service::joined(ConnId id) {
  const auto conn = conns_.find(id);
  if (conn == conns_.end()) return;  // it is gone meanwhile
  conn->second.joined = true;
  if (conn->second.who->role == Role::kWorker)
    liveness_.heard(conn->second.who->name, clock_.monotonic_us() / 1000);
  if (conn->second.who->role == Role::kScheduler) {
    scheduler_gone_ = false;
    scheduler_seen_ms_ = clock_.monotonic_us() / 1000;
  }
  hub_.join(id, conn->second.who->role, conn->second.who->name, conn->second.flow);
  spdlog::info("{} {} joined", name_of(conn->second.who->role), conn->second.who->name);
}

// One host has one worker. A process is known by its client id, so a worker's own reconnect is no
// rival.
ConnId Service::rival_of(const Request& request) const {
  const ConnId holder = hub_.worker_of(request.who->name);
  const auto other = conns_.find(holder);
  if (holder == 0 || holder == request.conn || other == conns_.end()) return 0;
  if (other->second.client == request.client) return 0;
  const uint64_t silent_ms = clock_.monotonic_us() / 1000 - other->second.heard_ms;
  return silent_ms < options_.host_grace_ms ? holder : 0;
}

// ---- writes -------------------------------------------------------------------------------------

void Service::write(Request request) {
  Command command;
  command.client =
      request.op_hash == 0 ? request.client : owned_op_id(request.client, *request.who);
  command.op_hash = request.op_hash;
  command.op_seq = request.op_seq;
  command.lowest_unanswered = request.lowest_unanswered;
  command.birth = request.birth;
  command.resent = request.resent;
  command.who = *request.who;
  command.who.groups = std::move(request.groups);
  command.op = std::move(std::get<Op>(request.what));
  // Identity is the connection's; what the request claims about its sender is only taken from those
  // who speak for others.
  if (auto* join = std::get_if<Join>(&command.op)) {
    if (request.op_hash != 0) {
      answer_status(request, E_XCE_INVALID, "a join takes no operation id of its caller's");
      return;
    }
    if (join->role != request.who->role) {
      answer_status(request, E_XCE_INVALID,
                    absl::StrCat("join as ", name_of(join->role), " on a connection of role ",
                                 name_of(request.who->role)));
      return;
    }
    if (join->role == Role::kWorker) {
      join->host.name = request.who->name;
      join->lease_ms = options_.lease_ms;
      if (const std::string& name = join->host.name; std::any_of(
              name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; })) {
        answer_status(request, E_XCE_INVALID,
                      "a host's name has no control characters: give this worker another --name");
        return;
      }
      if (rival_of(request) != 0) {
        answer_status(request, E_XCE_BUSY,
                      absl::StrCat("another worker runs as host ", request.who->name,
                                   ": stop that one, or give this one another --name"));
        return;
      }
      // A silent one must join anew if it ever comes back.
      if (const ConnId silent = hub_.worker_of(request.who->name);
          silent != 0 && silent != request.conn)
        hub_.end(silent);
    }
  }
  if (auto* notify = std::get_if<Notify>(&command.op)) notify->host = request.who->name;
  if (auto* spec = std::get_if<JobSpec>(&command.op)) {
    if (request.who->role == Role::kUser || spec->user.empty()) {
      spec->user = request.who->user;
      spec->uid = request.who->uid;
      spec->gid = request.who->gid;
    }
  }
  // A small message may say the same large thing many times over (Cap'n Proto pointers may share
  // their target).
  if (const size_t bytes = guess_bytes(command.op); bytes > kMaxWriteBytes) {
    answer_status(request, E_XCE_INVALID,
                  absl::StrCat(name_of(request.ask), " of ", bytes, " bytes is over the limit of ",
                               kMaxWriteBytes, " bytes: split it"));
    return;
  }
  writes_.add(std::move(command),
              Waiter{request.conn, request.seq, request.ask, request.deadline_ms});
}

void Service::written(const Waiter& waiter, const Writes::Fate& fate) {
  if (waiter.conn == 0) return;
  Answer reply;
  reply.conn = waiter.conn;
  reply.seq = waiter.seq;
  reply.term = role_.term;
  reply.index = state_->applied();
  reply.cluster_id = replica_->cluster_id();
  reply.outcome = kNotApplied;
  reply.ask = waiter.ask;
  reply.counted = !is_one_way(waiter.ask);
  switch (fate.kind) {
    case Writes::Fate::kResult:
      reply.index = fate.index;
      fill_result(waiter, *fate.result, &reply);
      if (is_one_way(waiter.ask)) {
        ++requests_[{waiter.ask, reply.status}];
        return;
      }
      break;
    case Writes::Fate::kTooLate:
      reply.status = E_XCE_NOT_READY;
      reply.message = "the caller's deadline passed before the write could be proposed";
      break;
    case Writes::Fate::kBusy:
      reply.status = E_XCE_BUSY;
      reply.message = "more writes are under way than the disks keep up with; try again";
      break;
    case Writes::Fate::kNotApplied:
      if (serving()) {
        reply.status = E_XCE_NOT_READY;
        reply.message =
            "the write was not accepted by the log (leadership is being handed over?); try again";
      } else {
        fill_refusal(&reply);
        if (disk_ == "ok") reply.status = E_XCE_STANDBY;
      }
      break;
    case Writes::Fate::kUnknown:
      reply.status = E_XCE_OUTCOME_UNKNOWN;
      reply.message =
          "this node lost the primary role after proposing the write: it may or may not be applied";
      reply.outcome = kUnknown;
      break;
  }
  answer(std::move(reply));
}

void Service::fill_result(const Waiter& waiter, const Result& result, Answer* answer) {
  answer->status = result.status;
  answer->message = result.message;
  answer->outcome = result.status == 0                       ? kNone
                    : result.status == E_XCE_OUTCOME_UNKNOWN ? kUnknown
                                                             : kNotApplied;
  const bool ok = result.status == 0;
  switch (waiter.ask) {
    case Ask::kJoin:
      if (!ok) break;
      joined(waiter.conn);
      answer->body =
          JoinedBody{result.revision, result.epoch, result.active, result.outbox_applied};
      break;
    case Ask::kJobSubmit:
    case Ask::kRunTask:
      if (ok || result.status == E_XCE_DUP_JOB)
        answer->body = SubmittedBody{result.job, result.count, result.existing};
      break;
    case Ask::kJobCtrl:
    case Ask::kSetPendReason:
      if (ok) answer->body = AffectedBody{result.count};
      break;
    case Ask::kJobDispatch:
      if (ok) answer->body = result.item_status;
      break;
    default: break;
  }
}

// ---- reads --------------------------------------------------------------------------------------

void Service::read(Request request) { barrier_reads_.push_back(std::move(request)); }

void Service::barrier_done(std::vector<Request> reads, bool leader) {
  for (Request& request : reads) {
    if (leader && serving()) {
      ready_reads_.push_back(std::move(request));
      continue;
    }
    Answer lost = answer_to(request);
    fill_refusal(&lost);
    if (disk_ == "ok" && lost.status != E_XCE_NOT_READY) lost.status = E_XCE_STANDBY;
    answer(std::move(lost));
  }
}

void Service::answer_now(const Request& request) {
  if (request.ask == Ask::kJobLog) {
    ask_for_log(request);
    return;
  }
  if (archive_ != nullptr) {
    if (std::optional<HalfAnswer> half = half_of(*state_, request)) {
      ask_archive(request, *std::move(half));
      return;
    }
  }
  Answer reply = answer_to(request);
  if (request.ask == Ask::kHello)
    reply.body = hello_body(request);
  else
    answer_read(*state_, request, &reply);
  if (auto* page = std::get_if<JobPageBody>(&reply.body))
    for (Job& job : page->jobs)
      if (job.state == JobState::kPending) job.estimated_start_ms = estimates_.of(job.id);
  answer(std::move(reply));
}

ClusterView Service::cluster_view() const {
  ClusterView view;
  replica_->describe(&view);
  view.node_id = options_.node_id;
  view.role = word(role_.role);
  view.leader_id = role_.leader;
  view.term = role_.term;
  view.applied = std::max(view.applied, state_->applied());
  view.uptime_ms = static_cast<int64_t>((clock_.monotonic_us() - started_us_) / 1000);
  const auto stats = state_->stats();
  view.jobs_pending = stats.pending;
  view.jobs_running = stats.running;
  view.jobs_finished = stats.finished;
  view.sessions = stats.sessions;
  view.last_election_ms = last_election_ms_;
  view.last_election_took_ms = last_election_took_ms_;
  view.ready = serving();
  view.disk = disk_;
  if (!serving() || !scheduler_gone_) view.scheduler = state_->scheduler().name;
  for (NodeView& node : view.nodes) {
    if (node.id == options_.node_id)
      node.role = view.role;
    else
      node.role = node.id == role_.leader ? "leader" : node.connected ? "follower" : "unknown";
    if (!node.voter && node.role != "unknown") node.role = "joining";
  }
  return view;
}

void Service::cluster(const Request& request) {
  ClusterView view = cluster_view();
  Answer reply = answer_to(request);
  if (request.ask == Ask::kClusterConf)
    reply.body = ClusterConfBody{std::move(view)};
  else
    reply.body = std::move(view);
  answer(std::move(reply));
}

Telemetry Service::telemetry() const {
  Telemetry out;
  out.taken_us = clock_.monotonic_us();
  out.cluster = cluster_view();
  for (const NodeView& node : out.cluster.nodes)
    if (node.id == role_.leader) out.primary = absl::StrCat(node.host, ":", node.port);
  for (int s = 0; s < kJobStates; ++s) {
    JobFilter filter;
    filter.states = 1u << s;
    out.jobs[s] = state_->jobs(filter, 1).total;
  }
  out.requests = requests_;
  out.elections = elections_;
  out.proposal_commands = writes_.commands_an_entry();
  out.writes_under_way = writes_.under_way();
  out.writes_under_way_bytes = writes_.under_way_bytes();
  out.reads_waiting = barrier_reads_.size() + waiting_reads_ + ready_reads_.size();
  replica_->measure(&out.disk);
  return out;
}

}  // namespace xce::service
