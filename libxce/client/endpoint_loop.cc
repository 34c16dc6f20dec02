#include "libxce/client/endpoint_loop.h"

#include <capnp/serialize.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "libxce/wire/codec.h"

namespace xce::client {
namespace {

constexpr uint64_t kTickMs = 25;
constexpr uint64_t kStaggerMs = 250;  // until the next target joins a race
constexpr uint64_t kPingMs = 100;
constexpr uint64_t kSilenceMs = 250;  // until a connection with waiting requests is suspected
constexpr uint64_t kDeadMs = 3000;    // until it is given up even when no other candidate serves
// A connection on which nobody waits, but pushes may come: slower, since it costs every idle
// daemon.
constexpr uint64_t kIdleTickMs = 250;
constexpr uint64_t kIdlePingMs = 1000;
constexpr uint64_t kIdleSilenceMs = 1000;  // without an answer to a ping
constexpr uint64_t kIdleDeadMs = 4000;
constexpr uint64_t kProbePauseMs = 50;
constexpr uint64_t kProbeMs = 1000;

// What routing a message needs.
struct Glance {
  bool ok = false, push = false;
  uint64_t seq = 0, term = 0;
  int status = 0;
};

Glance glance(const Words& words) {
  Glance g;
  try {
    capnp::FlatArrayMessageReader message(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()),
        wire::reader_options(words.size() * 8));
    const auto root = message.getRoot<wire::ServerMessage>();
    if (root.isPush()) {
      g.push = true;
    } else {
      const auto reply = root.getReply();
      g.seq = reply.getSeq();
      g.status = reply.getStatus();
      g.term = reply.getTerm();
    }
    g.ok = true;
  } catch (const kj::Exception&) {
  }
  return g;
}

}  // namespace

void Endpoint::Loop::Pending::complete(Handshake h) {
  std::lock_guard<std::mutex> lock(mu);
  done = true;
  result = std::move(h);
  cv.notify_one();
}

// ---- the thread
// --------------------------------------------------------------------------------------------------

int Endpoint::Loop::start(std::string hello, std::string ping) {
  hello_ = std::string(net::kClientPreamble, net::kPreambleSize) + std::move(hello);
  ping_ = std::move(ping);
  if (const int rc = uv_loop_init(&uv_); rc != 0) return rc;
  wake_.data = timer_.data = this;
  if (const int rc = uv_async_init(
          &uv_, &wake_, [](uv_async_t* h) { static_cast<Loop*>(h->data)->run_posted(); });
      rc != 0)
    return rc;
  uv_timer_init(&uv_, &timer_);
  {
    std::lock_guard<std::mutex> lock(mu_);
    accepting_ = true;
  }
  // A library's thread takes no signals: they are the program's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] {
    thread_id_.store(std::this_thread::get_id());
    pthread_setname_np(pthread_self(), "xce-client");
    uv_run(&uv_, UV_RUN_DEFAULT);
    uv_loop_close(&uv_);
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return 0;
}

bool Endpoint::Loop::post(std::function<void()> fn) {
  std::lock_guard<std::mutex> lock(mu_);
  if (!accepting_) return false;
  posted_.push_back(std::move(fn));
  if (posted_.size() == 1) uv_async_send(&wake_);
  return true;
}

void Endpoint::Loop::run_posted() {
  std::vector<std::function<void()>> work;
  {
    std::lock_guard<std::mutex> lock(mu_);
    work.swap(posted_);
  }
  uv_update_time(&uv_);
  for (auto& fn : work) fn();
  if (!closing_) update_timer();
}

void Endpoint::Loop::shutdown() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!accepting_) return;
  accepting_ = false;  // close_all is the last thing posted
  posted_.push_back([this] { close_all(); });
  uv_async_send(&wake_);
}

void Endpoint::Loop::join() {
  if (thread_.joinable()) thread_.join();
}

void Endpoint::Loop::close_all() {
  closing_ = true;
  for (auto& [id, race] : races_) {
    Handshake none;
    none.error = ECANCELED;
    if (race.pending != nullptr) race.pending->complete(std::move(none));
  }
  races_.clear();
  for (auto& [id, peer] : peers_)
    for (auto& [seq, waiter] : peer.waiting) waiter->complete(ECANCELED, {});
  peers_.clear();
  for (auto& [id, connection] : connections_) connection->close();
  connections_.clear();
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&wake_), nullptr);
}

// ---- connections
// ---------------------------------------------------------------------------------------------------

void Endpoint::Loop::on_connected(Connection* connection) { connection->write(hello_); }

void Endpoint::Loop::on_frame(Connection* connection, std::vector<uint64_t> words) {
  const Glance g = glance(words);
  const uint64_t id = connection->id();
  if (!g.ok) {
    connection->close();
    on_failed(connection, EPROTO);
    return;
  }
  if (g.push) {
    if (peers_.count(id) != 0) callbacks_.push(words);
    return;
  }
  if (g.seq == kHelloSeq) {
    if (Race* race = race_of(id)) race_answer(race, connection, std::move(words), g.status, g.term);
    return;
  }
  const auto peer = peers_.find(id);
  if (peer == peers_.end()) return;
  const auto waiting = peer->second.waiting.find(g.seq);
  if (waiting == peer->second.waiting.end()) return;  // a ping's answer, or nobody waits any more
  const auto waiter = waiting->second;
  peer->second.waiting.erase(waiting);
  waiter->complete(0, std::move(words));
}

