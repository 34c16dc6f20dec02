// What this machine can do at best: the floor that XCE's figures are divided by. I/O; single
// threaded.
#ifndef XCE_BENCH_LIMITS_H_
#define XCE_BENCH_LIMITS_H_

#include <memory>
#include <string>
#include <vector>

namespace xce::bench {

// Sorted samples in microseconds.
struct Samples {
  std::vector<double> us;
  void add(double microseconds) { us.push_back(microseconds); }
  double quantile(double q);
};

// 4 KiB O_DSYNC overwrites of a preallocated file in `dir`: the least that a durable write costs.
class DsyncFile {
 public:
  explicit DsyncFile(const std::string& dir);
  ~DsyncFile();
  DsyncFile(const DsyncFile&) = delete;
  DsyncFile& operator=(const DsyncFile&) = delete;
  // Writes the next block; the time it took in microseconds.
  double write_block();

 private:
  std::string path_;
  std::vector<char> block_;
  int fd_ = -1;
  int next_ = 0;
};

// Three of those files and three writers, as three controllers on one machine have: what the disk
// alone takes from an entry that a majority must have.
class ThreeWriters {
 public:
  explicit ThreeWriters(const std::string& dir);
  ~ThreeWriters();
  ThreeWriters(const ThreeWriters&) = delete;
  ThreeWriters& operator=(const ThreeWriters&) = delete;
  // All three write a block at once; the time until two of them are done, in microseconds. Returns
  // when all are.
  double write_block();

 private:
  struct Helper;
  DsyncFile own_;
  std::unique_ptr<Helper> helpers_[2];
};

// fork + exec of /bin/true + wait, one after the other, in microseconds each.
Samples spawns(int count);
// A byte to a thread and back over loopback TCP.
Samples round_trips(int count);

}  // namespace xce::bench

#endif  // XCE_BENCH_LIMITS_H_
