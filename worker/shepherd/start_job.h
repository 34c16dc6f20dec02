// Starting the job's first process: fork, the switch to the job's user, files opened, exec, and
// words for whatever goes wrong. Standard library only. For a single-threaded process.
#ifndef XCE_WORKER_SHEPHERD_START_JOB_H_
#define XCE_WORKER_SHEPHERD_START_JOB_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "worker/shepherd/job_cgroup.h"
#include "worker/shepherd/job_files.h"

namespace xce::worker {

struct StartResult {
  pid_t pid = 0;  // leads its own session; 0: could not be started
  std::string stdout_file, stderr_file;
  std::string error;  // what is wrong and what to do about it
  int exit_code = 0;  // as a shell would give: 126 cannot be run, 127 not found, 1 otherwise
};

// The job's environment: what was submitted, XCE_... variables, and PATH where none was submitted.
std::vector<std::string> job_environment(const ShepherdSpec& spec, const std::string& job_dir);

// Starts the job of `job_dir` in its control groups and as its user.
StartResult start_job(const ShepherdSpec& spec, const std::string& job_dir,
                      const JobCgroup& cgroup);

// "" or, when the file system of that output file is full, "cannot write FILE: No space left on
// device". `root`: for a writer who may use what is reserved for root.
std::string full_disk_message(const std::string& file, bool root);

}  // namespace xce::worker

#endif  // XCE_WORKER_SHEPHERD_START_JOB_H_
