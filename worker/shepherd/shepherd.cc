// See shepherd.h.
#include "worker/shepherd/shepherd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "worker/shepherd/job_files.h"
#include "worker/shepherd/memory_cgroup.h"
#include "worker/shepherd/process_tree.h"
#include "worker/shepherd/start_job.h"

namespace xce::worker {
namespace {

constexpr int64_t kNever = INT64_MAX;
constexpr int64_t kSweepMs = 20;          // between two rounds of KILL
constexpr int64_t kGiveUpMs = 30 * 1000;  // of KILL without effect: processes stuck in the kernel

int64_t clock_ms(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
}
int64_t now_ms() { return clock_ms(CLOCK_MONOTONIC); }
int64_t wall_ms() { return clock_ms(CLOCK_REALTIME); }

class Shepherd {
 public:
  Shepherd(std::string data_dir, std::string dir_name, int status_fd)
      : data_dir_(std::move(data_dir)),
        dir_name_(std::move(dir_name)),
        job_dir_(data_dir_ + "/jobs/" + dir_name_),
        status_fd_(status_fd) {
    parse_dir_name(dir_name_, &name_.job, &name_.attempt);
  }

  int run();

 private:
  bool read_spec();
  void open_control();
  void watch_signals();
  void write_status(const std::string& record);
  void tell_worker();
  void finish();
  void last_word(const StatusExit& exit);
  int fail(const std::string& message, int exit_code);

  int64_t next_deadline() const;
  void on_time();
  void reap();
  void read_orders();
  void obey(const std::string& order);
  void kill_job(uint32_t signal);
  void set_suspended(bool suspended);
  void set_limit(uint32_t seconds);
  void terminate();    // TERM to all, KILL after the kill wait
  void start_sweep();  // KILL to all, again and again until none is left
  void signal_tree(int signal);
  bool done() const { return main_ended_ && no_children_; }

  const std::string data_dir_, dir_name_, job_dir_;
  const int status_fd_;
  AttemptName name_;
  off_t status_end_ = 0;
  ShepherdSpec spec_;
  std::unique_ptr<MemoryCgroup> cgroup_;
  int control_fd_ = -1, signal_fd_ = -1;
  std::string orders_;  // received, not yet whole lines

