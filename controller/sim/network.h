// A network of hosts with connections like TCP's: each delivers in order what was sent, however
// late; what is sent into a cut link waits for it to heal, or for the sender's patience to end; the
// other end of a dead host is told nothing. Connections do not wait for one another.
#ifndef XCE_CONTROLLER_SIM_NETWORK_H_
#define XCE_CONTROLLER_SIM_NETWORK_H_

#include <any>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "controller/sim/world.h"

namespace xce::sim {

using HostId = int;

class Connection;
using ConnectionPtr = std::shared_ptr<Connection>;

struct NetEvent {
  enum Kind { kUp, kData, kEnd } kind = kEnd;
  std::any data;         // of kData
  bool refused = false;  // of kEnd
};
using Sink = std::function<void(NetEvent)>;

// One connection; side 0 has dialled.
class Connection {
 public:
  struct Packet {
    uint64_t arrives;
    std::any data;
    bool end = false;  // the sender's side was closed
  };
  struct Side {
    HostId host = 0;
    Sink sink;  // empty: closed, or not there yet
    uint64_t patience = 0;
    std::deque<Packet> sent;  // on its way to the other side
    uint64_t last_arrival = 0;
    uint64_t waits_since = 0;  // something is not acknowledged since; 0: nothing waits
    bool pumping = false;      // an event will look at `sent`
  };
  Side side[2];
};

class Network {
 public:
  explicit Network(World* world) : world_(world), random_(world->random().fork()) {}

  // Who is called when a connection is made to the host: it returns the sink of its side.
  using Accept = std::function<Sink(const ConnectionPtr&)>;
  void listen(HostId host, Accept accept) { listeners_[host] = std::move(accept); }

  // patience: how long what was sent may wait for its acknowledgement before the connection ends.
  // kUp or kEnd follows, or, when nobody answers, nothing.
  ConnectionPtr dial(HostId from, HostId to, uint64_t patience, Sink sink);
  // Sends, unless that side is closed.
  void send(const ConnectionPtr& connection, int side, std::any data);
  // Closes one side: its sink is not called any more, the other one gets kEnd after all data.
  void close(const ConnectionPtr& connection, int side);
  // Ends it on both sides at once.
  void reset(const ConnectionPtr& connection);

  // The host's process is gone: its port refuses, its connections end.
  void process_ended(HostId host);
  // The host is gone: nobody answers, nobody is told. process_ended() too.
  void power_lost(HostId host);
  void power_back(HostId host);

  // ---- faults
  void cut(HostId from, HostId to) { cut_.insert({from, to}); }
  void heal(HostId from, HostId to);
  void heal_all();
  bool is_cut(HostId from, HostId to) const {
    return cut_.count({from, to}) > 0 || dark_.count(to) > 0 || dark_.count(from) > 0;
  }
  // New connections are refused by the way, as by a firewall.
  void refuse(HostId from, HostId to, bool on) {
    if (on)
      refused_.insert({from, to});
    else
      refused_.erase({from, to});
  }
  void reset_between(HostId a, HostId b);
  // One way of a message takes low to high.
  void set_delay(uint64_t low, uint64_t high) {
    low_ = low;
    high_ = high;
  }

 private:
  uint64_t delay() { return random_.between(low_, high_); }
  void arrived(const ConnectionPtr& connection, HostId to, Accept accept);
  void pump_at(const ConnectionPtr& connection, int from, uint64_t time);
  void pump(const ConnectionPtr& connection, int from);
  void wait_for_acknowledgement(const ConnectionPtr& connection, int from);
  void give(const ConnectionPtr& connection, int side, NetEvent event);
  void lose(const ConnectionPtr& connection, int side);

  World* const world_;
  Random random_;
  uint64_t low_ = 100 * kUs, high_ = 600 * kUs;
  std::map<HostId, Accept> listeners_;
  std::set<std::pair<HostId, HostId>> cut_, refused_;
  std::set<HostId> dark_;
  std::vector<std::weak_ptr<Connection>> connections_;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_NETWORK_H_
