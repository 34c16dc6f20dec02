// The job table: every job that is kept, and the indexes that make listing and counting quick.
// PURE. Only this class changes a job's state, queue and allocations, so that indexes and counters
// cannot drift. Indexes are B-trees of ids (about 9 bytes a job each): a million pending jobs are
// to cost at most 1 KiB each.
#ifndef XCE_CONTROLLER_STATE_JOBS_H_
#define XCE_CONTROLLER_STATE_JOBS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "libxce/model/host.h"
#include "libxce/model/job.h"

namespace xce::state {

using IdSet = absl::btree_set<JobId>;

class JobTable {
 public:
  // queues: whose pending and running counters this table keeps; must outlive it.
  explicit JobTable(std::map<std::string, Queue>* queues) : queues_(queues) {}

  const Job* find(JobId id) const;
  Job* find(JobId id);
  const std::map<JobId, Job>& all() const { return jobs_; }
  // Ids below this one have been given away, whether or not their jobs are still kept.
  JobId next_id() const { return next_id_; }

  // Adds a job without allocations under the next id, which it is given.
  Job& add(Job job);
  // Takes out a job that has ended, and returns it.
  Job remove(JobId id);

  void set_state(Job& job, JobState state);
  void set_queue(Job& job, const std::string& queue);
  void set_allocs(Job& job, std::vector<Alloc> allocs);
  // 0: not ended. With the modify_index of its end, which is its place among ended().
  void set_end(Job& job, int64_t end_ms);
  void add_cpu(const Job& job, uint64_t cpu_ms);

  // From a snapshot: the job as it was saved, with its id. Jobs come by rising id, after their
  // queues' definitions; false: this one does not.
  bool restore(Job job);
  void restore_user(const User& user);
  void restore_counts(JobId next_id, uint64_t finished);

  struct UserRecord {
    User user;
    IdSet jobs;
  };
  const IdSet& of_state(JobState state) const { return by_state_[static_cast<size_t>(state)]; }
  const IdSet& of_queue(const std::string& queue) const { return lookup(by_queue_, queue); }
  const IdSet& of_host(const std::string& host) const { return lookup(by_host_, host); }
  const IdSet& of_user(const std::string& user) const;
  // Commands that run inside that job (JobSpec::step), and have not ended.
  const IdSet& steps_of(JobId job) const;
  const std::map<std::string, UserRecord>& users() const { return users_; }
  // Ended jobs by the entry that ended them, oldest first, and id. (Not by the time of their end: a
  // worker that was cut off tells it late, and subscribers must hear of an end before it departs.)
  const absl::btree_set<std::pair<Index, JobId>>& ended() const { return ended_; }

  uint64_t waiting() const { return waiting_; }
  // Of one user in one queue.
  uint32_t waiting(const std::string& queue, const std::string& user) const;
  uint64_t holding() const { return holding_; }    // an allocation
  uint64_t finished() const { return finished_; }  // ends ever

 private:
  static const IdSet& lookup(const std::map<std::string, IdSet>& index, const std::string& key);
  static void drop(std::map<std::string, IdSet>& index, const std::string& key, JobId id);
  void count(const Job& job, JobState state, int delta);

  std::map<std::string, Queue>* queues_;
  std::map<JobId, Job> jobs_;
  JobId next_id_ = 1;
  std::array<IdSet, kJobStates> by_state_;
  std::map<std::string, IdSet> by_queue_, by_host_;
  std::map<std::string, UserRecord> users_;
  std::map<JobId, IdSet> steps_;  // by their job
  absl::btree_set<std::pair<Index, JobId>> ended_;
  std::map<std::pair<std::string, std::string>, uint32_t> waiting_of_;  // queue, user
  uint64_t waiting_ = 0, holding_ = 0, finished_ = 0;
};

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_JOBS_H_
