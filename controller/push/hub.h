// The hub: takes the events of every applied log entry and says which connection gets which.
// Thread: the consensus thread. No I/O: flush() returns what to send.
//
// Consumers that get everything (schedulers, apiservers, users) share one ring of recent events and
// differ only in how far they have read it. A consumer that reads slowly stays behind in the ring;
// when the ring moves past it, it is dropped, and gets a GAP when it subscribes again. A worker
// gets only what concerns its host, in a queue of its own; so does who watches single jobs.
#ifndef XCE_CONTROLLER_PUSH_HUB_H_
#define XCE_CONTROLLER_PUSH_HUB_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "controller/push/batch.h"

namespace xce::push {

struct HubOptions {
  size_t ring_events = 65536;     // kept for consumers that resume
  size_t lag_events = 262144;     // kept while a consumer has not got them; more: it is dropped
  int64_t ring_bytes = 24 << 20;  // of the former, in memory, about
  int64_t lag_bytes = 96 << 20;   // of the latter
  int64_t high_water_bytes =
      1024 * 1024;             // a connection with more unsent bytes gets no further events yet
  size_t batch_events = 2048;  // at most, in one Push
  int64_t batch_bytes = 1024 * 1024;  // at most, in one Push, unless a single event is larger
};

class Hub {
 public:
  struct Out {
    std::vector<Delivery> deliveries;  // in order
    std::vector<ConnId> finished;      // got a GAP as their last: close once everything is sent
    std::vector<ConnId> too_slow;      // fell out of the ring: close at once
  };

  explicit Hub(HubOptions options = {}) : options_(options) {}

  // Events up to `applied` are unknown here (a start, or a snapshot took their place).
  void restored(Index applied);
  // After restored(): a job that holds hosts in the state that took their place.
  void holding(const Job& job);
  // The events of the entry at `index`, which rises.
  void add(Index index, std::vector<Event> events);

  // From now on, events after `index` go to this connection. A second join or subscribe replaces
  // the first.
  void join(ConnId conn, Role role, std::string_view host, std::shared_ptr<Flow> flow);
  // Like join, but resumes after `from` (0: now). When events after it are gone, a GAP comes first.
  void subscribe(ConnId conn, Role role, std::string_view host, std::shared_ptr<Flow> flow,
                 Index from);
  // From now on, the events of these jobs, and no others, go to this connection.
  void watch(ConnId conn, Role role, std::shared_ptr<Flow> flow, std::vector<JobId> jobs);
  void remove(ConnId conn);
  bool subscribed(ConnId conn) const { return consumers_.count(conn) > 0; }

  // One item to one connection, subscribed or not being its own matter: unknown connections are
  // ignored.
  void send(ConnId conn, Item item);
  // One item to every scheduler.
  void to_schedulers(const Item& item);
  // The newest joined connection of a host's worker; 0: none.
  ConnId worker_of(std::string_view host) const;

  // Tells a consumer that it must take the state anew and reconnect: GAP, then close. (The role is
  // lost, the host was given up.)
  void end(ConnId conn);
  void end_all();

  bool empty() const { return consumers_.empty(); }
  // What to send now. To be called once a turn of the loop.
  Out flush();

 private:
  struct Entry {
    Index index;
    EventPtr event;
    int64_t bytes;   // to send, an estimate
    int64_t memory;  // in bytes, an estimate
  };
  struct Own {
    Index index;
    Item item;
    int64_t bytes;
  };
  struct Consumer {
    Role role = Role::kNone;
    std::string host;  // of a worker
    std::shared_ptr<Flow> flow;
    uint64_t next = 0;        // position in the ring; of no meaning for a narrow one
    std::deque<Own> own;      // a narrow one's events; items for this consumer alone
    bool sent_own = false;    // in the flush under way
    std::vector<JobId> jobs;  // that it watches
    bool worker() const { return role == Role::kWorker; }
    bool narrow() const { return worker() || !jobs.empty(); }  // gets nothing from the ring
  };

  // Drops the oldest events, down to that many of so many bytes, but none from position `until` on.
  void trim_ring(size_t events, int64_t bytes, uint64_t until);
  uint64_t end_position() const { return first_position_ + ring_.size(); }
  Consumer& put(ConnId conn, Role role, std::string_view host, std::shared_ptr<Flow> flow);
  std::vector<std::string> audience(const Event& event);
  void to_workers(Index index, const EventPtr& event, const std::vector<std::string>& hosts);
  void to_watchers(Index index, const EventPtr& event);
  bool may_send(Consumer* consumer);
  // The shared batch that starts at a ring position; made once a flush.
  std::pair<std::shared_ptr<const Batch>, uint64_t> batch_at(uint64_t position);
  bool flush_own(ConnId conn, Consumer* consumer, Out* out);
  bool flush_ring(ConnId conn, Consumer* consumer, Out* out);

  const HubOptions options_;
  Index applied_ = 0;
  Index gone_ = 0;               // events up to here are not in the ring
  uint64_t first_position_ = 0;  // of ring_.front(); positions count events ever added
  std::deque<Entry> ring_;
  int64_t ring_memory_ = 0;  // of its entries
  std::map<ConnId, Consumer> consumers_;
  std::map<std::string, ConnId, std::less<>> workers_;  // by host
  std::unordered_map<JobId, std::vector<ConnId>> watchers_;
  std::map<JobId, std::vector<std::string>>
      holders_;  // hosts of the jobs that hold any: they hear of the loss as well
  std::vector<ConnId> finished_;
  // Of the flush under way: each start position's batch and its end; its newest index in
  // Out::deliveries.
  std::map<uint64_t, std::pair<std::shared_ptr<const Batch>, uint64_t>> batches_;
  std::map<uint64_t, size_t> delivery_of_;
};

}  // namespace xce::push

#endif  // XCE_CONTROLLER_PUSH_HUB_H_