void Endpoint::Loop::on_failed(Connection* connection, int error) {
  const uint64_t id = connection->id();
  if (Race* race = race_of(id)) {
    race_lost(race, id, error);
    return;
  }
  end_connection(id, error, -1);
}

void Endpoint::Loop::end_connection(uint64_t id, int error, int probed) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end()) return;
  connection->second->close();
  connections_.erase(connection);
  std::map<uint64_t, std::shared_ptr<Waiter>> waiting;
  if (const auto peer = peers_.find(id); peer != peers_.end()) {
    waiting.swap(peer->second.waiting);
    if (peer->second.probe != 0) finish_race(peer->second.probe, {});
    peers_.erase(id);
  }
  callbacks_.closed(id, error,
                    probed);  // before the waiters, so that they find the context up to date
  for (auto& [seq, waiter] : waiting) waiter->complete(error, {});
}

void Endpoint::Loop::send(uint64_t id, uint64_t seq, std::string frame,
                          std::shared_ptr<Waiter> waiter) {
  const auto connection = connections_.find(id);
  const auto peer = peers_.find(id);
  if (connection == connections_.end() || peer == peers_.end()) {
    if (waiter != nullptr) waiter->complete(ECONNRESET, {});
    return;
  }
  if (waiter != nullptr) {
    if (!waiter->set_written()) return;  // its caller has been told that it was not applied
    if (peer->second.waiting.empty()) peer->second.waiting_since_ms = uv_now(&uv_);
    peer->second.waiting.emplace(seq, waiter);
  }
  connection->second->write(std::move(frame));
}

void Endpoint::Loop::forget(uint64_t id, uint64_t seq) {
  if (const auto peer = peers_.find(id); peer != peers_.end()) peer->second.waiting.erase(seq);
}

void Endpoint::Loop::close(uint64_t id) { end_connection(id, ECONNRESET, -1); }

// ---- races
// ---------------------------------------------------------------------------------------------------------

Endpoint::Loop::Race* Endpoint::Loop::race_of(uint64_t connection) {
  for (auto& [id, race] : races_)
    if (race.running.count(connection) != 0) return &race;
  return nullptr;
}

void Endpoint::Loop::start_race(std::vector<Address> targets, uint64_t timeout_ms,
                                std::shared_ptr<Pending> pending) {
  const uint64_t now = uv_now(&uv_);
  Race& race = races_[++next_id_];
  race.id = next_id_;
  race.targets = std::move(targets);
  race.give_up_at_ms = now + timeout_ms;
  race.pending = std::move(pending);
  launch(&race);
}

void Endpoint::Loop::launch(Race* race) {
  const size_t target = race->launched++;
  race->next_launch_ms = uv_now(&uv_) + kStaggerMs;
  const uint64_t id = ++next_id_;
  auto connection = std::make_shared<Connection>(&uv_, id, race->targets[target], tls_.get(), this);
  connections_[id] = connection;
  race->running[id] = target;
  connection->open();
}

void Endpoint::Loop::race_lost(Race* race, uint64_t id, int error) {
  const size_t target = race->running[id];
  race->running.erase(id);
  if (const auto c = connections_.find(id); c != connections_.end()) {
    c->second->close();
    connections_.erase(c);
  }
  if (target == 0)
    race->first_error = error;
  else
    race->failed.push_back(target);
  if (!race->running.empty()) return;
  Handshake none;
  none.error = race->first_error;
  none.failed = race->failed;
  finish_race(race->id, std::move(none));
}

void Endpoint::Loop::race_answer(Race* race, Connection* connection, Words words, int status,
                                 uint64_t term) {
  const uint64_t id = connection->id();
  if (race->pending == nullptr) {  // a probe: only another primary counts
    if (status != 0 || term < race->min_term) {
      race_lost(race, id, ENOTCONN);
      return;
    }
    const auto found = std::find(candidates_.begin(), candidates_.end(), connection->peer());
    const uint64_t suspect = race->suspect;
    finish_race(race->id, {});
    end_connection(suspect, ETIMEDOUT, static_cast<int>(found - candidates_.begin()));
    return;
  }
  Handshake h;
  h.connection = id;
  h.target = race->running[id];
  h.words = std::move(words);
  h.failed = race->failed;
  race->running.erase(id);
  if (h.target != 0 && race->first_error != 0) h.failed.push_back(0);
  for (const auto& [loser, target] : race->running) h.failed.push_back(target);  // silent so far
  peers_[id].term = term;
  finish_race(race->id, std::move(h));
}

