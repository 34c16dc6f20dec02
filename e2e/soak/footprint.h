// What daemons take of the machine over time, and whether that stays flat. footprint() is I/O, the
// rest is PURE.
#ifndef XCE_E2E_SOAK_FOOTPRINT_H_
#define XCE_E2E_SOAK_FOOTPRINT_H_

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace xce::e2e {

struct Footprint {
  int64_t memory_kb = 0;  // resident
  int64_t descriptors = 0;
  int64_t threads = 0;
};

// Of a process that runs now.
std::optional<Footprint> footprint(pid_t pid);

// How much a daemon may grow between two moments of one life.
struct FlatBounds {
  int64_t memory_kb = 24 * 1024;
  // The state keeps ended jobs, the newest 10,000 of them; this much for each that was acknowledged
  // in between.
  int64_t memory_kb_per_job = 6;
  int64_t descriptors = 12;  // connections of clients that come and go
  int64_t threads = 12;
};

// Compares, in each life of each daemon (from one start to the next), when it had warmed up with
// its end. A life too short for that is not judged.
class Flatness {
 public:
  static constexpr double kWarmS = 5;    // after its start
  static constexpr double kLeastS = 10;  // from then on: shorter lives tell nothing
  static constexpr size_t kWindow = 5;   // samples of which one is taken

  explicit Flatness(FlatBounds bounds = {}) : bounds_(bounds) {}

  // What `daemon` takes at that time (seconds); `jobs` have been acknowledged so far.
  void sample(const std::string& daemon, pid_t pid, double time_s, const Footprint& now,
              size_t jobs);

  struct Row {
    std::string daemon;
    int lives = 0, judged = 0;
    Footprint warm, end;                             // of the judged life that grew most in memory
    int64_t most_descriptors = 0, most_threads = 0;  // growth, of all lives
    std::string wrong;                               // in words; "": flat
  };
  std::vector<Row> rows() const;

 private:
  struct Life {
    pid_t pid = 0;
    double begin_s = 0, warm_s = 0, last_s = 0;
    size_t warm_samples = 0, jobs_warm = 0, jobs_last = 0;
    Footprint warm;              // the most of the first ones that count
    std::deque<Footprint> last;  // the newest ones
  };
  void judge(const Life& life, Row* row) const;

  const FlatBounds bounds_;
  std::map<std::string, std::vector<Life>> lives_;
};

}  // namespace xce::e2e

#endif  // XCE_E2E_SOAK_FOOTPRINT_H_
