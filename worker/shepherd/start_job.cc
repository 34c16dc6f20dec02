// See start_job.h.
#include "worker/shepherd/start_job.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "worker/shepherd/process_tree.h"

namespace xce::worker {
namespace {

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
enum Stage : int {
  kStageSession,
  kStageUser,
  kStageWorkDir,
  kStageInput,
  kStageOutput,
  kStageError,
  kStageExec
};

struct ChildError {
  int stage;
  int error;
};

std::string with_errno(const std::string& what, int error) {
  return what + ": " + std::strerror(error);
}

int open_output(const std::string& path, uint32_t attempt) {
  // A first attempt starts its output anew; a later one keeps what the earlier ones wrote.
  const int flags =
      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | (attempt <= 1 ? O_TRUNC : 0);
  return open(path.c_str(), flags, 0644);
}

// Where the job reads and writes, absolute.
struct Paths {
  std::string in, out, err;
};

Paths paths_of(const ShepherdSpec& spec) {
  Paths paths;
  paths.in = spec.stdin_path.empty() ? "/dev/null" : spec.stdin_path;
  if (paths.in.front() != '/') paths.in = spec.work_dir + "/" + paths.in;
  paths.out = output_path(spec, spec.stdout_path);
  paths.err = spec.stderr_path.empty() ? paths.out : output_path(spec, spec.stderr_path);
  return paths;
}

// Words for a failed exec of a script: the kernel says ENOENT of the script when its interpreter is
// missing.
std::string exec_error(const ShepherdSpec& spec, const std::string& program, int error) {
  if (!spec.has_script) {
    if (error == ENOENT)
      return "command " + program + " was not found on host " + spec.host +
             " (PATH of the job is searched)";
    return with_errno("command " + program + " cannot be executed on host " + spec.host, error);
  }
  std::string first = read_small_file(program).substr(0, 256);
  first = first.substr(0, first.find('\n'));
  if (first.compare(0, 2, "#!") != 0)
    return "the script has no #! line: make its first line, for example, #!/bin/sh";
  const size_t begin = first.find_first_not_of(" \t", 2);
  const std::string interpreter =
      begin == std::string::npos ? ""
                                 : first.substr(begin, first.find_first_of(" \t\r", begin) - begin);
  std::string hint;
  if (error == ENOENT && first.back() == '\r') hint = "; the script has Windows line ends (\\r\\n)";
  if (error == ENOENT)
    return "interpreter " + interpreter + " of the script does not exist on host " + spec.host +
           hint;
  return with_errno(
      "interpreter " + interpreter + " of the script cannot be run on host " + spec.host, error);
}

// Whether an environment entry is one that the shepherd sets.
bool is_ours(const std::string& entry) {
  const std::string name = entry.substr(0, entry.find('='));
  for (const char* own :
       {"XCE_JOB_ID", "XCE_ARRAY_ID", "XCE_ARRAY_INDEX", "XCE_JOB_NAME", "XCE_HOST", "XCE_CPUS",
        "XCE_NODELIST", "XCE_ATTEMPT", "XCE_STEP_ID", "XCE_HOST_INDEX", kMarkVariable}) {
    if (name == own) return true;
  }
  return false;
}

[[noreturn]] void child_fails(int pipe, Stage stage) {
  const ChildError error{stage, errno};
  if (write(pipe, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

// Becomes the user of the job for good, with that user's groups, and makes sure of it. On failure
// errno tells.
bool become_user(const ShepherdSpec& spec, const std::vector<gid_t>& groups) {
  if (!spec.run_as) return true;
  const uid_t uid = spec.uid;
  const gid_t gid = spec.gid;
  if (setgroups(groups.size(), groups.data()) != 0 || setresgid(gid, gid, gid) != 0 ||
      setresuid(uid, uid, uid) != 0)
    return false;
  uid_t real = 0, effective = 0, saved = 0;
  gid_t real_group = 0, effective_group = 0, saved_group = 0;
  gid_t now[NGROUPS_MAX];
  const int count = getgroups(NGROUPS_MAX, now);
  errno = EPERM;
  if (getresuid(&real, &effective, &saved) != 0 || real != uid || effective != uid || saved != uid)
    return false;
  if (getresgid(&real_group, &effective_group, &saved_group) != 0 || real_group != gid ||
      effective_group != gid || saved_group != gid)
    return false;
  if (count < 0 || static_cast<size_t>(count) > groups.size()) return false;
  for (int i = 0; i < count; ++i) {
    if (std::find(groups.begin(), groups.end(), now[i]) == groups.end()) return false;
  }
  const bool can_go_back = uid != 0 && setresuid(0, 0, 0) == 0;
  errno = EPERM;
  return !can_go_back;
}

// What the child needs, made before the fork: between fork and exec nothing is allocated.
struct Child {
  const ShepherdSpec& spec;
  const Paths& paths;
  const std::string& program;
  const std::vector<std::string>& cgroup_procs;
  const std::vector<gid_t>& groups;
  char** argv;
  char** envp;
  bool limit_processes;  // by rlimit
  pid_t shepherd;
  int pipe;
};

void open_files(const Child& c) {
  // O_NONBLOCK: for opening a FIFO without waiting for its writer.
  const int in = open(c.paths.in.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (in < 0) child_fails(c.pipe, kStageInput);
  fcntl(in, F_SETFL, 0);
  const int out = open_output(c.paths.out, c.spec.attempt);
  if (out < 0) child_fails(c.pipe, kStageOutput);
  const int err = c.paths.err == c.paths.out ? out : open_output(c.paths.err, c.spec.attempt);
  if (err < 0) child_fails(c.pipe, kStageError);
  dup2(in, 0);
  dup2(out, 1);
  dup2(err, 2);
}

// Between fork and exec. Files are opened as the user of the job: root's rights must not help.
[[noreturn]] void child(const Child& c) {
  if (setsid() < 0) child_fails(c.pipe, kStageSession);
  for (const std::string& procs : c.cgroup_procs) {
    const int fd = open(procs.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "0", 1) < 0)
      errno = 0;  // without the group there is no limit; the job runs all the same
  }
  umask(022);
  if (c.limit_processes) {
    const rlimit limit{c.spec.max_processes, c.spec.max_processes};
    setrlimit(RLIMIT_NPROC, &limit);
  }
  if (!become_user(c.spec, c.groups)) child_fails(c.pipe, kStageUser);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a shepherd that is killed takes its job along
  if (getppid() != c.shepherd) _exit(127);
  if (chdir(c.spec.work_dir.c_str()) != 0) child_fails(c.pipe, kStageWorkDir);
  open_files(c);
  for (int sig = 1; sig < NSIG; ++sig) signal(sig, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  environ = c.envp;
  for (int tries = 0; tries < 50; ++tries) {
    if (c.spec.has_script) {
      execve(c.program.c_str(), c.argv, c.envp);
    } else {
      execvp(c.program.c_str(), c.argv);
    }
    if (errno != ETXTBSY)
      break;  // a writer of the script is still about to close it in another process
    usleep(2000);
  }
  child_fails(c.pipe, kStageExec);
}

// What went wrong at that stage, and what to do about it.
std::string stage_error(const ShepherdSpec& spec, const Paths& paths, const std::string& program,
                        const ChildError& error) {
  const std::string here = " on host " + spec.host;
  switch (error.stage) {
    case kStageUser:
      return with_errno(
          "cannot become user " + std::to_string(spec.uid) + " (" + spec.user + ")" + here,
          error.error);
    case kStageWorkDir:
      if (error.error == ENOTDIR)
        return "work directory " + spec.work_dir + " is not a directory" + here;
      return with_errno("work directory " + spec.work_dir + " cannot be used" + here, error.error) +
             "; create it there or submit with another work directory";
    case kStageInput: return with_errno("cannot read the input " + paths.in + here, error.error);
    case kStageOutput:
      return with_errno("cannot write " + paths.out + here, error.error) +
             "; submit with another output file (-o)";
    case kStageError:
      return with_errno("cannot write " + paths.err + here, error.error) +
             "; submit with another error file (-e)";
    case kStageExec: return exec_error(spec, program, error.error);
    default: return with_errno("cannot make a session" + here, error.error);
  }
}

}  // namespace

std::vector<std::string> job_environment(const ShepherdSpec& spec, const std::string& job_dir) {
  std::vector<std::string> env;
  bool path = false;
  for (const std::string& entry : spec.env) {
    if (is_ours(entry)) continue;  // of the job that submitted this one
    path = path || entry.compare(0, 5, "PATH=") == 0;
    env.push_back(entry);
  }
  if (!path) env.push_back(std::string("PATH=") + kDefaultPath);
  const bool step = spec.step_of != 0;
  env.push_back("XCE_JOB_ID=" + std::to_string(step ? spec.step_of : spec.job));
  if (step) {
    env.push_back("XCE_STEP_ID=" + std::to_string(spec.job));
    env.push_back("XCE_HOST_INDEX=" + std::to_string(spec.step_rank));
  }
  if (spec.array != 0) {
    env.push_back("XCE_ARRAY_ID=" + std::to_string(spec.array));
    env.push_back("XCE_ARRAY_INDEX=" + std::to_string(spec.array_index));
  }
  env.push_back("XCE_JOB_NAME=" + spec.name);
  env.push_back("XCE_HOST=" + spec.host);
  env.push_back("XCE_CPUS=" + std::to_string(spec.cpus));
  env.push_back("XCE_NODELIST=" + spec.node_list);
  env.push_back("XCE_ATTEMPT=" + std::to_string(step ? spec.step_attempt : spec.attempt));
  env.push_back(std::string(kMarkVariable) + "=" + job_dir);
  return env;
}

StartResult start_job(const ShepherdSpec& spec, const std::string& job_dir,
                      const JobCgroup& cgroup) {
  StartResult result;
  result.exit_code = 1;
  if (!spec.has_script && (spec.args.empty() || spec.args.front().empty())) {
    result.error = "the job has neither a script nor a command";
    return result;
  }
  const Paths paths = paths_of(spec);
  const std::string program = spec.has_script ? job_dir + "/" + kScriptFile : spec.args.front();
  std::vector<std::string> env = job_environment(spec, job_dir), args = spec.args;
  if (spec.has_script) args.insert(args.begin(), program);
  std::vector<char*> argv, envp;
  for (std::string& arg : args) argv.push_back(arg.data());
  for (std::string& entry : env) envp.push_back(entry.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
    result.error = with_errno("cannot start the job on host " + spec.host, errno);
    return result;
  }
  const std::vector<gid_t> groups(spec.groups.begin(), spec.groups.end());
  const bool limit_processes =
      spec.run_as && spec.uid != 0 && spec.max_processes != 0 && !cgroup.limits_processes();
  const Child for_child{spec,     paths,       program,     cgroup.procs_files(),
                        groups,   argv.data(), envp.data(), limit_processes,
                        getpid(), pipe_fds[1]};
  const pid_t pid = fork();
  if (pid == 0) child(for_child);
  const int fork_error = errno;
  close(pipe_fds[1]);
  if (pid < 0) {
    close(pipe_fds[0]);
    result.error = with_errno("cannot start a process on host " + spec.host, fork_error);
    return result;
  }
  ChildError error{};
  ssize_t n;
  do n = read(pipe_fds[0], &error, sizeof error);
  while (n < 0 && errno == EINTR);
  close(pipe_fds[0]);
  if (n == 0 || error.stage > kStageInput) result.stdout_file = paths.out;
  if (n == 0 || error.stage > kStageOutput) result.stderr_file = paths.err;
  if (n == 0) {  // closed by a successful exec
    result.pid = pid;
    result.exit_code = 0;
    return result;
  }
  if (error.stage == kStageExec) result.exit_code = error.error == ENOENT ? 127 : 126;
  result.error = stage_error(spec, paths, program, error);
  return result;
}

std::string full_disk_message(const std::string& file, bool root) {
  struct statvfs fs;
  if (file.empty() || statvfs(file.c_str(), &fs) != 0) return "";
  if (fs.f_blocks == 0 || (root ? fs.f_bfree : fs.f_bavail) > 0)
    return "";  // devices such as /dev/null have no blocks at all
  return "cannot write " + file +
         ": No space left on device; free space there or submit with another output file";
}

}  // namespace xce::worker
