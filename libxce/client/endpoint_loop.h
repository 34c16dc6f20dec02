// The loop behind Endpoint: see endpoint.h. Everything but post() and join() runs on the loop's
// thread.
#ifndef XCE_LIBXCE_CLIENT_ENDPOINT_LOOP_H_
#define XCE_LIBXCE_CLIENT_ENDPOINT_LOOP_H_

#include <uv.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libxce/client/endpoint.h"

namespace xce::client {

class Endpoint::Loop : public Connection::Events {
 public:
  Loop(std::vector<Address> candidates, std::shared_ptr<net::TlsCredentials> tls,
       Callbacks callbacks)
      : candidates_(std::move(candidates)),
        tls_(std::move(tls)),
        callbacks_(std::move(callbacks)) {}

  // Where a caller waits for its handshake.
  struct Pending {
    std::mutex mu;
    std::condition_variable cv;
    bool done = false;
    Handshake result;
    void complete(Handshake h);
  };

  int start(std::string hello, std::string ping);
  void shutdown();
  void join();
  bool on_loop_thread() const { return thread_id_.load() == std::this_thread::get_id(); }

  // Runs fn on the loop's thread, soon. False when the loop has ended or is about to: fn will not
  // run.
  bool post(std::function<void()> fn);

  void start_race(std::vector<Address> targets, uint64_t timeout_ms,
                  std::shared_ptr<Pending> pending);
  void send(uint64_t connection, uint64_t seq, std::string frame, std::shared_ptr<Waiter> waiter);
  void forget(uint64_t connection, uint64_t seq);
  void close(uint64_t connection);
  void watch_idle() { watches_idle_ = true; }

 private:
  // Connections that compete for the first answer to hello: for a caller (pending), or as a probe
  // beside a silent connection.
  struct Race {
    uint64_t id = 0;
    std::vector<Address> targets;
    size_t launched = 0;
    std::map<uint64_t, size_t> running;  // connection -> target
    std::vector<size_t> failed;
    int first_error = 0;  // of targets[0]
    uint64_t give_up_at_ms = 0, next_launch_ms = 0;
    std::shared_ptr<Pending> pending;  // null: a probe
    uint64_t suspect = 0;              // of a probe: the silent connection
    uint64_t min_term = 0;
  };
  // What the loop knows of a connection that has answered hello.
  struct Peer {
    std::map<uint64_t, std::shared_ptr<Waiter>> waiting;  // by seq
    uint64_t waiting_since_ms = 0;
    uint64_t last_ping_ms = 0;
    uint64_t next_probe_ms = 0;
    uint64_t term = 0;   // of its hello
    uint64_t probe = 0;  // race id, or 0
    uint64_t asked_ms =
        0;  // of an idle connection: the oldest ping that nothing was heard after; 0: none
  };

  void on_connected(Connection* connection) override;
  void on_frame(Connection* connection, std::vector<uint64_t> words) override;
  void on_failed(Connection* connection, int error) override;

  void run_posted();
  void tick();
  void watch_peer(uint64_t id, Peer* peer, uint64_t now);
  void watch_idle_peer(uint64_t id, Peer* peer, uint64_t now);
  void start_probe(uint64_t id, Peer* peer, uint64_t now);
  void update_timer();
  void launch(Race* race);
  void race_lost(Race* race, uint64_t connection, int error);
  void race_answer(Race* race, Connection* connection, Words words, int status, uint64_t term);
  void finish_race(uint64_t id, Handshake result);
  void end_connection(uint64_t id, int error, int probed);
  Race* race_of(uint64_t connection);
  void close_all();

  const std::vector<Address> candidates_;
  const std::shared_ptr<net::TlsCredentials> tls_;
  const Callbacks callbacks_;
  std::string hello_, ping_;

  std::mutex mu_;  // guards the two below
  std::vector<std::function<void()>> posted_;
  bool accepting_ = false;

  std::thread thread_;
  std::atomic<std::thread::id> thread_id_{};
  uv_loop_t uv_;
  uv_async_t wake_;
  uv_timer_t timer_;
  uint64_t timer_ms_ = 0;  // its period; 0: it does not run
  uint64_t last_tick_ms_ = 0;
  bool watches_idle_ = false;
  bool closing_ = false;

  uint64_t next_id_ = 0;
  std::map<uint64_t, std::shared_ptr<Connection>> connections_;
  std::map<uint64_t, Peer> peers_;  // those of connections_ that have answered hello and won
  std::map<uint64_t, Race> races_;
};

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_ENDPOINT_LOOP_H_
