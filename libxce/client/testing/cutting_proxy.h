// A TCP relay on the loopback interface that ends the first connection it is told to cut after an
// exact number of bytes in one direction, and relays all others whole. For tests that cut a
// protocol at every byte. Threads: its own; every member may be called from any thread.
#ifndef XCE_LIBXCE_CLIENT_TESTING_CUTTING_PROXY_H_
#define XCE_LIBXCE_CLIENT_TESTING_CUTTING_PROXY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace xce::client {

class CuttingProxy {
 public:
  enum class Way { kToMaster, kToClient };

  explicit CuttingProxy(uint16_t master_port);
  ~CuttingProxy();

  uint16_t port() const { return port_; }
  // From now on the connection that stands is let through `bytes` more bytes in that direction,
  // then both of its ends are closed (with 0: as soon as the next byte comes). Once.
  void cut_after(Way way, size_t bytes);
  // Whether that has happened.
  bool was_cut() const { return was_cut_; }
  void stop_cutting() { armed_ = false; }
  // Bytes relayed in that direction, ever.
  size_t relayed(Way way) const { return way == Way::kToMaster ? to_master_ : to_client_; }

 private:
  void accept_all();
  void relay(int client);
  // Passes on what can be read; false when the connection is over.
  bool pump(int from, int to, Way way);

  const uint16_t master_port_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> armed_{false}, was_cut_{false}, stopping_{false};
  std::atomic<int> way_{0};
  std::atomic<size_t> left_{0}, to_master_{0}, to_client_{0};
  std::mutex mu_;
  std::vector<std::thread> threads_;
};

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_TESTING_CUTTING_PROXY_H_
