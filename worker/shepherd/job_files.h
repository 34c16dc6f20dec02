// What lies in a job's directory DATA/jobs/<id>.<attempt>/, and its form on disk.
//
//   spec      what to run, written by the worker before the shepherd exists
//   script    the job's script, mode 0700 (absent for commands)
//   control   a FIFO: orders from the worker, one a line ("kill 0", "kill 10", "suspend", "resume",
//   "limit 60") status    records by the shepherd, append-only and synced: started, suspended,
//   resumed, exit. It exists exactly when
//             the attempt was launched, and its shepherd holds a lock (flock) on it for as long as
//             it lives.
//
// DATA/events is a FIFO by which shepherds tell the worker "look at <id>.<attempt>"; losing such a
// line is harmless. Standard library only. Thread safe: functions of their arguments.
#ifndef XCE_WORKER_SHEPHERD_JOB_FILES_H_
#define XCE_WORKER_SHEPHERD_JOB_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xce::worker {

inline constexpr char kSpecFile[] = "spec";
inline constexpr char kScriptFile[] = "script";
inline constexpr char kControlFifo[] = "control";
inline constexpr char kStatusFile[] = "status";
inline constexpr char kSpareStatusFile[] = "status.spare";  // of an earlier job: to be used again
inline constexpr char kEventsFifo[] = "events";
inline constexpr int kStatusBytes =
    16 * 1024;  // set aside at launch, so that a full disk cannot swallow the end

struct ShepherdSpec {
  uint64_t job = 0;
  uint64_t array = 0;  // id of the array's first task; 0: no array
  uint32_t array_index = 0;
  uint32_t attempt = 0;
  uint64_t step_of = 0;  // of a step: the job that it is a part of; `array` above is that job's
  uint32_t step_attempt = 0;  // of that job
  uint32_t step_rank = 0;     // the host's place among that job's
  std::string name, user, host, node_list;
  bool has_script = false;
  std::vector<std::string> args;  // of the script, or the command and its arguments
  std::vector<std::string> env;
  std::string work_dir, stdin_path, stdout_path,
      stderr_path;  // as asked for, patterns not yet replaced
  uint32_t cpus = 1;
  uint64_t memory_mb = 0;
  uint32_t time_limit_s = 0, warn_signal = 0, warn_before_s = 0;
  uint32_t kill_wait_ms = 5000;      // from TERM to KILL
  std::vector<std::string> cgroups;  // writable parents for the job's control groups: job_cgroup.h
  bool limit_cpus = false;           // to `cpus`, where a control group can
  uint32_t max_processes = 0;        // of the whole job at once; 0: any
  bool leased = false;               // ends when the host's lease has run out: lease.h
  uint64_t lease_epoch = 0;          // that it was launched in
  bool run_as = false;               // switch to uid, gid and groups, which the worker looked up
  uint32_t uid = 0, gid = 0;
  std::vector<uint32_t> groups;
};

struct StatusStarted {
  int32_t shepherd_pid = 0;
  uint64_t shepherd_start_ticks = 0;
  int32_t pid = 0;  // of the job's first process, which leads its session
  uint64_t start_ticks = 0;
  std::string boot_id;
  int64_t time_ms = 0;
  std::string stdout_file, stderr_file;
};

struct StatusExit {
  int64_t time_ms = 0;
  std::string outcome;  // COMPLETED, FAILED, KILLED, TIMEOUT, LOST (its lease ran out)
  int32_t exit_code = 0;
  uint32_t exit_signal = 0;
  uint64_t cpu_ms = 0, peak_memory_kb = 0, wall_ms = 0;
  std::string message;
};

struct StatusChange {  // suspended or resumed
  bool suspended = false;
  int64_t time_ms = 0;
};

struct Status {
  std::optional<StatusStarted> started;
  std::vector<StatusChange> changes;
  std::optional<StatusExit> exit;
};

std::string encode_spec(const ShepherdSpec& spec);
bool decode_spec(std::string_view bytes, ShepherdSpec* spec);

// Status records name their attempt: a status file may have been another attempt's before, and
// after a power cut hold what that one wrote. decode_status takes only records of the given
// attempt.
struct AttemptName {
  uint64_t job = 0;
  uint32_t attempt = 0;
};
std::string encode_started(AttemptName name, const StatusStarted& started);
std::string encode_exit(AttemptName name, const StatusExit& exit);
std::string encode_change(AttemptName name, const StatusChange& change);
Status decode_status(AttemptName name, std::string_view bytes);

// The output file that a pattern names: %j job, %A array (or job), %a array index, %x name, %u
// user, %% a percent sign. `pattern` "" means the default. Relative results are made absolute with
// the work dir.
std::string output_path(const ShepherdSpec& spec, std::string_view pattern);

// "17.2" and back.
std::string dir_name(uint64_t job, uint32_t attempt);
bool parse_dir_name(std::string_view name, uint64_t* job, uint32_t* attempt);

}  // namespace xce::worker

#endif  // XCE_WORKER_SHEPHERD_JOB_FILES_H_
