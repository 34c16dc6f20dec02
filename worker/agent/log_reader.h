// Answers the controller's questions for a job's output, on a thread of its own: a slow file system
// must delay neither the jobs nor the connection. Where a job writes is known here while it lives;
// afterwards the controller's record tells.
#ifndef XCE_WORKER_AGENT_LOG_READER_H_
#define XCE_WORKER_AGENT_LOG_READER_H_

#include <deque>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/agent/controller_link.h"
#include "worker/agent/supervisor.h"

namespace xce::worker {

inline constexpr uint32_t kMaxLogBytes = 1 << 20;  // of one answer

// Reads up to min(limit, kMaxLogBytes) bytes of `file` from `offset` on. `ended`: nothing will be
// added any more, so that the file's end is the end. A missing file of a job that has not ended is
// empty so far. I/O; thread safe.
LogChunk read_log(const std::string& file, uint64_t offset, uint32_t limit, bool ended);

class LogReader {
 public:
  // as_users: read each job's output with the rights of its user, who may have put anything in its
  // place.
  LogReader(ControllerLink* link, Supervisor* supervisor, bool as_users = false)
      : link_(link), supervisor_(supervisor), as_users_(as_users) {}
  ~LogReader() { stop(); }

  void start();
  // From any thread. Questions beyond the first thousand waiting are dropped: their askers ask
  // again.
  void ask(LogQuery query);
  void stop();

 private:
  void run();
  LogChunk answer(const LogQuery& query);

  ControllerLink* const link_;
  Supervisor* const supervisor_;
  const bool as_users_;
  std::thread thread_;
  absl::Mutex mutex_;
  std::deque<LogQuery> queries_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_LOG_READER_H_