  pid_t pid_ = 0;
  std::string stdout_file_, stderr_file_;
  int64_t start_ms_ = 0, end_ms_ = 0;
  int64_t warn_at_ = kNever, limit_at_ = kNever, kill_at_ = kNever, sweep_at_ = kNever,
          give_up_at_ = kNever;
  bool main_ended_ = false, no_children_ = false, terminating_ = false, suspended_ = false;
  bool warned_ = false, timed_out_ = false, killed_ = false, stuck_ = false;
  uint32_t user_signal_ = 0;  // a signal that a person asked for by number
  int wait_status_ = 0;
};

bool Shepherd::read_spec() {
  return decode_spec(read_small_file(job_dir_ + "/" + kSpecFile), &spec_);
}

void Shepherd::open_control() {
  // Read and write, so that it never reads as closed while no worker runs.
  control_fd_ = open((job_dir_ + "/" + kControlFifo).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

void Shepherd::watch_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int sig : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGPIPE}) sigaddset(&set, sig);
  sigprocmask(SIG_SETMASK, &set, nullptr);
  signal(SIGCHLD, SIG_DFL);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Appends a record and syncs it: only what is on disk may be reported.
void Shepherd::write_status(const std::string& record) {
  size_t done = 0;
  while (done < record.size()) {
    const ssize_t n = pwrite(status_fd_, record.data() + done, record.size() - done,
                             status_end_ + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return;  // the disk is broken: the worker will see a shepherd that died without a last word
    done += static_cast<size_t>(n);
  }
  status_end_ += static_cast<off_t>(record.size());
  fdatasync(status_fd_);
}

void Shepherd::tell_worker() {
  const int fd = open((data_dir_ + "/" + kEventsFifo).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;  // no worker runs: it will look by itself when it comes back
  const std::string line = dir_name_ + "\n";
  const ssize_t n = write(fd, line.data(), line.size());
  (void)n;  // a full pipe: the worker looks at all jobs once a second anyway
  close(fd);
}

int Shepherd::fail(const std::string& message, int exit_code) {
  StatusExit exit;
  exit.time_ms = wall_ms();
  exit.outcome = "FAILED";
  exit.exit_code = exit_code;
  exit.message = message;
  last_word(exit);
  return 0;
}

int Shepherd::run() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  watch_signals();
  if (!read_spec())
    return fail("the worker's file " + job_dir_ + "/" + kSpecFile + " cannot be read", 1);
  prctl(PR_SET_NAME, ("xce-job-" + std::to_string(spec_.job)).c_str());
  open_control();
  cgroup_ = std::make_unique<MemoryCgroup>(spec_.cgroup, "job." + dir_name_, spec_.memory_mb);

  start_ms_ = now_ms();
  StartResult result = start_job(spec_, job_dir_, cgroup_->procs_file());
  stdout_file_ = result.stdout_file;
  stderr_file_ = result.stderr_file;
  if (result.pid == 0) return fail(result.error, result.exit_code);
  pid_ = result.pid;
  set_limit(spec_.time_limit_s);
  StatusStarted started;
  started.shepherd_pid = getpid();
  started.shepherd_start_ticks = start_ticks(getpid());
  started.pid = pid_;
  started.start_ticks = start_ticks(pid_);
  started.boot_id = boot_id();
  started.time_ms = wall_ms();
  started.stdout_file = stdout_file_;
  started.stderr_file = stderr_file_;
  write_status(encode_started(name_, started));
  tell_worker();

  reap();
  while (!done() && !stuck_) {
    pollfd fds[2] = {{signal_fd_, POLLIN, 0}, {control_fd_, POLLIN, 0}};
    const int64_t deadline = next_deadline();
    const int64_t wait =
        deadline == kNever ? -1 : std::clamp<int64_t>(deadline - now_ms(), 0, 1000 * 1000);
    poll(fds, control_fd_ >= 0 ? 2 : 1, static_cast<int>(wait));
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == sizeof info) {
      // Somebody wants this shepherd to go: it takes the job along in good order.
      if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) kill_job(0);
    }
    read_orders();
    reap();
    on_time();
  }
  finish();
  return 0;
}

int64_t Shepherd::next_deadline() const {
  return std::min({warn_at_, limit_at_, kill_at_, sweep_at_, give_up_at_});
}

void Shepherd::on_time() {
  const int64_t now = now_ms();
  if (now >= warn_at_) {
    warn_at_ = kNever;
    warned_ = true;
    signal_tree(static_cast<int>(spec_.warn_signal));
  }
  if (now >= limit_at_) {
    limit_at_ = warn_at_ = kNever;
    if (!terminating_ && !main_ended_) {
      timed_out_ = true;
      terminate();
    }
  }
  if (now >= kill_at_) start_sweep();
  if (now >= sweep_at_) {
    sweep_at_ = now + kSweepMs;
    signal_tree(SIGKILL);
  }
  if (now >= give_up_at_) stuck_ = true;
}

void Shepherd::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR)) break;
    if (pid < 0) {
      no_children_ = true;
      break;
    }
    if (pid != pid_ || main_ended_) continue;
    main_ended_ = true;
    wait_status_ = status;
    end_ms_ = now_ms();
  }
  if (!main_ended_) return;
  limit_at_ = warn_at_ = kNever;
  // What the job left running ends with it; under a kill it may use the time it was given.
  if (!no_children_ && kill_at_ == kNever && sweep_at_ == kNever) start_sweep();
}

void Shepherd::read_orders() {
  char buffer[512];
  for (ssize_t n; control_fd_ >= 0 && (n = read(control_fd_, buffer, sizeof buffer)) > 0;) {
    orders_.append(buffer, static_cast<size_t>(n));
  }
  for (size_t end; (end = orders_.find('\n')) != std::string::npos;) {
    obey(orders_.substr(0, end));
    orders_.erase(0, end + 1);
  }
}

void Shepherd::obey(const std::string& order) {
  if (main_ended_) return;
  if (order.compare(0, 5, "kill ") == 0) {
    kill_job(static_cast<uint32_t>(std::strtoul(order.c_str() + 5, nullptr, 10)));
  } else if (order.compare(0, 6, "limit ") == 0) {
    set_limit(static_cast<uint32_t>(std::strtoul(order.c_str() + 6, nullptr, 10)));
  } else if (order == "suspend") {
    set_suspended(true);
  } else if (order == "resume") {
    set_suspended(false);
  }
}

void Shepherd::kill_job(uint32_t signal) {
  if (main_ended_) return;
  if (signal == SIGKILL) {
    killed_ = killed_ || !timed_out_;
    start_sweep();
  } else if (signal != 0) {
    user_signal_ = signal;
    signal_tree(static_cast<int>(signal));
  } else if (!terminating_) {
    killed_ = !timed_out_;
    terminate();
  }
}

