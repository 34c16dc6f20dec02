// Concurrent clients that write down what they asked and what they were told: one JSON line an
// operation, for e2e/checker/check. Bounded in count and in time. I/O; run() may be called once.
//
// A line: {"client":1,"op":"submit","key":"k7","hold":true,"call":ns,"return":ns,"outcome":"ok",
// "job":7}. Operations: submit, hold, release, kill (with "job" and "key"; "count" tells how many
// jobs were changed), info ("state", or "ABSENT") and list ("jobs": [[id, key, state]...]).
// Outcome: ok; dup (submit: "job" is the earlier one); refused (the cluster says that the job is in
// no state for it); unknown (it may or may not have been applied). What was certainly not applied
// and reads without an answer are not written down.
#ifndef XCE_E2E_CHECKER_WORKLOAD_H_
#define XCE_E2E_CHECKER_WORKLOAD_H_

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "e2e/cluster/cluster.h"

namespace xce::e2e {

struct WorkloadOptions {
  int clients = 6;
  int max_jobs = 400;
  int max_operations = 12000;
  int think_ms = 16;       // at most, between two operations of a client
  int deadline_ms = 2500;  // of a call
  int hasty_ms = 120;      // of a call of every other client: it often gives up
  uint64_t seed = 1;
};

class Workload {
 public:
  Workload(std::string masters, std::string work_dir, std::string history_path,
           WorkloadOptions options);
  ~Workload();  // stops
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  void start();
  // Ends all clients, after a last listing, and closes the history.
  void stop();
  int operations() const { return operations_; }
  int unknown() const { return unknown_; }
  int not_applied() const { return not_applied_; }

 private:
  struct Known {
    uint64_t id;
    std::string key;
  };
  class Worker;

  void write_line(const std::string& line);
  void learn(uint64_t id, const std::string& key);

  const std::string masters_, work_dir_;
  const WorkloadOptions options_;
  std::mutex mutex_;  // of the history and what is known
  FILE* history_;
  std::vector<Known> known_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> operations_{0}, unknown_{0}, not_applied_{0}, keys_{0};
  std::vector<std::thread> threads_;
};

}  // namespace xce::e2e

#endif  // XCE_E2E_CHECKER_WORKLOAD_H_
