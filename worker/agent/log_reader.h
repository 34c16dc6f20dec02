// Answers the controller's questions for a job's output, on a thread of its own: a slow file system
// must delay neither the jobs nor the connection. Where a job writes is known here while it lives;
// afterwards the controller's record tells. A question for output that is not there yet is kept,
// and the file looked at again every few milliseconds, until there is some or its time is over.
#ifndef XCE_WORKER_AGENT_LOG_READER_H_
#define XCE_WORKER_AGENT_LOG_READER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

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
  struct Question {
    LogQuery query;
    int64_t until_ms = 0;      // on the steady clock: to be answered by then
    std::optional<Job> owner;  // as the controllers know it, once they were asked
  };
  struct Reading {
    LogChunk chunk;
    bool may_grow = false;  // the job runs, and there was nothing
  };

  void run();
  // Takes the next question; waits for one, but only so long when some are kept. False: stopped.
  bool next(int64_t pause_ms, std::optional<Question>* out);
  Reading read(Question* question);
  // Answers, or gives false: it is to be kept.
  bool serve(Question* question, int64_t now_ms);

  ControllerLink* const link_;
  Supervisor* const supervisor_;
  const bool as_users_;
  std::thread thread_;
  absl::Mutex mutex_;
  std::deque<LogQuery> queries_ ABSL_GUARDED_BY(mutex_);
  std::vector<Question> kept_;  // the thread's own
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_LOG_READER_H_
