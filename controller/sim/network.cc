#include "controller/sim/network.h"

#include <algorithm>

namespace xce::sim {

ConnectionPtr Network::dial(HostId from, HostId to, uint64_t patience, Sink sink) {
  const auto connection = std::make_shared<Connection>();
  connection->side[0].host = from;
  connection->side[0].patience = patience;
  connection->side[0].sink = std::move(sink);
  connection->side[1].host = to;
  connection->side[1].patience = patience;
  connections_.erase(std::remove_if(connections_.begin(), connections_.end(),
                                    [](const auto& weak) { return weak.expired(); }),
                     connections_.end());
  connections_.push_back(connection);
  world_->after(delay(), [this, connection, from, to] {
    if (is_cut(from, to)) return;
    const auto listener = listeners_.find(to);
    const bool refuses = listener == listeners_.end() || !listener->second;
    if (refuses || refused_.count({from, to}) > 0) {
      world_->after(delay(), [this, connection, from, to] {
        if (is_cut(to, from)) return;
        NetEvent event;
        event.refused = true;
        give(connection, 0, std::move(event));
      });
      return;
    }
    arrived(connection, to, listener->second);
  });
  return connection;
}

void Network::arrived(const ConnectionPtr& connection, HostId to, Accept accept) {
  connection->side[1].sink = accept(connection);
  world_->after(delay(), [this, connection, to] {
    if (!is_cut(to, connection->side[0].host)) give(connection, 0, {NetEvent::kUp, {}, false});
  });
}

void Network::send(const ConnectionPtr& connection, int side, std::any data) {
  Connection::Side& from = connection->side[side];
  if (!from.sink) return;
  from.last_arrival = std::max(from.last_arrival, world_->now() + delay());
  from.sent.push_back({from.last_arrival, std::move(data), false});
  pump_at(connection, side, from.last_arrival);
}

void Network::close(const ConnectionPtr& connection, int side) {
  Connection::Side& from = connection->side[side];
  if (!from.sink) return;
  from.sink = nullptr;
  from.last_arrival = std::max(from.last_arrival, world_->now() + delay());
  from.sent.push_back({from.last_arrival, {}, true});
  pump_at(connection, side, from.last_arrival);
}

void Network::reset(const ConnectionPtr& connection) {
  for (const int side : {0, 1}) lose(connection, side);
}

void Network::pump_at(const ConnectionPtr& connection, int from, uint64_t time) {
  Connection::Side& side = connection->side[from];
  if (side.pumping) return;
  side.pumping = true;
  world_->at(time, [this, connection, from] { pump(connection, from); });
}

void Network::pump(const ConnectionPtr& connection, int from) {
  Connection::Side& side = connection->side[from];
  Connection::Side& other = connection->side[1 - from];
  side.pumping = false;
  if (is_cut(side.host, other.host)) {
    if (!side.sent.empty()) wait_for_acknowledgement(connection, from);
    return;  // heal() goes on
  }
  while (!side.sent.empty() && side.sent.front().arrives <= world_->now()) {
    Connection::Packet packet = std::move(side.sent.front());
    side.sent.pop_front();
    if (is_cut(other.host, side.host)) wait_for_acknowledgement(connection, from);
    if (packet.end) {
      lose(connection, 1 - from);
      return;
    }
    if (!other.sink) {  // nobody there any more: a reset comes back
      side.sent.clear();
      if (!is_cut(other.host, side.host))
        world_->after(delay(), [this, connection, from] { lose(connection, from); });
      return;
    }
    give(connection, 1 - from, {NetEvent::kData, std::move(packet.data), false});
  }
  if (!side.sent.empty()) pump_at(connection, from, side.sent.front().arrives);
}

void Network::wait_for_acknowledgement(const ConnectionPtr& connection, int from) {
  Connection::Side& side = connection->side[from];
  if (side.waits_since != 0 || !side.sink) return;
  const uint64_t since = side.waits_since = world_->now();
  world_->after(side.patience, [this, connection, from, since] {
    if (connection->side[from].waits_since == since) lose(connection, from);
  });
}

void Network::give(const ConnectionPtr& connection, int side, NetEvent event) {
  Connection::Side& to = connection->side[side];
  if (!to.sink) return;
  if (event.kind != NetEvent::kEnd) {
    const Sink sink = to.sink;
    sink(std::move(event));
    return;
  }
  const Sink sink = std::move(to.sink);
  to.sink = nullptr;
  sink(std::move(event));
}

// That side learns that the connection is over.
void Network::lose(const ConnectionPtr& connection, int side) {
  connection->side[side].sent.clear();
  connection->side[side].waits_since = 0;
  give(connection, side, {});
}

void Network::process_ended(HostId host) {
  listeners_[host] = nullptr;
  const auto all = connections_;
  for (const auto& weak : all) {
    const ConnectionPtr connection = weak.lock();
    if (connection == nullptr) continue;
    for (const int side : {0, 1})
      if (connection->side[side].host == host) close(connection, side);
  }
}

void Network::power_lost(HostId host) {
  listeners_[host] = nullptr;
  dark_.insert(host);
  const auto all = connections_;
  for (const auto& weak : all) {
    const ConnectionPtr connection = weak.lock();
    if (connection == nullptr) continue;
    for (const int side : {0, 1}) {
      if (connection->side[side].host != host) continue;
      connection->side[side].sink = nullptr;
      connection->side[side].sent.clear();
    }
  }
}

void Network::power_back(HostId host) {
  dark_.erase(host);
  // What was sent to it meanwhile arrives, and nobody is there for it.
  for (const auto& weak : connections_) {
    const ConnectionPtr connection = weak.lock();
    if (connection == nullptr) continue;
    for (const int side : {0, 1})
      if (connection->side[1 - side].host == host && !connection->side[side].sent.empty()) {
        connection->side[side].pumping = false;
        pump_at(connection, side, world_->now() + random_.between(0, 200) * kMs);
      }
  }
}

void Network::heal(HostId from, HostId to) {
  if (cut_.erase({from, to}) == 0 || is_cut(from, to)) return;
  for (const auto& weak : connections_) {
    const ConnectionPtr connection = weak.lock();
    if (connection == nullptr) continue;
    for (const int side : {0, 1}) {
      Connection::Side& sender = connection->side[side];
      const HostId receiver = connection->side[1 - side].host;
      if (sender.host == to && receiver == from) sender.waits_since = 0;  // acknowledged now
      if (sender.host != from || receiver != to) continue;
      sender.waits_since = 0;
      // Sent again at some time.
      if (!sender.sent.empty()) {
        sender.pumping = false;
        pump_at(connection, side, world_->now() + random_.between(0, 200) * kMs);
      }
    }
  }
}

void Network::heal_all() {
  const auto cuts = cut_;
  for (const auto& [from, to] : cuts) heal(from, to);
  refused_.clear();
}

void Network::reset_between(HostId a, HostId b) {
  const auto all = connections_;
  for (const auto& weak : all) {
    const ConnectionPtr connection = weak.lock();
    if (connection == nullptr) continue;
    const HostId x = connection->side[0].host, y = connection->side[1].host;
    if ((x == a && y == b) || (x == b && y == a)) reset(connection);
  }
}

}  // namespace xce::sim
