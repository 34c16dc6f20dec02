// The scheduler's view of the cluster: jobs, hosts and queues as last heard, plus what this
// scheduler itself has decided and the controller has not confirmed yet. PURE: events in, no clock,
// no I/O; not thread safe (pipeline/ locks it).
//
// A record is replaced only by one of a higher modify_index, so pages of a join and events may come
// in any order. A start that was decided here (start_locally) holds its hosts at once; it gives way
// when the controller's record has that attempt, or when the controller refuses it (roll_back).
#ifndef XCE_SCHEDULER_POLICY_VIEW_H_
#define XCE_SCHEDULER_POLICY_VIEW_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "libxce/model/command.h"
#include "libxce/model/host.h"
#include "libxce/model/job.h"
#include "scheduler/policy/dependencies.h"
#include "scheduler/policy/fair_share.h"
#include "scheduler/policy/host_pool.h"
#include "scheduler/policy/host_profile.h"
#include "scheduler/policy/job_index.h"

namespace xce::sched {

// Why a job does not run, in short; the words may differ within one kind.
enum class ReasonKind : uint8_t {
  kNone,
  kHeld,
  kDependency,
  kNever,
  kNoHost,
  kImpossible,
  kBusy,
  kTurn,
  kQueueStopped,
  kQueueLimit,
  kUserLimit,
  kArrayLimit,
  kBehind,
  kRefused,
  kReserved,
};

// Where a job is kept; tells what must be undone before its record changes.
enum class Place : uint8_t { kNowhere, kReady, kBlocked, kHeld, kParked, kHolding };

struct JobRecord {
  JobId id = 0;
  JobId array_id = 0;
  ClassKey key;
  JobState state = JobState::kPending;
  Place place = Place::kNowhere;
  ReasonKind reason_kind = ReasonKind::kNone;
  uint32_t attempt = 0;
  uint32_t starts = 0;
  uint32_t seen = 0;         // retake in which it was last seen
  uint32_t refusals = 0;     // in a row
  uint32_t evicted = 0;      // the attempt that is to make room for others; 0: none
  uint64_t name_key = 0;     // hash of user and name, for singletons
  uint64_t reason_hash = 0;  // of the words last published; 0: none
  int64_t reason_ms = 0;
  int64_t submit_ms = 0;
  int64_t start_ms = 0;
  int64_t evicted_ends_ms = 0;
  int64_t retry_ms = 0;         // not before, after a refusal
  int64_t charged_from_ms = 0;  // fair share counts it from then on, with charged_cpus
  uint32_t charged_cpus = 0;    // 0: it does not
  bool step = false;            // runs inside another job: holds and counts nothing by itself
  Index modify_index = 0;
  struct Extra {  // what few jobs have
    std::vector<Dependency> dependencies;
    std::vector<Alloc> allocs;
  };
  std::unique_ptr<Extra> extra;
  std::unique_ptr<Dispatch> planned;  // decided here, not confirmed
};

// Whether what it runs now is to be stopped for others.
inline bool is_evicted(const JobRecord& job) {
  return job.evicted != 0 && job.evicted == job.attempt && !job.planned;
}

struct QueueRecord {
  Queue queue;
  uint32_t seen = 0;
};

// How many jobs hold hosts.
struct Running {
  std::map<NameId, uint32_t> of_queue;
  std::map<std::pair<NameId, NameId>, uint32_t> of_user;       // queue, user
  std::map<JobId, uint32_t> of_array;                          // with a limit
  std::map<std::pair<NameId, NameId>, uint64_t> cpus_of_user;  // queue, user
};

class View {
 public:
  // Turns fair share on, with this half-life of usage. Before anything is heard.
  void set_fair_share(int64_t half_life_ms);

  // ---- what is heard. Each is ignored when older than what is known.
  void put_job(const Job& job);
  void remove_job(JobId id, Index revision);
  void put_host(const Host& host);
  void remove_host(const std::string& name);
  void put_queue(const Queue& queue);
  void remove_queue(const std::string& name);
  void put_reservation(const Reservation& reservation);
  void remove_reservation(const std::string& name, Index revision);
  // The whole state is about to come in pages, with events between them; what has not come by the
  // end is gone.
  void begin_retake();
  void end_retake();
  // A job that ended before anything else was heard: what it used counts for fair share, and how
  // long it ran for estimates. Nothing when the job is known otherwise.
  void put_past(const Job& job);
  // Jobs that waiting jobs depend on and of which nothing is known, each told once: ask for them,
  // then put_job or set_unknown each, or ask_again when the asking failed.
  // A job that is the first of an array stands for it: all tasks of the array are to be told, then
  // set_array_told.
  std::vector<JobId> take_unasked();
  void set_array_told(JobId array_id);
  void ask_again(const std::vector<JobId>& ids) { unasked_.insert(ids.begin(), ids.end()); }
  void set_unknown(JobId id);
  bool has_unasked() const { return !retaking_ && !unasked_.empty(); }

