// A person's connection to the cluster: libxce with people's errors, patience and notices. I/O; one
// thread calls, one helper thread of its own says that no primary answers yet.
#ifndef XCE_CLI_SESSION_H_
#define XCE_CLI_SESSION_H_

#include <xce/client.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/job_watch.h"
#include "cli/parse.h"
#include "cli/settings.h"

namespace xce::cli {

struct PageDeleter {
  void operator()(xce_job_page_t* page) const { xce_free_job_page(page); }
};
using Page = std::unique_ptr<xce_job_page_t, PageDeleter>;

struct Connection {
  Masters masters;
  Tls tls;
  int deadline_ms = kPeopleDeadlineMs;  // of each call
  bool deadline_given = false;          // then also of a whole outage while following
  bool verbose = false;                 // errors tell the attempts
  bool notice = true;                   // say when no primary answers
};

class Session {
 public:
  // Connects, trying each master within the deadline. Unavailable: none answered; InvalidArgument:
  // masters is wrong.
  static absl::StatusOr<std::unique_ptr<Session>> open(const Connection& connection);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  xcecli_ctx_t ctx() const { return ctx_; }

  // Runs one libxce call and gives what it returned when >= 0. An error begins with `what` ("cannot
  // list jobs").
  absl::StatusOr<int> call(const std::string& what, const std::function<int(xcecli_ctx_t)>& op);
  // The same for reads that follow something: lives through an outage of any length, unless
  // --deadline was given. `until_steady_ms` (0: none) ends it with DeadlineExceeded.
  absl::StatusOr<int> follow(const std::string& what, long long until_steady_ms,
                             const std::function<int(xcecli_ctx_t)>& op);

  // A page of jobs, read with follow().
  absl::StatusOr<Page> follow_page(const std::string& what, const xce_job_filter_t& filter,
                                   long long until_steady_ms);
  absl::StatusOr<Page> job_page(const xce_job_filter_t& filter);
  // Calls `each` for every job of all pages. Stops early, and well, when it returns false.
  absl::Status all_jobs(xce_job_filter_t filter, const std::function<bool(const xce_job_t&)>& each);
  // The same of jobs that have ended, however long ago.
  absl::Status ended_jobs(xce_job_filter_t filter,
                          const std::function<bool(const xce_job_t&)>& each);

  // From now on changes of these jobs (1 to XCE_MAX_WATCHED_JOBS) are heard of by wait_for_change.
  // True: they were not until now, so read how they stand; false: they are already. Patient as
  // follow().
  absl::StatusOr<bool> watch_jobs(const std::string& what, const std::vector<uint64_t>& ids,
                                  long long until_steady_ms);
  // Waits for a change of a watched job and gives the ids of those that changed. None: until_ms (0:
  // none) or a while has passed, a signal is remembered, or the connection was lost; watch_jobs
  // tells.
  std::vector<uint64_t> wait_for_change(long long until_steady_ms);

  // The primary's wall clock.
  absl::StatusOr<int64_t> now_ms();

  // What went wrong with a call of this thread, in words, with the exit code in its code.
  absl::Status error(const std::string& what, int rc) const;

 private:
  absl::Status pages(xce_job_filter_t filter, bool ended,
                     const std::function<bool(const xce_job_t&)>& each);
  explicit Session(const Connection& connection) : connection_(connection) {}
  absl::Status start();
  int watched(const std::function<int(xcecli_ctx_t)>& op);
  void watch();

  const Connection connection_;
  xcecli_ctx_t ctx_ = nullptr;
  std::unique_ptr<JobWatch> watch_;
  bool clock_known_ = false;
  int64_t clock_offset_ms_ = 0;  // primary's wall clock - steady clock

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;     // guarded by mutex_
  long long call_since_ = 0;  // guarded by mutex_; 0: no call under way
  bool noticed_ = false;      // guarded by mutex_; until a call succeeds
  std::thread watcher_;
};

// A job, an array or tasks as the cluster knows them.
struct Resolved {
  std::string text;                         // as typed
  uint64_t id = 0;                          // of a job; of an array: its id
  bool array = false;                       // the whole array
  xce_job_state_t state = XCE_JOB_PENDING;  // of a job
};
// Finds what each reference names; `17[0-2]` gives three. What is not there goes to `missing`.
absl::StatusOr<std::vector<Resolved>> resolve(Session& session, const std::vector<JobRef>& refs,
                                              std::vector<std::string>* missing);
// The ids of all jobs that the references name, of an array those of all its tasks.
absl::StatusOr<std::vector<uint64_t>> all_ids(Session& session, const std::vector<JobRef>& refs,
                                              std::vector<std::string>* missing);
// The one job that a reference names; an array without an index is InvalidArgument naming its first
// task.
absl::StatusOr<Resolved> resolve_one(Session& session, const JobRef& ref);

}  // namespace xce::cli

#endif  // XCE_CLI_SESSION_H_
