// What the benchmark's parts share. Each part (rows_*.cc) measures some rows on a cluster of its
// own and adds them to the report. I/O; one thread, but for the load that a part makes.
#ifndef XCE_BENCH_BENCH_H_
#define XCE_BENCH_BENCH_H_

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "bench/limits.h"
#include "bench/report.h"
#include "e2e/cluster/cluster.h"

namespace xce::bench {

using e2e::Client;
using e2e::Clock;
using e2e::Cluster;
using e2e::ClusterOptions;
using e2e::milliseconds;
using e2e::wait_until;

enum class Size { kQuick, kNormal, kFull };

struct Settings {
  Size size = Size::kNormal;
  bool tls = false;
  std::set<std::string> only;  // ids of rows; empty: all
  int pick(int quick, int normal, int full) const {
    return size == Size::kQuick ? quick : size == Size::kNormal ? normal : full;
  }
  // Whether any of these rows is wanted.
  bool wants(std::initializer_list<const char*> ids) const {
    if (only.empty()) return true;
    for (const char* id : ids)
      if (only.count(id) != 0) return true;
    return false;
  }
};

// One run.
struct Run {
  Settings settings;
  Report report;
  std::atomic<int> errors{0};  // calls that failed: the figures are not to be trusted then

  explicit Run(Settings s);
  std::unique_ptr<Cluster> cluster(ClusterOptions options);  // null: it says why
  std::unique_ptr<Client> client(Cluster* cluster, int deadline_ms = 30000);
  // A job that waits for ever. Its id, or a negative status, which is counted.
  int64_t submit_held(Client* client, int number);
  void failed(const std::string& what);
};

double since_us(Clock::time_point begin);
void note(const std::string& what);  // progress, on standard error
std::string ms(double us);           // "1.23 ms"
// Waits until every controller is connected to the primary and has nearly all of its log.
bool wait_whole(Client* client, milliseconds limit);

void durable_writes(Run* run);  // rows_write.cc
void failovers(Run* run);       // rows_failover.cc
void many_jobs(Run* run);       // rows_queue.cc: memory, listing, failover with much memory
void whole_jobs(Run* run);      // rows_jobs.cc: submit -> running, end to end
void etcd_beside(Run* run);     // rows_etcd.cc
void slurm_beside(Run* run);    // rows_slurm.cc

// What rows_write.cc found, for the rows that stand beside it; 0: not measured.
struct Beside {
  double write_us = 0;
  double submissions_per_s = 0;
};
Beside* beside();

}  // namespace xce::bench

#endif  // XCE_BENCH_BENCH_H_
