// See start_job.h.
#include "worker/shepherd/start_job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "worker/shepherd/process_tree.h"

namespace xce::worker {
namespace {

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
constexpr int kStages = 3;
enum Stage : int { kStageSession = 0, kStageWorkDir = 1, kStageExec = 2 };
const char* const kStageWords[kStages] = {"cannot make a session",
                                          "cannot enter the work directory", "cannot execute"};

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

struct Files {
  int in = -1, out = -1, err = -1;
  ~Files() {
    if (in >= 0) close(in);
    if (err >= 0 && err != out) close(err);
    if (out >= 0) close(out);
  }
};

std::string open_files(const ShepherdSpec& spec, Files* files, StartResult* result) {
  struct stat st;
  if (stat(spec.work_dir.c_str(), &st) != 0) {
    return "work directory " + spec.work_dir + " cannot be used on host " + spec.host + ": " +
           std::strerror(errno) + "; create it there or submit with another work directory";
  }
  if (!S_ISDIR(st.st_mode))
    return "work directory " + spec.work_dir + " is not a directory on host " + spec.host;

  std::string in = spec.stdin_path.empty() ? "/dev/null" : spec.stdin_path;
  if (in.front() != '/') in = spec.work_dir + "/" + in;
  files->in = open(in.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (files->in < 0)
    return with_errno("cannot read the input " + in + " on host " + spec.host, errno);
  fcntl(files->in, F_SETFL, 0);  // O_NONBLOCK was for opening a FIFO without waiting for its writer

  result->stdout_file = output_path(spec, spec.stdout_path);
  files->out = open_output(result->stdout_file, spec.attempt);
  if (files->out < 0) {
    return with_errno("cannot write " + result->stdout_file + " on host " + spec.host, errno) +
           "; submit with another output file (-o)";
  }
  result->stderr_file =
      spec.stderr_path.empty() ? result->stdout_file : output_path(spec, spec.stderr_path);
  if (result->stderr_file == result->stdout_file) {
    files->err = files->out;
    return "";
  }
  files->err = open_output(result->stderr_file, spec.attempt);
  if (files->err < 0) {
    return with_errno("cannot write " + result->stderr_file + " on host " + spec.host, errno) +
           "; submit with another error file (-e)";
  }
  return "";
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
  for (const char* own : {"XCE_JOB_ID", "XCE_ARRAY_ID", "XCE_ARRAY_INDEX", "XCE_JOB_NAME",
                          "XCE_HOST", "XCE_CPUS", "XCE_NODELIST", "XCE_ATTEMPT"}) {
    if (name == own) return true;
  }
  return false;
}

[[noreturn]] void child_fails(int pipe, Stage stage) {
  const ChildError error{stage, errno};
  if (write(pipe, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

// Between fork and exec.
[[noreturn]] void child(const ShepherdSpec& spec, const std::string& program, char** argv,
                        char** envp, const Files& files, const std::string& cgroup_procs,
                        int pipe) {
  if (setsid() < 0) child_fails(pipe, kStageSession);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a shepherd that is killed takes its job along
  if (!cgroup_procs.empty()) {
    const int fd = open(cgroup_procs.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "0", 1) < 0)
      errno = 0;  // without the group there is no limit; the job runs all the same
  }
  if (chdir(spec.work_dir.c_str()) != 0) child_fails(pipe, kStageWorkDir);
  umask(022);
  dup2(files.in, 0);
  dup2(files.out, 1);
  dup2(files.err, 2);
  for (int sig = 1; sig < NSIG; ++sig) signal(sig, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  environ = envp;
  for (int tries = 0; tries < 50; ++tries) {
    if (spec.has_script) {
      execve(program.c_str(), argv, envp);
    } else {
      execvp(program.c_str(), argv);
    }
    if (errno != ETXTBSY)
      break;  // a writer of the script is still about to close it in another process
    usleep(2000);
  }
  child_fails(pipe, kStageExec);
}

}  // namespace

std::vector<std::string> job_environment(const ShepherdSpec& spec) {
  std::vector<std::string> env;
  bool path = false;
  for (const std::string& entry : spec.env) {
    if (is_ours(entry)) continue;  // of the job that submitted this one
    path = path || entry.compare(0, 5, "PATH=") == 0;
    env.push_back(entry);
  }
  if (!path) env.push_back(std::string("PATH=") + kDefaultPath);
  env.push_back("XCE_JOB_ID=" + std::to_string(spec.job));
  if (spec.array != 0) {
    env.push_back("XCE_ARRAY_ID=" + std::to_string(spec.array));
    env.push_back("XCE_ARRAY_INDEX=" + std::to_string(spec.array_index));
  }
  env.push_back("XCE_JOB_NAME=" + spec.name);
  env.push_back("XCE_HOST=" + spec.host);
  env.push_back("XCE_CPUS=" + std::to_string(spec.cpus));
  env.push_back("XCE_NODELIST=" + spec.node_list);
  env.push_back("XCE_ATTEMPT=" + std::to_string(spec.attempt));
  return env;
}

StartResult start_job(const ShepherdSpec& spec, const std::string& job_dir,
                      const std::string& cgroup_procs) {
  StartResult result;
  result.exit_code = 1;
  Files files;
  result.error = open_files(spec, &files, &result);
  if (!result.error.empty()) return result;
  if (!spec.has_script && (spec.args.empty() || spec.args.front().empty())) {
    result.error = "the job has neither a script nor a command";
    return result;
  }

  const std::string program = spec.has_script ? job_dir + "/" + kScriptFile : spec.args.front();
  std::vector<std::string> env = job_environment(spec), args = spec.args;
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
  const pid_t pid = fork();
  if (pid == 0) child(spec, program, argv.data(), envp.data(), files, cgroup_procs, pipe_fds[1]);
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
  if (n == 0) {  // closed by a successful exec
    result.pid = pid;
    result.exit_code = 0;
    return result;
  }
  const bool exec = n == sizeof error && error.stage == kStageExec;
  result.exit_code = exec ? (error.error == ENOENT ? 127 : 126) : 1;
  result.error =
      exec ? exec_error(spec, program, error.error)
           : with_errno(kStageWords[error.stage % kStages] + (" " + spec.work_dir), error.error);
  return result;
}

std::string full_disk_message(const std::string& file) {
  struct statvfs fs;
  if (file.empty() || statvfs(file.c_str(), &fs) != 0) return "";
  if (fs.f_blocks == 0 || fs.f_bavail > 0)
    return "";  // devices such as /dev/null have no blocks at all
  return "cannot write " + file +
         ": No space left on device; free space there or submit with another output file";
}

}  // namespace xce::worker
