// The network side of a context: one libuv loop on its own thread, which owns the connections.
//
// Callers (any thread) hand it work and block on their own waiter:
//   handshake()  connects and says hello; candidates race with a stagger, so that a silent one
//   costs 250 ms, not a timeout send()       puts a request on one connection; the reply is matched
//   by sequence number *and* connection, so a late reply
//                of a dead connection can reach nobody
// While requests wait, the loop pings every 100 ms. 250 ms of silence makes it probe the other
// candidates beside the silent one; when one of them says that it is primary, the silent connection
// is given up. Where pushes are taken, an idle connection is watched too: a ping a second, 1 s of
// silence for a probe, 4 s for its end. (A stopped process's kernel still acknowledges; only this
// finds it.) When a connection ends, all its waiters learn it at once.
#ifndef XCE_LIBXCE_CLIENT_ENDPOINT_H_
#define XCE_LIBXCE_CLIENT_ENDPOINT_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "libxce/client/connection.h"

namespace xce::client {

using Clock = std::chrono::steady_clock;
using Words = std::vector<uint64_t>;  // one message in its flat form

inline constexpr uint64_t kHelloSeq = UINT64_MAX - 1;  // sequence numbers that endpoint uses itself
inline constexpr uint64_t kPingSeq = UINT64_MAX;

// Where one caller waits for one reply.
class Waiter {
 public:
  // The loop's side. Only the first call counts. error: 0 with words, or a positive errno.
  void complete(int error, Words words);
  // The request may reach the node from now on; false when the caller has withdrawn it: do not
  // send it.
  bool set_written();

  // The caller's side. False when the deadline passed first.
  bool wait_until(Clock::time_point deadline);
  int error() const { return error_; }  // after wait_until gave true
  const Words& words() const { return words_; }
  bool written();
  // The caller waits no more: a request that is not written yet never will be. Whether it was
  // written before.
  bool withdraw();

 private:
  std::mutex mu_;
  std::condition_variable cv_;
  bool done_ = false, written_ = false, withdrawn_ = false;
  int error_ = 0;
  Words words_;
};

struct Handshake {
  uint64_t connection = 0;     // 0: none of the targets answered
  size_t target = 0;           // whose answer it is; without one, the first target
  int error = 0;               // positive errno when connection is 0
  Words words;                 // the reply to hello
  std::vector<size_t> failed;  // other targets that were tried as well and failed or stayed silent
};

class Endpoint {
 public:
  struct Callbacks {  // on the loop's thread
    std::function<void(const Words&)> push;
    // The connection ended. probed: index of the candidate that says it is primary now, or -1.
    std::function<void(uint64_t connection, int error, int probed)> closed;
  };

  // tls: null for plain connections.
  Endpoint(std::vector<Address> candidates, std::shared_ptr<net::TlsCredentials> tls,
           Callbacks callbacks);
  ~Endpoint();  // shuts down and joins

  // Starts the thread. hello and ping are whole frames whose requests have kHelloSeq and kPingSeq.
  // 0 or -errno.
  int start(std::string hello, std::string ping);
  // Ends everything in flight with ECANCELED, soon. Any thread, more than once.
  void shutdown();
  // After shutdown: waits for the thread's end. Not on the loop's thread.
  void join();

  // Connects to targets[0], and beside it to the next one after each stagger without an answer,
  // until one answers hello. At the deadline, or 2 s, it gives up. The connection stays until
  // close().
  Handshake handshake(const std::vector<Address>& targets, Clock::time_point deadline);

  // Sends a whole frame. waiter may be null (no reply wanted). An unknown connection completes it
  // with ECONNRESET.
  void send(uint64_t connection, uint64_t seq, std::string frame, std::shared_ptr<Waiter> waiter);
  // The caller no longer waits for that reply.
  void forget(uint64_t connection, uint64_t seq);
  void close(uint64_t connection);
  // From now on, connections on which nobody waits are watched as well, more slowly.
  void watch_idle();

  bool on_loop_thread() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_ENDPOINT_H_
