// The simulated world: its clock, its events in the order of their time, its random numbers, and
// the record of what happened. One thread; no real time, no I/O but --trace.
#ifndef XCE_CONTROLLER_SIM_WORLD_H_
#define XCE_CONTROLLER_SIM_WORLD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/sim/random.h"

namespace xce::sim {

inline constexpr uint64_t kUs = 1000;
inline constexpr uint64_t kMs = 1000 * kUs;
inline constexpr uint64_t kSecond = 1000 * kMs;

class World {
 public:
  // print: the trace goes to standard output.
  World(uint64_t seed, bool print) : random_(seed), print_(print) {}

  uint64_t now() const { return now_; }  // nanoseconds since the simulation began
  Random& random() { return random_; }

  void at(uint64_t time, std::function<void()> run);
  void after(uint64_t delay, std::function<void()> run) { at(now_ + delay, std::move(run)); }
  // Runs the events up to `time`, or until something is wrong.
  void run_until(uint64_t time);
  uint64_t events() const { return ran_; }

  // A line of the trace, which is also part of the hash.
  void tell(std::string_view line);
  // Part of the hash only: too frequent for a line.
  void mark(uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3u; }
  bool prints() const { return print_; }
  uint64_t hash() const { return hash_; }

  // Something is wrong: the first such ends the run.
  void wrong(std::string what);
  const std::string& what_is_wrong() const { return wrong_; }
  bool is_wrong() const { return !wrong_.empty(); }

 private:
  struct Event {
    uint64_t time;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& o) const {  // the next one is the heap's top
      return time != o.time ? time > o.time : order > o.order;
    }
  };

  Random random_;
  const bool print_;
  uint64_t now_ = 0;
  uint64_t order_ = 0;
  uint64_t ran_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325u;
  std::vector<Event> events_;  // a heap
  std::string wrong_;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_WORLD_H_
