// The supervisor: the loop that owns the jobs of this host. It takes in what the controller wants
// (posted by the connector) and what the shepherds do (FIFO lines, pidfds, a look at everything
// once a second), lets the pure lifecycle decide, and carries the decisions out: launches, orders,
// reports, removals.
//
// It never waits for a controller. Each turn handles all that has come, then commits the outbox
// once; shepherds are asked for and reports become visible to the reporter only after that.
//
// Threads: run() is the loop; stop() and the posting and asking functions may be called from any
// thread.
#ifndef XCE_WORKER_AGENT_SUPERVISOR_H_
#define XCE_WORKER_AGENT_SUPERVISOR_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/agent/host_health.h"
#include "worker/agent/job_store.h"
#include "worker/agent/launcher_client.h"
#include "worker/agent/outbox.h"
#include "worker/lifecycle/lifecycle.h"
#include "worker/shepherd/lease.h"

namespace xce::worker {

class Supervisor {
 public:
  struct Options {
    std::string data_dir;  // locked by the caller
    std::string host;
    std::string shepherd_binary;
    JobSettings jobs;
    HostHealth::Options health;
    int look_ms = 1000;   // between two looks at every job
    std::string boot_id;  // of this boot; "": as the kernel says
  };
  struct OutputFiles {
    std::string stdout_file, stderr_file;
    bool ended = false;
  };

  Supervisor(Options options, Outbox* outbox);
  ~Supervisor();

  // Called, on the loop's thread, when new reports may be pending. Set before run().
  void set_reports_handler(std::function<void()> handler) { on_reports_ = std::move(handler); }

  // Called, on the loop's thread, when fault() has changed. Set before run().
  void set_fault_handler(std::function<void()> handler) { on_fault_ = std::move(handler); }

  // Starts the launcher and takes up the jobs found on disk. Before run().
  absl::Status start();
  // The loop, until stop(). Jobs go on afterwards.
  void run();
  void stop();

  // What the controller says.
  void observe(Job job);
  void disown(Key key, std::string why);
  void disown_all(JobId job, std::string why);
  void confirm(uint64_t seq);
  // After a join: the last report that the controller has applied, the revision it is at, and the
  // fault() that it was told. The jobs of this host must be observed anew after it.
  void joined(uint64_t applied, uint64_t revision, std::string fault);
  // Jobs with requeue may run until then (boot_ms(); shepherd/lease.h). To be called on this
  // connection's hellos after joined(): what was posted before it is of an earlier lease.
  void renew_lease(int64_t until_ms);

  // Why this host can start no jobs now; "": it can. From any thread.
  std::string fault() const;

  // Attempts that have not ended.
  std::vector<Key> alive() const;
  // Where the newest attempt of a job writes, if the job is known here.
  std::optional<OutputFiles> output_files(JobId job) const;

 private:
  struct Track {  // what has been seen of an attempt's shepherd
    int pidfd = -1;
    bool started = false, exited = false;
    size_t changes = 0;
  };
  struct DisownAll {
    JobId job;
    std::string why;
  };
  struct ConfirmUpTo {
    uint64_t seq;
  };
  struct JoinedAt {
    uint64_t applied, revision;
    std::string fault;
  };
  struct RenewLease {
    int64_t until_ms;
  };
  using Input = std::variant<Event, DisownAll, ConfirmUpTo, JoinedAt, RenewLease>;

  void post(Input input);
  void turn();
  void handle_inputs();
  void step(const Event& event);
  void act(const Action& action);
  void launch(const Launch& launch);
  void send_order(const Order& order);
  void confirm_now(uint64_t seq);
  void joined_now(const JoinedAt& joined);
  void renew_now(int64_t until_ms);
  void put_off(const Launch& launch);
  void launch_put_off();
  void look_at_health();
  void host_failed(const std::string& why);

  void adopt_jobs();
  void adopt(Key key, const std::map<Key, Outbox::LaunchState>& launches);
  void restart_launcher();
  void handle_answers();
  void handle_events_fifo();
  void watch(Key key, pid_t shepherd);
  void unwatch(Track* track);
  void look_at(Key key, bool dead);
  void look_at_all();
  void vanished(Key key, const Status& status);
  void end_orphans();
  void kill_marked(Key key);
  void after_commit();

  const Options options_;
  Outbox* const outbox_;
  JobStore store_;
  LauncherClient launcher_;
  HostHealth health_;
  std::function<void()> on_reports_, on_fault_;
  const std::string boot_id_;

  int epoll_fd_ = -1, wake_fd_ = -1, events_fd_ = -1;
  std::string event_lines_;
  std::map<Key, Track> tracks_;
  std::map<int, Key> by_pidfd_;
  std::vector<Key> to_ask_;      // prepared; to be asked for once committed
  std::vector<Key> to_remove_;   // directories of no more use
  std::vector<Order> unsent_;    // orders that no shepherd took yet
  std::vector<Launch> put_off_;  // cannot be made now: a fault of the host, or no lease
  Lease lease_;                  // as written
  std::string told_fault_;       // at the last join
  bool outbox_failing_ = false;
  uint64_t revision_ = 0;  // highest that a join has told
  int64_t next_look_ms_ = 0;

  mutable absl::Mutex mutex_;
  std::vector<Input> inputs_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string fault_ ABSL_GUARDED_BY(mutex_);
  mutable absl::Mutex lifecycle_mutex_;
  Lifecycle lifecycle_ ABSL_GUARDED_BY(lifecycle_mutex_);
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_SUPERVISOR_H_
