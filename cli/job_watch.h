// Hears of changes of single jobs by the cluster's pushes, so that waiting for a job costs nobody
// anything. A lost connection loses the subscription: subscribe again, then read how the jobs
// stand. I/O; one thread calls, libxce's thread delivers.
#ifndef XCE_CLI_JOB_WATCH_H_
#define XCE_CLI_JOB_WATCH_H_

#include <xce/client.h>

#include <cstdint>
#include <mutex>
#include <vector>

namespace xce::cli {

class JobWatch {
 public:
  // Sets ctx's push and disconnect handlers, which stay: this must outlive ctx.
  explicit JobWatch(xcecli_ctx_t ctx);
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  // Whether all of `ids` are subscribed to, on a connection that has not been lost since.
  bool covers(const std::vector<uint64_t>& ids) const;
  // Subscribes to these jobs (1 to XCE_MAX_WATCHED_JOBS) instead of those before; what
  // xcecli_subscribe_jobs returns. Afterwards read how they stand.
  int subscribe(std::vector<uint64_t> ids);
  // Waits until jobs have changed, or were forgotten, and gives their ids in order of change, each
  // once. None: the timeout (ms; < 0: never), a remembered signal, or the subscription is lost.
  std::vector<uint64_t> wait(long long timeout_ms);

 private:
  void take(const xce_event_t& event);
  void lose();
  void wake() const;

  const xcecli_ctx_t ctx_;
  const int wake_fd_;
  mutable std::mutex mutex_;
  bool lost_ = true;               // guarded by mutex_
  std::vector<uint64_t> changed_;  // guarded by mutex_
  std::vector<uint64_t> ids_;      // subscribed to, ascending
};

}  // namespace xce::cli

#endif  // XCE_CLI_JOB_WATCH_H_
