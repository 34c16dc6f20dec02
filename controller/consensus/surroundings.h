// What a Node takes from outside: the time, random numbers, its turns on a loop, the network, and
// the helpers that do blocking work on threads or in processes of their own. The real ones are
// libuv's (uv_surroundings.h); the simulation (controller/sim) has its own, in which nothing
// happens by itself.
//
// Everything is called on the consensus thread and calls back on it, except where it says
// otherwise. What a function here returns ends when it is destroyed: nothing is called back
// afterwards.
#ifndef XCE_CONTROLLER_CONSENSUS_SURROUNDINGS_H_
#define XCE_CONTROLLER_CONSENSUS_SURROUNDINGS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "controller/consensus/log_writer.h"
#include "controller/consensus/snapshot_installer.h"
#include "controller/consensus/snapshot_taker.h"
#include "controller/consensus/transport.h"

namespace xce::consensus {

class Surroundings {
 public:
  class Timer {  // goes off once for each start()
   public:
    virtual ~Timer() = default;
    virtual void start(uint64_t delay_ms) = 0;  // anew, if it runs
    virtual void stop() = 0;
  };
  class Turns {
   public:
    virtual ~Turns() = default;
    // Until it is told otherwise, the loop does not wait, and `more` is called once a turn.
    virtual void set_busy(bool busy) = 0;
  };
  class Waker {
   public:
    virtual ~Waker() = default;
    virtual void wake() = 0;  // any thread: has `run` called soon
  };

  virtual ~Surroundings() = default;
  virtual uint64_t now_ns() const = 0;  // never goes back, counts while the process is paused
  virtual uint64_t random() = 0;        // 64 random bits
  virtual std::unique_ptr<Timer> timer(std::function<void()> fire) = 0;
  // Calls `flush` before and after each time that the loop waits for something to happen.
  virtual std::unique_ptr<Turns> turns(std::function<void()> flush, std::function<void()> more) = 0;
  virtual std::unique_ptr<Waker> waker(std::function<void()> run) = 0;
  // Runs something that may take long and that nobody waits for; on a thread of its own.
  virtual void in_background(std::function<void()> work) = 0;

  // The arguments are those of PeerNet's constructor.
  virtual std::unique_ptr<Transport> transport(Transport::Events* events, unsigned user_timeout_ms,
                                               uint64_t seed,
                                               std::shared_ptr<net::TlsCredentials> tls) = 0;
  // The arguments are those of the classes' constructors.
  virtual std::unique_ptr<LogWriter> log_writer(std::unique_ptr<LogStore> store,
                                                size_t max_record_bytes,
                                                std::function<void()> wake) = 0;
  virtual std::unique_ptr<SnapshotTaker> snapshot_taker(std::string directory,
                                                        std::function<int(SnapshotStep)> hook) = 0;
  virtual std::unique_ptr<SnapshotInstaller> snapshot_installer(
      SnapshotInstaller::Environment environment, SnapshotInstaller::Source source) = 0;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_SURROUNDINGS_H_
