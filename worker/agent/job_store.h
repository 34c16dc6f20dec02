// The job directories of this host, as the worker sees them: made, read, given orders, removed.
// See shepherd/job_files.h for what lies in a directory. I/O.
// prepare, create and remove belong to one thread; the rest is thread safe.
#ifndef XCE_WORKER_AGENT_JOB_STORE_H_
#define XCE_WORKER_AGENT_JOB_STORE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libxce/model/job.h"
#include "worker/lifecycle/lifecycle.h"
#include "worker/shepherd/job_files.h"

namespace xce::worker {

// What is the same for every job of this host.
struct JobSettings {
  std::vector<std::string> cgroups;  // parents for the jobs' control groups
  bool limit_cpus = false;           // to what they asked for, where a control group can
  uint32_t max_processes = 0;        // of a job at once; 0: any
  bool run_as_users = false;         // each job as who submitted it; otherwise as this process
};

class JobStore {
 public:
  JobStore(std::string data_dir, std::string host, JobSettings settings)
      : data_dir_(std::move(data_dir)), host_(std::move(host)), settings_(std::move(settings)) {}

  // Makes DATA, DATA/jobs and the events FIFO.
  absl::Status prepare();
  // Makes the directory of an attempt: spec, script, control FIFO. One that exists unlaunched is
  // made anew. `lease_epoch`: of the host's lease now.
  absl::Status create(Key key, const Job& job, uint64_t lease_epoch);
  Status read_status(Key key) const;
  Key part_of(Key key) const;    // the job of a step; {0, 0} of others
  bool launched(Key key) const;  // its status file exists
  bool alive(Key key) const;     // its shepherd holds the lock
  // Unavailable: the shepherd does not listen yet, or no more.
  absl::Status send(const Order& order) const;
  // Removes the directory, or keeps it, emptied, for a later job: making and removing files costs
  // more than all else in a short job's life.
  void remove(Key key);
  std::vector<Key> scan() const;

  std::string events_fifo() const { return data_dir_ + "/" + kEventsFifo; }
  const std::string& data_dir() const { return data_dir_; }

 private:
  std::string dir(Key key) const { return data_dir_ + "/jobs/" + dir_name(key.job, key.attempt); }

  std::string spare_dir(uint64_t n) const { return data_dir_ + "/spare/" + std::to_string(n); }
  bool keep_spare(Key key);

  ShepherdSpec spec_of(const Job& job) const;

  const std::string data_dir_, host_;
  const JobSettings settings_;
  std::vector<uint64_t> spares_;  // numbers of the directories kept
  uint64_t next_spare_ = 1;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_JOB_STORE_H_
