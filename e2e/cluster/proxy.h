// TCP links that a test can cut, freeze or slow down: between each two controllers there is one for
// each direction of dialling. One thread carries all links. I/O; the public functions may be called
// from any thread.
#ifndef XCE_E2E_CLUSTER_PROXY_H_
#define XCE_E2E_CLUSTER_PROXY_H_

#include <poll.h>

#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "e2e/cluster/process.h"

namespace xce::e2e {

enum class LinkMode {
  kOpen,
  kCut,     // connections end, new ones are closed at once: as when a process is gone
  kFrozen,  // nothing passes and nothing ends: as when packets are dropped
  kMute,    // what the dialling side sends does not pass, what it gets does
  kDeaf,    // the other way round
};

class Proxy {
 public:
  Proxy();
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Listens on a free port of 127.0.0.1 for connections to `target` there. The port, or 0.
  uint16_t add_link(int from, int to, uint16_t target);
  // Every link from or to this node. kMute: nothing that it sends passes; kDeaf: nothing reaches
  // it.
  void set_node(int node, LinkMode mode);
  // The links that `from` dials to `to`, alone.
  void set_link(int from, int to, LinkMode mode);
  // All links: each byte arrives so much later.
  void set_delay(milliseconds delay);
  // All links open, no delay.
  void heal();

 private:
  struct Chunk {
    Clock::time_point due;
    std::string bytes;
  };
  struct Link {
    int from, to;
    uint16_t target;
    int listener;
    LinkMode mode = LinkMode::kOpen;
  };
  struct Pair {
    // Whether what `side` sends passes now.
    bool passes(int side) const {
      return link->mode == LinkMode::kOpen ||
             link->mode == (side == 0 ? LinkMode::kDeaf : LinkMode::kMute);
    }
    Link* link;
    int fd[2];                   // dialled by the node, dialled by us
    std::deque<Chunk> queue[2];  // what goes to fd[i]
    bool broken = false;
  };

  template <class F>
  void change(F what);
  void run();
  void turn(std::vector<pollfd>* waiting, int* timeout_ms);
  void accept_on(Link* link);
  void pull(Pair* pair, int side);
  void push(Pair* pair, int side);
  void drop(Pair* pair);

  std::mutex mutex_;
  std::list<Link> links_;
  std::list<Pair> pairs_;
  milliseconds delay_{0};
  bool stopping_ = false;
  int wake_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace xce::e2e

#endif  // XCE_E2E_CLUSTER_PROXY_H_
