// Random numbers from a seed, the same on every machine. PURE.
#ifndef XCE_CONTROLLER_SIM_RANDOM_H_
#define XCE_CONTROLLER_SIM_RANDOM_H_

#include <cstdint>

namespace xce::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) { next(); }

  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Less than n; 0 for 0.
  uint64_t below(uint64_t n) { return n == 0 ? 0 : next() % n; }
  // From low to high, both included.
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  bool one_in(uint64_t n) { return below(n) == 0; }
  double unit() { return static_cast<double>(next() >> 11) / 9007199254740992.0; }  // [0, 1)
  // A stream of its own.
  Random fork() { return Random(next()); }

 private:
  uint64_t state_;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_RANDOM_H_
