// Whether this host can start jobs at all. What every job needs (room in the data directory, a new
// process) and the host does not have is no job's fault: the host says so and drains itself, rather
// than to fail one job after the other. I/O; not thread safe: the supervisor's.
#ifndef XCE_WORKER_AGENT_HOST_HEALTH_H_
#define XCE_WORKER_AGENT_HOST_HEALTH_H_

#include <cstdint>
#include <functional>
#include <string>

namespace xce::worker {

class HostHealth {
 public:
  struct Options {
    uint64_t min_free_mb = 32;  // in the data directory; from a quarter more on all is well again
    int64_t retry_ms = 10000;   // after a failure that nothing can be measured of
    // Free MiB for this process in the file system of a path; for tests.
    std::function<uint64_t(const std::string&)> free_mb;
  };

  HostHealth(std::string data_dir, Options options);

  // "": it can. Otherwise why not, in words.
  const std::string& fault() const { return fault_; }
  // Looks again. To be called now and then, and before something is started.
  void look(int64_t now_ms);
  // Something that every job needs has failed: `why`.
  void failed(std::string why, int64_t now_ms);

 private:
  const std::string data_dir_;
  const Options options_;
  std::string fault_, failure_;
  int64_t failure_until_ms_ = 0;
  bool full_ = false;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_HOST_HEALTH_H_
