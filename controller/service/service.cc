#include "controller/service/service.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/service/reads.h"
#include "libxce/wire/codec.h"
#include "spdlog/spdlog.h"
#include "xce/errnox.h"

namespace xce::service {

Service::Service(ServiceOptions options, Clock clock, state::State* state, Replica* replica,
                 Outlet outlet, history::Archive* archive)
    : options_(std::move(options)),
      clock_(std::move(clock)),
      state_(state),
      replica_(replica),
      outlet_(std::move(outlet)),
      archive_(archive),
      hub_(options_.hub),
      writes_(
          replica,
          [this](const Waiter& waiter, const Writes::Fate& fate) { written(waiter, fate); },
          [this](Index index) -> const std::vector<Result>& {
            return index == results_index_ ? results_ : no_results_;
          }),
      liveness_(options_.host_grace_ms),
      log_queries_(options_.first_query_id),
      started_us_(clock_.monotonic_us()),
      leaderless_since_ms_(started_us_ / 1000) {
  hub_.restored(state_->applied());
}

// ---- what comes in ------------------------------------------------------------------------------

void Service::take(std::vector<Inbound> batch) {
  for (Inbound& each : batch) {
    if (auto* request = std::get_if<Request>(&each)) take_request(std::move(*request));
    if (const auto* gone = std::get_if<Closed>(&each)) closed(gone->conn);
    if (auto* peer = std::get_if<PeerConnection>(&each))
      replica_->adopt_peer(peer->fd, std::move(peer->already_read), std::move(peer->tls));
  }
}

void Service::closed(ConnId conn) {
  const auto it = conns_.find(conn);
  const bool was_active = it != conns_.end() && it->second.joined &&
                          it->second.who->role == Role::kScheduler &&
                          it->second.client == state_->scheduler().client;
  hub_.remove(conn);
  conns_.erase(conn);
  backups_.erase(conn);
  // Its process has died, or its connection broke: whoever stands by takes over. Should it come
  // back meanwhile, there are two who take turns, which costs nothing.
  if (was_active && serving()) scheduler_away();
}

void Service::take_request(Request request) {
  if (request.ask == Ask::kHello) {
    Conn& conn = conns_[request.conn];
    conn.who = request.who;
    conn.flow = request.flow;
    conn.client = request.client;
  }
  if (request.ask == Ask::kClusterStatus || request.ask == Ask::kClusterConf) {
    cluster(request);
    return;
  }
  std::string why;
  if (!may_ask(request.who->role, request.ask, &why)) {
    answer_status(request, E_XCE_PERM, std::move(why));
    return;
  }
  if (request.stale_ok && is_read(request.ask) && disk_ == "ok") {
    answer_now(request);
    return;
  }
  if (!serving()) {
    refuse(request);
    return;
  }
  serve(std::move(request));
}

void Service::serve(Request request) {
  const uint64_t now_ms = clock_.monotonic_us() / 1000;
  if (request.who->role == Role::kScheduler) conns_[request.conn].heard_ms = now_ms;
  // A nop is libxce's own ping: it tells that the process's network thread lives, not the worker.
  if (request.who->role == Role::kWorker && request.ask != Ask::kNop) {
    conns_[request.conn].heard_ms = now_ms;
    // Only who has joined speaks for the host: a namesake that is refused must not keep it up.
    if (conns_[request.conn].joined && hub_.subscribed(request.conn))
      liveness_.heard(request.who->name, now_ms);
  }
  switch (request.ask) {
    case Ask::kNop: answer(answer_to(request)); return;
    case Ask::kHeartbeat: return;
    case Ask::kWakeup: hub_.to_schedulers(push::Wakeup{}); return;
    case Ask::kHello: hello(request); return;
    case Ask::kSubscribe: subscribe(request); return;
    case Ask::kUnsubscribe:
      hub_.remove(request.conn);
      answer(answer_to(request));
      return;
    case Ask::kJobLogData: worker_answered(request); return;
    case Ask::kMemberCtrl:
      if (!may_operate(request)) return;
      if (std::get<MemberControl>(request.what).action == MemberControl::kTransfer)
        transfer(request);
      else
        change_members(request);
      return;
    case Ask::kBackup:
      if (may_operate(request)) begin_backup(request);
      return;
    case Ask::kBackupRead: read_backup(request); return;
    case Ask::kEstimates:
      if (const auto& list = std::get<EstimateList>(request.what);
          list.epoch == state_->scheduler().epoch)
        estimates_.take(list);
      return;
    default: break;
  }
  if (is_write(request.ask))
    write(std::move(request));
  else
    read(std::move(request));
}

void Service::apply(Index index, std::string_view bytes) {
  Entry entry;
  try {
    entry = wire::decode_entry(bytes);
  } catch (const wire::CodecError& error) {
    spdlog::critical(
        "log entry {} cannot be read: {}. Nothing was changed; the log or this version is at "
        "fault.",
        index, error.what());
    std::abort();  // going on would make this node's state differ from the others'
  }
  state::Applied applied = state_->apply(index, entry);
  results_ = std::move(applied.results);
  results_index_ = index;
  if (archive_ != nullptr && !applied.departed.empty())
    archive_->add(index, std::move(applied.departed));
  if (serving()) give_up_hosts(applied.events);
  estimates_.forget(applied.events);
  for (const Event& event : applied.events) {
    if (!std::holds_alternative<Queue>(event) && !std::holds_alternative<QueueRemoved>(event))
      continue;
    watch_groups(false);
    break;
  }
  hub_.add(index, std::move(applied.events));
}

void Service::restored() {
  watch_groups(true);
  results_.clear();
  results_index_ = 0;
  writes_.refuse_added();
  barrier_done(std::exchange(barrier_reads_, {}), false);
  for (auto& [id, conn] : conns_) conn.joined = false;
  hub_.end_all();
  hub_.restored(state_->applied());
  JobFilter holding;
  for (int s = 0; s < kJobStates; ++s)
    if (has_hosts(static_cast<JobState>(s))) holding.states |= 1u << s;
  do {
    const state::State::JobPage page = state_->jobs(holding, 10000);
    for (const Job* job : page.jobs) hub_.holding(*job);
    holding.after_id = page.next_after_id;
  } while (holding.after_id != 0);
}

// The worker of a host that was given up must join again: its connection may well be alive.
void Service::give_up_hosts(const std::vector<Event>& events) {
  for (const Event& event : events) {
    const auto* host = std::get_if<Host>(&event);
    const auto* removed = std::get_if<HostRemoved>(&event);
    const bool gone =
        removed != nullptr || (host != nullptr && host->state >= HostState::kUnreachable);
    if (!gone) continue;
    const std::string& name = removed != nullptr ? removed->name : host->attrs.name;
    const ConnId conn = hub_.worker_of(name);
    spdlog::warn("host {} is given up{}", name, conn != 0 ? "; its worker must join again" : "");
    if (conn != 0) hub_.end(conn);
  }
}

// ---- role ---------------------------------------------------------------------------------------

// How long nothing was heard of a node that led until now: its absence began then, not when it was
// noticed.
uint64_t Service::silence_of(uint64_t leader) const {
  ClusterView view;
  if (leader != options_.node_id) replica_->describe(&view);
  for (const NodeView& node : view.nodes)
    if (node.id == leader && node.last_contact_ms > 0)
      return static_cast<uint64_t>(node.last_contact_ms);
  return 0;
}

void Service::role_changed(const RoleView& role) {
  const bool was_serving = serving();
  const RoleView before = role_;
  role_ = role;
  const uint64_t now_ms = clock_.monotonic_us() / 1000;
  if (role.leader == 0 && before.leader != 0)
    leaderless_since_ms_ = now_ms - silence_of(before.leader);
  if (role.leader != 0 && (before.leader != role.leader || before.term != role.term)) {
    ++elections_;
    last_election_ms_ = clock_.wall_ms();
    last_election_took_ms_ =
        leaderless_since_ms_ == 0 ? 0 : static_cast<int64_t>(now_ms - leaderless_since_ms_);
    leaderless_since_ms_ = 0;
    spdlog::info("term {}: node {} leads", role.term, role.leader);
  }
  if (!was_serving && serving()) {
    watch_groups(true);
    liveness_.restart(now_ms);
    last_tick_ms_ = scheduler_seen_ms_ = now_ms;
    scheduler_gone_ = false;
    spdlog::info("this node is the primary, in term {}, applied up to {}", role.term,
                 state_->applied());
  }
  if (was_serving && !serving()) {
    estimates_.clear();
    spdlog::warn("this node is no longer the primary");
    writes_.refuse_added();
    barrier_done(std::exchange(barrier_reads_, {}), false);
    for (const LogQuestion& question : log_queries_.take_all()) {
      Answer lost;
      lost.conn = question.asker;
      lost.seq = question.seq;
      lost.ask = Ask::kJobLog;
      fill_refusal(&lost);
      answer(std::move(lost));
    }
    for (auto& [id, conn] : conns_) conn.joined = false;
    hub_.end_all();
  }
}

void Service::failed(std::string why) {
  spdlog::critical("{}. This node serves nothing until it is repaired; the others go on.", why);
  RoleView role = role_;
  disk_ = std::move(why);
  role.role = NodeRole::kUnavailable;
  role.ready = false;
  // serving() is false already because of disk_; end what the role had begun.
  writes_.refuse_added();
  barrier_done(std::exchange(barrier_reads_, {}), false);
  hub_.end_all();
  role_changed(role);
}

// ---- turns and time -----------------------------------------------------------------------------

bool Service::turn() {
  const uint64_t begin_us = clock_.monotonic_us();
  writes_.propose(begin_us / 1000, clock_.wall_ms());
  if (!barrier_reads_.empty()) {
    auto reads = std::make_shared<std::vector<Request>>(std::move(barrier_reads_));
    barrier_reads_.clear();
    waiting_reads_ += reads->size();
    replica_->barrier([this, reads](bool leader) {
      waiting_reads_ -= reads->size();
      barrier_done(std::move(*reads), leader);
    });
  }
  while (!ready_reads_.empty()) {
    const Request request = std::move(ready_reads_.front());
    ready_reads_.pop_front();
    answer_now(request);
    if (clock_.monotonic_us() - begin_us > options_.read_budget_us) break;
  }
  push::Hub::Out out = hub_.flush();
  for (push::Delivery& delivery : out.deliveries) outgoing_.emplace_back(std::move(delivery));
  for (ConnId conn : out.finished) outgoing_.emplace_back(CloseConn{conn, true, ""});
  for (ConnId conn : out.too_slow)
    outgoing_.emplace_back(CloseConn{
        conn, false, "it reads events more slowly than they come; it must take the state anew"});
  if (!outgoing_.empty()) outlet_(std::exchange(outgoing_, {}));
  return !ready_reads_.empty();
}

void Service::tick() {
  const uint64_t now_ms = clock_.monotonic_us() / 1000;
  for (const LogQuestion& question : log_queries_.take_late(now_ms)) {
    Answer late;
    late.conn = question.asker;
    late.seq = question.seq;
    late.ask = Ask::kJobLog;
    late.status = E_XCE_BUSY;
    late.message = absl::StrCat("the worker did not answer within ", options_.log_query_ms,
                                " ms; the output is in ", question.where);
    late.term = role_.term;
    late.index = state_->applied();
    late.cluster_id = replica_->cluster_id();
    answer(std::move(late));
  }
  answer_late_changes(now_ms);
  if (!serving()) return;
  for (std::string& host : liveness_.lost(state_->hosts(), now_ms)) {
    spdlog::warn("host {} has not been heard of for {} ms", host, options_.host_grace_ms);
    propose_own(HostLost{std::move(host)});
  }
  for (std::string& host : liveness_.gone(state_->hosts(), now_ms)) {
    spdlog::warn(
        "host {} was silent for longer than its lease: its jobs with requeue start "
        "elsewhere",
        host);
    propose_own(HostControl{HostAction::kGiveUp, std::move(host), ""});
  }
  watch_scheduler(now_ms);
  if (now_ms - last_tick_ms_ >= options_.tick_ms) {
    last_tick_ms_ = now_ms;
    if (state_->stats().sessions > 0) propose_own(Tick{});
  }
}

// The state knows who scheduled last, not whether it lives. Schedulers that stand by hear of its
// absence and take over by joining.
void Service::watch_scheduler(uint64_t now_ms) {
  const state::State::Scheduler& active = state_->scheduler();
  if (active.epoch == 0) return;
  for (const auto& [id, conn] : conns_) {
    if (conn.who->role != Role::kScheduler || conn.client != active.client ||
        !hub_.subscribed(id) || now_ms - conn.heard_ms > options_.scheduler_silence_ms)
      continue;
    scheduler_seen_ms_ = conn.heard_ms;
    scheduler_gone_ = false;
    return;
  }
  if (scheduler_gone_ || now_ms - scheduler_seen_ms_ < options_.scheduler_grace_ms) return;
  scheduler_away();
}

void Service::scheduler_away() {
  if (std::exchange(scheduler_gone_, true)) return;
  const state::State::Scheduler& active = state_->scheduler();
  spdlog::warn("scheduler {} is gone: jobs wait until it comes back or another one takes over",
               active.name);
  hub_.to_schedulers(
      std::make_shared<const Event>(SchedulerChanged{active.epoch, active.client, ""}));
}

// Users' groups are looked up on the I/O thread, and only while some queue depends on them.
void Service::watch_groups(bool told_anew) {
  const auto& queues = state_->queues();
  const bool matter = std::any_of(queues.begin(), queues.end(), [](const auto& each) {
    return !each.second.allowed_groups.empty();
  });
  if (matter == groups_matter_ && !told_anew) return;
  groups_matter_ = matter;
  outgoing_.emplace_back(LookUpGroups{matter});
}

void Service::propose_own(Op op) {
  Command command;
  command.who.role = Role::kController;
  command.who.name = absl::StrCat("controller ", options_.node_id);
  command.op = std::move(op);
  writes_.add(std::move(command), Waiter{});
}

}  // namespace xce::service
