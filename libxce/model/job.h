// Jobs: what a person asks for, and what becomes of it. PURE.
#ifndef XCE_LIBXCE_MODEL_JOB_H_
#define XCE_LIBXCE_MODEL_JOB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libxce/model/rare.h"
#include "libxce/model/shared_texts.h"
#include "libxce/model/types.h"

namespace xce {

struct Gres {  // generic resource, such as gpu
  std::string name;
  uint32_t count = 0;
  std::vector<uint32_t> indices = {};  // of what a job holds: which ones; empty: not told apart
  // Amounts only: the state machine chooses which ones.
  friend bool operator==(const Gres& a, const Gres& b) {
    return a.name == b.name && a.count == b.count;
  }
};

struct Dependency {
  DependencyKind kind = DependencyKind::kAfterAny;
  JobId job = 0;  // 0 for kSingleton
};

// What is large and never changes after submission: shared between copies of a job and the tasks of
// an array.
struct JobBody {
  std::string script;             // with a #! line; empty when args is the command
  std::vector<std::string> args;  // arguments of the script, or the command and its arguments
  SharedTexts env;                // KEY=VALUE
};

// Which job's allocation a command runs in, and where: client.capnp's Step documents the fields.
struct Step {
  JobId job = 0;
  std::vector<std::string> hosts;
  uint32_t attempt = 0;
  JobId array_id = 0;
  uint32_t array_index = 0;
};

// One field a property of client.capnp's JobSpec, which documents them.
struct JobSpec {
  std::string name, user, queue, work_dir, submit_key;
  Rare<std::string> stdin_path, stdout_path, stderr_path, comment;
  uint32_t uid = 0, gid = 0;
  std::shared_ptr<const JobBody> body;  // never null in the replicated state; null in summaries
  uint32_t cpus = 1;                    // a host
  uint64_t memory_mb = 0;               // a host
  Rare<std::vector<Gres>> gres;         // a host
  uint32_t nodes = 1;
  bool exclusive = false, hold = false, requeue = false;
  uint32_t time_limit_s = 0, warn_signal = 0, warn_before_s = 0;
  int32_t priority = 0;
  Rare<std::vector<uint32_t>> array;
  uint32_t array_limit = 0;
  Rare<std::vector<Dependency>> dependencies;
  uint64_t body_hash = 0;
  std::shared_ptr<const Step> step;  // null: a job that the scheduler starts
};

struct Alloc {  // what a job holds on one host
  std::string host;
  uint32_t cpus = 0;
  uint64_t memory_mb = 0;
  std::vector<Gres> gres;
  friend bool operator==(const Alloc& a, const Alloc& b) {
    return a.host == b.host && a.cpus == b.cpus && a.memory_mb == b.memory_mb && a.gres == b.gres;
  }
};

struct Usage {
  uint64_t cpu_ms = 0, peak_memory_kb = 0, wall_ms = 0;
};

struct Job {
  JobId id = 0;
  JobId array_id = 0;  // id of the array's first task; 0: no array
  uint32_t array_index = 0;
  JobSpec spec;
  JobState state = JobState::kPending;
  Desired desired = Desired::kRun;
  uint32_t kill_signal = 0;   // with desired kKill: 0 for TERM then KILL
  uint32_t attempt = 0;       // number of its newest dispatch
  uint32_t starts = 0;        // attempts of which a start was reported
  std::vector<Alloc> allocs;  // while has_hosts(state); kept afterwards for the record
  std::string reason;
  int64_t submit_ms = 0, eligible_ms = 0, start_ms = 0,
          end_ms = 0;  // primary's wall clock since the epoch
  int32_t exit_code = 0;
  uint32_t exit_signal = 0;
  Usage usage;
  Rare<std::string> stdout_file, stderr_file;  // as opened by the worker
  Index modify_index = 0;
  int64_t estimated_start_ms = 0;  // in answers only: the state does not hold it
};

}  // namespace xce

#endif  // XCE_LIBXCE_MODEL_JOB_H_
