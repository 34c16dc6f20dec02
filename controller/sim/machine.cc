#include "controller/sim/machine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/consensus/surroundings.h"
#include "controller/service/state_codec.h"
#include "controller/sim/client_message.h"

namespace xce::sim {
namespace {

constexpr uint64_t kServiceTickMs = 200;  // as runner.cc
constexpr int64_t kWallStartMs = 1700000000000;

struct LoadedState : consensus::StateMachine::Restored {
  std::unique_ptr<state::State> state;
};

const char* word(consensus::Role role) {
  switch (role) {
    case consensus::Role::kLeader: return "leader";
    case consensus::Role::kCandidate: return "candidate";
    case consensus::Role::kFollower: return "follower";
    case consensus::Role::kUnavailable: break;
  }
  return "unavailable";
}

}  // namespace

Machine::Machine(World* world, Network* network, Oracle* oracle, consensus::Options options,
                 bool members_change)
    : world_(world),
      network_(network),
      oracle_(oracle),
      options_(std::move(options)),
      members_change_(members_change),
      random_(world->random().fork()),
      clock_base_(random_.between(1, 1000000) * kMs) {}

Machine::~Machine() { end_process(); }

// ---- life ---------------------------------------------------------------------------------------

void Machine::start() {
  if (up()) return;
  ++incarnation_;
  paused_ = die_now_ = false;
  fatal_.clear();
  disk_has_failed_ = disk_fails_;
  oracle_->started(id());
  world_->tell(absl::StrCat("node ", id(), " starts"));
  network_->power_back(id());
  process_ = std::make_unique<Process>();
  Process* const process = process_.get();
  process->state = std::make_unique<state::State>();
  consensus::Options options = options_;
  options.fs = &disk_;
  options.seed = random_.next();
  process->consensus =
      std::make_unique<consensus::Consensus>(surroundings_of(this), std::move(options), this, this);
  process->replica =
      std::make_unique<service::RealReplica>(process->consensus.get(), &options_, nullptr);
  service::ServiceOptions service_options;
  service_options.node_id = options_.self;
  service_options.tick_ms = 5000;
  service_options.host_grace_ms = 3000;
  service::Service::Clock clock;
  clock.monotonic_us = [this] { return clock_ns() / 1000; };
  clock.wall_ms = [this] {
    return kWallStartMs + static_cast<int64_t>(world_->now() / kMs) + wall_offset_ms_;
  };
  process->service = std::make_unique<service::Service>(
      service_options, clock, process->state.get(), process->replica.get(),
      [this](std::vector<service::Outgoing> outgoing) { to_clients(std::move(outgoing)); });
  const absl::Status status = process->consensus->start();
  if (dying()) {
    kill();
    return;
  }
  if (!status.ok()) {
    if (!disk_has_failed_)
      world_->wrong(absl::StrCat("node ", id(), " does not start: ", status.ToString()));
    world_->tell(absl::StrCat("node ", id(), " does not start: ", status.ToString()));
    end_process();
    return;
  }
  network_->listen(id(), [this](const ConnectionPtr& connection) { return accept(connection); });
  next_service_tick();
  wake_at(world_->now());
}

// The process does nothing any more; its destructors must not change what it left on the disk.
void Machine::end_process() {
  if (!up()) return;
  disk_.freeze();
  ++incarnation_;
  die_now_ = true;
  network_->process_ended(id());
  process_->consensus->stop();
  process_.reset();
  held_.clear();
  paused_ = false;
  disk_.process_ended();
  oracle_->ended(id());
}

void Machine::kill() {
  if (!up()) return;
  world_->tell(absl::StrCat("node ", id(), " is killed"));
  // A write that is under way is done, or not, or in part.
  if (process_->disk_write && !disk_.died()) {
    const uint64_t how = random_.below(3);
    if (how > 0) {
      if (how == 1) disk_.cut_after(static_cast<int64_t>(random_.below(20000)));
      process_->disk_write();
    }
  }
  end_process();
}

void Machine::lose_power() {
  if (up()) {
    if (process_->disk_write && !disk_.died()) {
      disk_.tear_after(random_.between(1, 3));
      process_->disk_write();
    }
    network_->power_lost(id());
    end_process();
  } else {
    network_->power_lost(id());
  }
  world_->tell(absl::StrCat("node ", id(), " loses its power"));
  disk_.lose_power(&random_);
}

void Machine::wipe(std::vector<consensus::Peer> peers) {
  kill();
  world_->tell(absl::StrCat("the data of node ", id(), " is gone"));
  disk_ = Disk();
  disk_.fail_writes(disk_fails_ ? ENOSPC : 0);
  removed_ = false;
  options_.peers = std::move(peers);
  options_.join = true;
  start();
}

void Machine::pause() {
  if (!up() || paused_) return;
  world_->tell(absl::StrCat("node ", id(), " is paused"));
  paused_ = true;
}

void Machine::resume() {
  if (!paused_) return;
  world_->tell(absl::StrCat("node ", id(), " goes on"));
  paused_ = false;
  process_->turn_due = false;  // what was due while it was paused did not happen
  const uint64_t incarnation = incarnation_;
  for (auto& run : std::exchange(held_, {})) {
    if (incarnation == incarnation_) run();
  }
  // It may have been stopped while it waited, or anywhere else: then the timers come first.
  if (up() && incarnation == incarnation_ && random_.one_in(2)) run_timers();
  wake_at(world_->now());
}

std::string Machine::describe() const {
  std::string line = absl::StrCat("node ", id(), paused_ ? ": paused" : up() ? ": runs" : ": down");
  if (!up()) return line;
  const consensus::Consensus& c = *process_->consensus;
  absl::StrAppend(&line, ", ", word(c.role().role), " in term ", c.role().term, ", log ",
                  c.first_index(), " to ", c.last_index(), ", snapshot ", c.snapshot_index(),
                  ", commit ", c.commit(), ", applied ", c.applied(), ", state of ",
                  process_->state->applied());
  for (const consensus::PeerStatus& peer : c.peers())
    absl::StrAppend(&line, "; ", peer.id, peer.connected ? "" : " not connected", " match ",
                    peer.match_index, " heard ", peer.last_contact_ms, " ms ago");
  return line;
}

void Machine::fail_disk(int error) {
  disk_.fail_writes(error);
  disk_fails_ = error != 0;
  disk_has_failed_ = disk_has_failed_ || disk_fails_;
}

void Machine::look_after() {
  if (disk_fails_ || fatal_.empty() || removed_) return;
  kill();
  start();
}

void Machine::set_disk_delay(uint64_t low, uint64_t high) {
  disk_low_ = low;
  disk_high_ = high;
}

// ---- the loop -----------------------------------------------------------------------------------

void Machine::post(std::function<void()> run) {
  if (!up()) return;
  process_->inbox.push_back(std::move(run));
  wake_at(world_->now() + random_.between(5, 30) * kUs);
}

void Machine::work_after(uint64_t delay, std::function<void()> run) {
  world_->after(delay, [this, run = std::move(run), incarnation = incarnation_] {
    if (incarnation != incarnation_) return;
    if (paused_) {
      held_.push_back(run);
      return;
    }
    run();
    if (up() && incarnation == incarnation_ && dying()) kill();
  });
}

void Machine::wake_at(uint64_t time) {
  if (!up() || paused_) return;
  if (process_->turn_due && process_->turn_at <= time) return;
  process_->turn_due = true;
  process_->turn_at = time;
  world_->at(time, [this, time, incarnation = incarnation_] {
    if (incarnation == incarnation_ && up() && !paused_ && process_->turn_due &&
        process_->turn_at == time)
      turn();
  });
}

void Machine::turn() {
  process_->turn_due = false;
  world_->mark(static_cast<uint64_t>(id()) << 56 ^ world_->now());
  bool goes_on = take_inbox();
  if (goes_on && process_->flush) process_->flush();
  if (goes_on && !dying()) goes_on = run_timers();
  if (goes_on && !dying()) before_wait();
  if (dying()) {
    kill();
    return;
  }
  sleep();
}

bool Machine::take_inbox() {
  for (auto& run : std::exchange(process_->inbox, {})) {
    run();
    if (dying()) return false;
  }
  if (!process_->inbound.empty()) process_->service->take(std::exchange(process_->inbound, {}));
  return !dying();
}

bool Machine::run_timers() {
  const uint64_t now = world_->now();
  for (;;) {
    uint64_t next = 0;
    for (const auto& [id, timer] : process_->timers)
      if (timer.due != 0 && timer.due <= now &&
          (next == 0 || timer.due < process_->timers[next].due))
        next = id;
    if (next == 0) return true;
    Timer& timer = process_->timers[next];
    timer.due = 0;
    const auto fire = timer.fire;
    fire();
    if (dying()) return false;
  }
}

void Machine::before_wait() {
  if (process_->busy && process_->more) process_->more();
  if (!dying() && process_->flush) process_->flush();
  if (!dying() && process_->service->turn()) wake_at(world_->now() + 20 * kUs);
}

void Machine::sleep() {
  uint64_t next = UINT64_MAX;
  if (process_->busy || !process_->inbox.empty())
    next = world_->now() + random_.between(10, 60) * kUs;
  for (const auto& [id, timer] : process_->timers)
    if (timer.due != 0) next = std::min(next, std::max(timer.due, world_->now() + kUs));
  if (next != UINT64_MAX) wake_at(next);
}

uint64_t Machine::add_timer(std::function<void()> fire) {
  const uint64_t id = ++last_id_;
  process_->timers[id].fire = std::move(fire);
  return id;
}

void Machine::start_timer(uint64_t timer, uint64_t delay_ms) {
  if (!up()) return;
  const auto found = process_->timers.find(timer);
  if (found == process_->timers.end()) return;
  // Delays are whole milliseconds from a clock that has read as many: up to one less.
  const uint64_t early = delay_ms == 0 ? 0 : random_.below(kMs);
  found->second.due = std::max(world_->now() + 1, world_->now() + delay_ms * kMs - early);
  wake_at(found->second.due);
}

void Machine::stop_timer(uint64_t timer) {
  if (!up()) return;
  const auto found = process_->timers.find(timer);
  if (found != process_->timers.end()) found->second.due = 0;
}

void Machine::remove_timer(uint64_t timer) {
  if (up()) process_->timers.erase(timer);
}

void Machine::set_turns(std::function<void()> flush, std::function<void()> more) {
  process_->flush = std::move(flush);
  process_->more = std::move(more);
}

void Machine::set_busy(bool busy) {
  if (!up()) return;
  process_->busy = busy;
  if (busy) wake_at(world_->now() + 10 * kUs);
}

// ---- clients ------------------------------------------------------------------------------------

void Machine::next_service_tick() {
  const uint64_t timer = add_timer(nullptr);
  process_->timers[timer].fire = [this, timer] {
    process_->service->tick();
    start_timer(timer, kServiceTickMs);
  };
  start_timer(timer, kServiceTickMs);
}

// Which kind of connection it is, its first packet says.
Sink Machine::accept(const ConnectionPtr& connection) {
  struct Newcomer {
    Sink sink;
  };
  const auto newcomer = std::make_shared<Newcomer>();
  const std::weak_ptr<Connection> weak = connection;
  const uint64_t incarnation = incarnation_;
  return [this, newcomer, weak, incarnation](NetEvent event) {
    if (incarnation != incarnation_) return;
    if (newcomer->sink) {
      const Sink sink = newcomer->sink;
      sink(std::move(event));
      return;
    }
    const ConnectionPtr connection = weak.lock();
    if (event.kind != NetEvent::kData || connection == nullptr) return;
    if (std::any_cast<PeerPreamble>(&event.data) != nullptr) {
      if (process_->accept_peer) newcomer->sink = process_->accept_peer(connection);
      return;
    }
    const auto* const preamble = std::any_cast<ClientPreamble>(&event.data);
    if (preamble == nullptr) return;
    const push::ConnId id = ++last_id_;
    process_->clients[id] = {connection, preamble->who, std::make_shared<push::Flow>()};
    newcomer->sink = [this, id](NetEvent event) {
      post([this, id, event = std::move(event)] { from_client(id, event); });
    };
  };
}

void Machine::from_client(push::ConnId id, NetEvent event) {
  const auto client = process_->clients.find(id);
  if (client == process_->clients.end()) return;
  if (event.kind == NetEvent::kEnd) {
    process_->clients.erase(client);
    process_->inbound.emplace_back(service::Closed{id});
    return;
  }
  service::Request request = std::any_cast<ToServer>(&event.data)->request;
  request.conn = id;
  request.who = client->second.who;
  request.flow = client->second.flow;
  if (request.deadline_ms != 0) request.deadline_ms += clock_ns() / kMs;
  process_->inbound.emplace_back(std::move(request));
}

void Machine::to_clients(std::vector<service::Outgoing> outgoing) {
  if (dying() || !up()) return;
  for (service::Outgoing& each : outgoing) {
    if (auto* answer = std::get_if<service::Answer>(&each)) {
      const auto client = process_->clients.find(answer->conn);
      if (client == process_->clients.end() || (!answer->counted && answer->status == 0)) continue;
      network_->send(client->second.connection, 1, ToClient{std::move(*answer)});
    } else if (auto* close = std::get_if<service::CloseConn>(&each)) {
      const auto client = process_->clients.find(close->conn);
      if (client == process_->clients.end()) continue;
      network_->close(client->second.connection, 1);
      process_->clients.erase(client);
      post([this, id = close->conn] { process_->inbound.emplace_back(service::Closed{id}); });
    }
  }
}

// ---- what consensus calls -----------------------------------------------------------------------

void Machine::apply(uint64_t index, uint64_t term, std::string_view entry) {
  oracle_->applied(id(), index, term, entry);
  process_->service->apply(index, entry);
  oracle_->compare(id(), index, *process_->state);
}

bool Machine::save(const std::function<bool(std::string_view)>& write) const {
  return service::save_state(*process_->state, write);
}

absl::StatusOr<std::unique_ptr<consensus::StateMachine::Restored>> Machine::load(
    const std::function<size_t(char*, size_t)>& read) {
  auto state = service::load_state(read);
  if (!state.ok()) return state.status();
  auto loaded = std::make_unique<LoadedState>();
  loaded->state = *std::move(state);
  return loaded;
}

void Machine::restore(uint64_t index, Restored* state) {
  world_->tell(absl::StrCat("node ", id(), " takes the state of entry ", index));
  process_->state->swap(*static_cast<LoadedState*>(state)->state);
  oracle_->restored(id(), index, *process_->state);
  process_->service->restored();
}

void Machine::on_role(const consensus::RoleInfo& role) {
  world_->tell(absl::StrCat("node ", id(), " is ", word(role.role), " in term ", role.term,
                            ", leader ", role.leader, role.ready ? ", ready" : ""));
  if (role.role == consensus::Role::kLeader) oracle_->leads(id(), role.term);
  process_->service->role_changed(service::role_view(role));
}

void Machine::refused(const std::string& why) {
  const std::string line = absl::StrCat("node ", id(), " and another do not want to talk: ", why);
  if (members_change_)
    world_->tell(line);
  else
    world_->wrong(line);
}

void Machine::on_fatal(absl::Status status) {
  fatal_ = status.ToString();
  world_->tell(absl::StrCat("node ", id(), " stops serving: ", fatal_));
  removed_ = members_change_ && absl::IsFailedPrecondition(status);
  if (!disk_has_failed_ && !removed_)
    world_->wrong(absl::StrCat("node ", id(), " stopped although its disk is good: ", fatal_));
  process_->service->failed(std::string(status.message()));
}

}  // namespace xce::sim
