// A controller for tests of libxce: listens on an ephemeral port of the loopback interface and
// answers from a script. Threads: its own; every member may be called from any thread. The script
// runs on a connection's thread.
#ifndef XCE_LIBXCE_CLIENT_TESTING_MOCK_MASTER_H_
#define XCE_LIBXCE_CLIENT_TESTING_MOCK_MASTER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libxce/schema/client.capnp.h"

namespace xce::client {

// What the mock has received.
struct Seen {
  wire::Op::Which which = wire::Op::NOP;
  uint64_t connection = 0;  // 1, 2, ...
  uint64_t seq = 0, op_seq = 0, lowest = 0, birth = 0, body_hash = 0;
  uint64_t client_hi = 0, client_lo = 0, op_hash = 0;
  bool resent = false;
  std::string submit_key;
  std::string for_user;  // onBehalf
  uint32_t for_uid = 0;
  bool for_administrator = false;
};

// What it shall do about it.
struct Answer {
  enum class Do {
    kReply,
    kCut,
    kNothing
  } action = Do::kReply;  // kCut: close the connection without an answer
  int status = 0;
  uint64_t term = 0, cluster_id = 0, applied = 7, job_id = 42, node_id = 1;
  uint16_t job_state = 0;   // of the job in a list
  uint32_t dispatched = 1;  // items of a jobdispatch
  bool existing = false;
  std::string redirect_host;
  uint16_t redirect_port = 0;
  std::vector<uint16_t> members;  // ports of all controllers, told in hello
};

class MockMaster {
 public:
  using Script = std::function<Answer(const Seen&)>;

  // Starts at once. Pings (nop) are answered without asking the script.
  explicit MockMaster(Script script, uint16_t port = 0);
  ~MockMaster();

  uint16_t port() const { return port_; }
  // Everything received so far but pings.
  std::vector<Seen> seen();
  size_t count(wire::Op::Which which);
  // Waits until `n` requests of that kind have come; false after five seconds.
  bool wait_for(wire::Op::Which which, size_t n);
  // As a killed process: nothing listens, every connection is reset or ended.
  void kill();
  // Ends every connection, but goes on listening.
  void drop_connections();
  // As a stopped process: connects succeed, but nothing is read or answered until thaw().
  void freeze();
  void thaw();
  // Sends a push "job removed" to every connection.
  void push_removed(uint64_t revision, uint64_t job_id);

 private:
  void accept_all();
  void serve(int fd, uint64_t connection);
  bool handle(int fd, uint64_t connection, const std::vector<uint64_t>& words);
  void wait_thawed();

  const Script script_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::mutex mu_;
  std::condition_variable changed_;
  bool dead_ = false, frozen_ = false;
  uint64_t connections_ = 0;
  std::map<uint64_t, int> fds_;
  std::vector<Seen> seen_;
  std::vector<std::thread> threads_;
  std::mutex write_mu_;
};

// A port on which nothing listens, reserved as long as the object lives.
class DeadPort {
 public:
  DeadPort();
  ~DeadPort();
  uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int fd_ = -1;
  uint16_t port_ = 0;
};

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_TESTING_MOCK_MASTER_H_