  // ---- what is decided here
  // The job holds these hosts from now on. Returns the attempt to dispatch.
  uint32_t start_locally(JobId id, std::vector<Alloc> allocs, int64_t now_ms);
  // That attempt will not be: the job waits again, and is not tried before retry_ms (0: at once)
  // unless its record changes.
  void roll_back(JobId id, uint32_t attempt, int64_t retry_ms);
  // The running job is to be stopped for others; its hosts count as free from ends_ms on.
  void evict_locally(JobId id, int64_t ends_ms);
  // The controllers did not take that.
  void undo_eviction(JobId id, uint32_t attempt);
  // The time that rounds go by; ends of which no time is known are taken to be then.
  void set_now(int64_t now_ms) { now_ms_ = now_ms; }
  int64_t now_ms() const { return now_ms_; }
  // Jobs whose retry time has come are ready again.
  void release_parked(int64_t now_ms);
  // These words were sent for the job.
  void set_reason(JobId id, ReasonKind kind, uint64_t hash, int64_t now_ms);

  // ---- reading
  const JobRecord* find(JobId id) const;
  const HostPool& hosts() const { return hosts_; }
  const JobIndex& ready() const { return ready_; }
  const Running& running() const { return running_; }
  // The queue's record, or null for one that is not known (then it has no limits).
  const Queue* queue(NameId id) const;
  const std::string& name(NameId id) const { return names_[id]; }
  // Time limit of a job of this class in seconds; 0: none.
  uint32_t time_limit_s(const ClassKey& key) const;
  // The same in milliseconds; kNever: none.
  int64_t duration_ms(const ClassKey& key) const;
  // How long jobs of this user have run lately, on average; of all users when this one has not run
  // any, 0 when nobody has.
  int64_t usual_run_ms(NameId user) const;
  bool has_blocked() const { return blocked_ > 0; }
  // Jobs that wait for other jobs.
  void each_blocked(const std::function<void(const JobRecord&)>& each) const;
  const FairShare& fair_share() const { return fair_share_; }
  // Decayed cpu-seconds of a user for fair share.
  double usage_of(const std::string& user, int64_t now_ms) const;
  size_t jobs() const { return jobs_.size(); }
  size_t waiting() const { return ready_.size() + not_ready_; }
  size_t parked() const { return parked_.size(); }
  // The verdict on a job's dependencies; fills `which` and `fate` with the one that it waits for.
  DependencyVerdict dependencies(const JobRecord& job, Dependency* which, JobFate* fate) const;
  // Held and blocked jobs whose reason may have changed; the pass over them takes them out.
  absl::btree_set<JobId>& stale_reasons() { return stale_reasons_; }
  // Ready jobs for which no reason has ever been published.
  const absl::btree_set<JobId>& unexplained() const { return unexplained_; }

 private:
  NameId intern(const std::string& name);
  void fill(JobRecord* record, const Job& job);
  void place(JobRecord* record);
  void unplace(JobRecord* record);
  static const std::vector<Alloc>* allocs_of(const JobRecord& record);
  void hold(const JobRecord& record, const std::vector<Alloc>& allocs);
  void release(const JobRecord& record, const std::vector<Alloc>& allocs);
  void count(const JobRecord& record, int by);
  void charge(JobRecord* record);
  void uncharge(JobRecord* record, int64_t until_ms);
  void forget(JobId id);
  void ended(JobId id, const JobFate& fate, Index modify_index);
  void reconsider_dependents(JobId id);
  void reconsider_singletons(uint64_t name_key);
  void reconsider(JobId id);
  JobFate fate_of(JobId id) const;
  bool to_be_asked(JobId dependency) const;
  void count_task(const JobRecord& record, int by);
  void task_ended(JobId array_id, JobState state);
  void sweep_arrays();
  void reservations_changed();
  void note_run(NameId user, int64_t run_ms);
  bool knows(JobId id) const;

  std::map<JobId, JobRecord> jobs_;
  absl::btree_set<std::pair<uint64_t, JobId>> by_name_;  // alive jobs, for singletons
  std::map<uint64_t, uint32_t> singletons_;              // waiting singletons by name key
  EndedJobs ended_;
  HostPool hosts_;
  JobIndex ready_;
  Running running_;
  FairShare fair_share_;
  std::map<NameId, double> usual_run_ms_;  // moving averages
  double usual_run_of_all_ms_ = 0;
  std::map<JobId, ArrayFate> arrays_;
  std::map<NameId, QueueRecord> queues_;
  std::map<std::string, std::shared_ptr<Kept>> reservations_;
  std::map<std::string, Index> reservations_gone_;  // in this retake: older rows may still come
  std::set<std::pair<int64_t, JobId>> parked_;
  absl::btree_set<JobId> stale_reasons_, unexplained_, unasked_;
  std::map<std::string, NameId> name_ids_;
  std::vector<std::string> names_;
  size_t not_ready_ = 0;
  size_t blocked_ = 0;      // of those
  size_t sweep_at_ = 4096;  // arrays
  int64_t now_ms_ = 0;
  uint32_t seen_ = 1;
  bool retaking_ = false;
};

// A hash that is the same on every machine (FNV-1a), never 0.
uint64_t stable_hash(const std::string& text);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_VIEW_H_