// Ends a race: its other connections are closed, its caller gets the result.
void Endpoint::Loop::finish_race(uint64_t id, Handshake result) {
  const auto found = races_.find(id);
  if (found == races_.end()) return;
  Race race = std::move(found->second);
  races_.erase(found);
  for (const auto& [connection, target] : race.running) {
    connections_[connection]->close();
    connections_.erase(connection);
  }
  if (race.pending != nullptr) {
    race.pending->complete(std::move(result));
  } else if (const auto peer = peers_.find(race.suspect); peer != peers_.end()) {
    peer->second.probe = 0;
    peer->second.next_probe_ms = uv_now(&uv_) + kProbePauseMs;
  }
}

// ---- time
// ----------------------------------------------------------------------------------------------------------

void Endpoint::Loop::update_timer() {
  bool busy = !races_.empty();
  for (const auto& [id, peer] : peers_) busy = busy || !peer.waiting.empty();
  const uint64_t wanted = busy ? kTickMs : watches_idle_ && !peers_.empty() ? kIdleTickMs : 0;
  if (wanted == timer_ms_) return;
  timer_ms_ = wanted;
  last_tick_ms_ = uv_now(&uv_);
  if (wanted != 0)
    uv_timer_start(
        &timer_, [](uv_timer_t* t) { static_cast<Loop*>(t->data)->tick(); }, wanted, wanted);
  else
    uv_timer_stop(&timer_);
}

void Endpoint::Loop::tick() {
  const uint64_t now = uv_now(&uv_);
  std::vector<uint64_t> race_ids, peer_ids;
  for (const auto& [id, race] : races_) race_ids.push_back(id);
  for (const uint64_t id : race_ids) {
    const auto race = races_.find(id);
    if (race == races_.end()) continue;
    Race* r = &race->second;
    if (now >= r->give_up_at_ms) {
      Handshake none;
      none.error = r->first_error != 0 ? r->first_error : ETIMEDOUT;
      for (size_t target = 1; target < r->launched; ++target) none.failed.push_back(target);
      finish_race(id, std::move(none));
    } else if (r->launched < r->targets.size() && now >= r->next_launch_ms) {
      launch(r);
    }
  }
  for (const auto& [id, peer] : peers_) peer_ids.push_back(id);
  for (const uint64_t id : peer_ids)
    if (const auto peer = peers_.find(id); peer != peers_.end()) watch_peer(id, &peer->second, now);
  last_tick_ms_ = now;
  update_timer();
}

// Pings, suspects and gives up a connection on which requests wait.
void Endpoint::Loop::watch_peer(uint64_t id, Peer* peer, uint64_t now) {
  if (peer->waiting.empty()) {
    if (watches_idle_) watch_idle_peer(id, peer, now);
    return;
  }
  Connection* connection = connections_[id].get();
  if (now >= std::max(peer->last_ping_ms, peer->waiting_since_ms) + kPingMs) {
    peer->last_ping_ms = now;
    connection->write(ping_);
  }
  const uint64_t silent_ms =
      now - std::min(now, std::max(connection->last_heard_ms, peer->waiting_since_ms));
  if (silent_ms >= kDeadMs)
    end_connection(id, ETIMEDOUT, -1);
  else if (silent_ms >= kSilenceMs && peer->probe == 0 && now >= peer->next_probe_ms)
    start_probe(id, peer, now);
}

// The same for a connection on which only pushes are waited for: a subscriber must not believe for
// ever that nothing happens because nothing comes.
void Endpoint::Loop::watch_idle_peer(uint64_t id, Peer* peer, uint64_t now) {
  Connection* connection = connections_[id].get();
  if (connection->last_heard_ms >= peer->asked_ms) peer->asked_ms = 0;
  if (peer->asked_ms != 0 && now - last_tick_ms_ > kIdleSilenceMs)
    peer->asked_ms = now;  // it is this process that has slept
  if (now >= peer->last_ping_ms + kIdlePingMs) {
    peer->last_ping_ms = now;
    if (peer->asked_ms == 0) peer->asked_ms = now;
    connection->write(ping_);
  }
  const uint64_t silent_ms = peer->asked_ms == 0 ? 0 : now - peer->asked_ms;
  if (silent_ms >= kIdleDeadMs)
    end_connection(id, ETIMEDOUT, -1);
  else if (silent_ms >= kIdleSilenceMs && peer->probe == 0 && now >= peer->next_probe_ms)
    start_probe(id, peer, now);
}

void Endpoint::Loop::start_probe(uint64_t id, Peer* peer, uint64_t now) {
  Race race;
  race.id = ++next_id_;
  for (const Address& candidate : candidates_)
    if (!(candidate == connections_[id]->peer())) race.targets.push_back(candidate);
  if (race.targets.empty()) return;
  race.give_up_at_ms = now + kProbeMs;
  race.suspect = id;
  race.min_term = peer->term;
  peer->probe = race.id;
  Race& placed = races_[race.id] = std::move(race);
  while (placed.launched < placed.targets.size()) launch(&placed);
}

}  // namespace xce::client