// Counted from the job's start, also when it is changed later.
void Shepherd::set_limit(uint32_t seconds) {
  spec_.time_limit_s = seconds;
  limit_at_ = warn_at_ = kNever;
  if (seconds == 0 || terminating_) return;
  limit_at_ = start_ms_ + int64_t{seconds} * 1000;
  if (spec_.warn_signal == 0 || warned_) return;
  warn_at_ = std::max(start_ms_, limit_at_ - int64_t{spec_.warn_before_s} * 1000);
}

void Shepherd::set_suspended(bool suspended) {
  if (terminating_ || suspended == suspended_) return;
  suspended_ = suspended;
  signal_tree(suspended ? SIGSTOP : SIGCONT);
  write_status(encode_change(name_, {suspended, wall_ms()}));
  tell_worker();
}

void Shepherd::terminate() {
  terminating_ = true;
  kill_at_ = now_ms() + spec_.kill_wait_ms;
  signal_tree(SIGTERM);
  signal_tree(SIGCONT);  // a stopped process would not notice
}

void Shepherd::start_sweep() {
  terminating_ = true;
  kill_at_ = kNever;
  signal_tree(SIGKILL);
  if (sweep_at_ == kNever) {
    sweep_at_ = now_ms() + kSweepMs;
    give_up_at_ = now_ms() + kGiveUpMs;
  }
}

// Every process of the job gets the signal once; the tree is read again until nobody new shows up,
// because it may grow meanwhile.
void Shepherd::signal_tree(int signal) {
  std::vector<pid_t> signalled;
  for (int round = 0; round < 10; ++round) {
    bool fresh = false;
    for (pid_t pid : descendants(getpid())) {
      if (std::find(signalled.begin(), signalled.end(), pid) != signalled.end()) continue;
      kill(pid, signal);
      signalled.push_back(pid);
      fresh = true;
    }
    if (!fresh) break;
  }
}

void Shepherd::finish() {
  StatusExit exit;
  exit.time_ms = wall_ms();
  if (end_ms_ == 0) end_ms_ = now_ms();
  if (WIFSIGNALED(wait_status_)) {
    exit.exit_signal = static_cast<uint32_t>(WTERMSIG(wait_status_));
    exit.exit_code = 128 + WTERMSIG(wait_status_);
  } else {
    exit.exit_code = WEXITSTATUS(wait_status_);
  }
  const std::string full = full_disk_message(stdout_file_);
  const std::string full_err = stderr_file_ == stdout_file_ ? "" : full_disk_message(stderr_file_);
  if (timed_out_) {
    exit.outcome = "TIMEOUT";
    exit.message = "ended at its time limit of " + std::to_string(spec_.time_limit_s) + " s";
  } else if (killed_ || (user_signal_ != 0 && exit.exit_signal == user_signal_)) {
    exit.outcome = "KILLED";
  } else if (cgroup_->killed_for_memory()) {
    exit.outcome = "FAILED";
    exit.message = "used more than its " + std::to_string(spec_.memory_mb) +
                   " MiB of memory; submit with more (--mem)";
  } else if (!full.empty() || !full_err.empty()) {
    exit.outcome = "FAILED";
    exit.message = full.empty() ? full_err : full;
  } else {
    exit.outcome = exit.exit_code == 0 ? "COMPLETED" : "FAILED";
    if (exit.exit_signal != 0) {
      exit.message = "ended by signal " + std::to_string(exit.exit_signal) + " (" +
                     strsignal(static_cast<int>(exit.exit_signal)) + ")";
    }
  }
  if (stuck_)
    exit.message +=
        std::string(exit.message.empty() ? "" : "; ") + "some of its processes could not be killed";
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  auto ms = [](const timeval& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1000 + static_cast<uint64_t>(t.tv_usec) / 1000;
  };
  exit.cpu_ms = ms(usage.ru_utime) + ms(usage.ru_stime);
  exit.peak_memory_kb = static_cast<uint64_t>(usage.ru_maxrss);
  exit.wall_ms = static_cast<uint64_t>(end_ms_ - start_ms_);
  last_word(exit);
}

// The control FIFO may serve another job as soon as this end is known.
void Shepherd::last_word(const StatusExit& exit) {
  if (control_fd_ >= 0) close(control_fd_);
  control_fd_ = -1;
  write_status(encode_exit(name_, exit));
  tell_worker();
}

}  // namespace

int shepherd_main(const std::string& data_dir, const std::string& dir_name, int status_fd) {
  return Shepherd(data_dir, dir_name, status_fd).run();
}

}  // namespace xce::worker
