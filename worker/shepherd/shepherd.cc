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

#include "worker/shepherd/job_cgroup.h"
#include "worker/shepherd/job_files.h"
#include "worker/shepherd/lease.h"
#include "worker/shepherd/process_tree.h"
#include "worker/shepherd/start_job.h"

namespace xce::worker {
namespace {

constexpr int64_t kNever = INT64_MAX;
constexpr int64_t kSweepMs = 20;          // between two rounds of KILL
constexpr int64_t kGiveUpMs = 30 * 1000;  // of KILL without effect: processes stuck in the kernel
constexpr int kBriefMs = 2;               // who ends within that has start and end told as one
constexpr int64_t kLookMs = 500;          // between two looks at the lease and at what the job uses
constexpr char kLeaseMessage[] =
    "ended by its host: it asks to be requeued when its host is lost, and no controller renewed "
    "the "
    "host's lease";

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
  void append_status(const std::string& record);
  bool ends_at_once();
  void tell_worker();
  void finish();
  void last_word(const StatusExit& exit);
  int fail(const std::string& message, int exit_code);
  void decide(StatusExit* exit) const;

  bool lease_ran_out();
  bool measures() const;
  void measure();
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
  std::unique_ptr<JobCgroup> cgroup_;
  int control_fd_ = -1, signal_fd_ = -1;
  std::string orders_;  // received, not yet whole lines

  pid_t pid_ = 0;
  std::string stdout_file_, stderr_file_;
  int64_t start_ms_ = 0, end_ms_ = 0;
  int64_t warn_at_ = kNever, limit_at_ = kNever, kill_at_ = kNever, sweep_at_ = kNever,
          give_up_at_ = kNever, look_at_ = kNever;
  bool main_ended_ = false, no_children_ = false, terminating_ = false, suspended_ = false;
  bool warned_ = false, timed_out_ = false, killed_ = false, stuck_ = false;
  bool lease_lost_ = false, over_memory_ = false, over_processes_ = false;
  int64_t lease_until_ms_ = 0;   // of boot_ms(), as last read
  uint64_t peak_memory_kb_ = 0;  // of the whole tree, as measured
  uint32_t user_signal_ = 0;     // a signal that a person asked for by number
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
  append_status(record);
  fdatasync(status_fd_);
}

void Shepherd::append_status(const std::string& record) {
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
}

// Whether the job is over already, or will be in a moment. Then one sync puts its start and its end
// on disk, and the worker is told once.
bool Shepherd::ends_at_once() {
  pollfd ended = {signal_fd_, POLLIN, 0};
  poll(&ended, 1, kBriefMs);
  reap();
  return done();
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
  // A step is limited together with its job.
  const bool step = spec_.step_of != 0;
  cgroup_ = std::make_unique<JobCgroup>(
      spec_.cgroups,
      "job." + (step ? worker::dir_name(spec_.step_of, spec_.step_attempt) : dir_name_),
      step ? "step." + dir_name_ : "",
      CgroupLimits{spec_.memory_mb, spec_.limit_cpus ? spec_.cpus : 0, spec_.max_processes});
  if (lease_ran_out()) {
    StatusExit exit;
    exit.time_ms = wall_ms();
    exit.outcome = "LOST";
    exit.message = kLeaseMessage;
    last_word(exit);
    return 0;
  }
  start_ms_ = now_ms();
  if (spec_.leased || measures()) look_at_ = start_ms_ + kLookMs;
  StartResult result = start_job(spec_, job_dir_, *cgroup_);
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
  append_status(encode_started(name_, started));
  if (!ends_at_once()) {
    fdatasync(status_fd_);
    tell_worker();
  }
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
  int64_t look_at = look_at_;
  if (spec_.leased && look_at_ != kNever)
    look_at = std::min(look_at, now_ms() + std::max<int64_t>(lease_until_ms_ - boot_ms(), 0));
  return std::min({warn_at_, limit_at_, kill_at_, sweep_at_, give_up_at_, look_at});
}

bool Shepherd::lease_ran_out() {
  if (!spec_.leased) return false;
  const Lease lease = read_lease(data_dir_).value_or(Lease{lease_until_ms_, spec_.lease_epoch});
  if (lease.epoch != spec_.lease_epoch) return true;  // it ran out, and another one began
  lease_until_ms_ = lease.until_ms;
  return boot_ms() >= lease_until_ms_;
}

// Whether limits are kept by looking, for want of control groups.
bool Shepherd::measures() const {
  return (spec_.memory_mb != 0 && !cgroup_->limits_memory()) ||
         (spec_.max_processes != 0 && !cgroup_->limits_processes());
}

void Shepherd::measure() {
  const std::vector<pid_t> tree = descendants(getpid());
  TreeUsage usage = usage_of(tree);
  const uint64_t limit_kb = spec_.memory_mb * 1024;
  const bool looks_over = spec_.memory_mb != 0 && usage.memory_kb > limit_kb;
  if (looks_over) usage.memory_kb = std::min(usage.memory_kb, shared_memory_kb(tree));
  peak_memory_kb_ = std::max(peak_memory_kb_, usage.memory_kb);
  over_memory_ = looks_over && usage.memory_kb > limit_kb;
  over_processes_ = spec_.max_processes != 0 && usage.processes > spec_.max_processes;
  if (over_memory_ || over_processes_) start_sweep();
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
  if (!terminating_ && !main_ended_ && look_at_ != kNever) {
    if (lease_ran_out()) {
      lease_lost_ = true;
      terminate();
    } else if (now >= look_at_ && measures()) {
      measure();
    }
    if (now >= look_at_) look_at_ = now + kLookMs;
  }
  if (terminating_ || main_ended_) look_at_ = kNever;
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
  cgroup_->kill_all();
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
    std::vector<pid_t> tree = descendants(getpid());
    for (pid_t member : cgroup_->members()) {
      if (std::find(tree.begin(), tree.end(), member) == tree.end()) tree.push_back(member);
    }
    for (pid_t pid : tree) {
      if (std::find(signalled.begin(), signalled.end(), pid) != signalled.end()) continue;
      kill(pid, signal);
      signalled.push_back(pid);
      fresh = true;
    }
    if (!fresh) break;
  }
}

// The outcome and its words, once exit code and signal are known.
void Shepherd::decide(StatusExit* exit) const {
  const bool root = spec_.run_as ? spec_.uid == 0 : geteuid() == 0;
  const std::string full = full_disk_message(stdout_file_, root);
  const std::string full_err =
      stderr_file_ == stdout_file_ ? "" : full_disk_message(stderr_file_, root);
  if (lease_lost_) {
    exit->outcome = "LOST";
    exit->message = kLeaseMessage;
  } else if (timed_out_) {
    exit->outcome = "TIMEOUT";
    exit->message = "ended at its time limit of " + std::to_string(spec_.time_limit_s) + " s";
  } else if (over_memory_ || (!killed_ && cgroup_->killed_for_memory() &&
                              (spec_.step_of == 0 || exit->exit_signal == SIGKILL))) {
    exit->outcome = "FAILED";
    exit->message = "used more than its " + std::to_string(spec_.memory_mb) +
                    " MiB of memory; submit with more (--memory)";
  } else if (over_processes_) {
    exit->outcome = "FAILED";
    exit->message = "had more than the " + std::to_string(spec_.max_processes) +
                    " processes at once that this host allows a job";
  } else if (killed_ || (user_signal_ != 0 && exit->exit_signal == user_signal_)) {
    exit->outcome = "KILLED";
  } else if (!full.empty() || !full_err.empty()) {
    exit->outcome = "FAILED";
    exit->message = full.empty() ? full_err : full;
  } else {
    exit->outcome = exit->exit_code == 0 ? "COMPLETED" : "FAILED";
    if (exit->exit_signal != 0) {
      exit->message = "ended by signal " + std::to_string(exit->exit_signal) + " (" +
                      strsignal(static_cast<int>(exit->exit_signal)) + ")";
    }
    if (exit->exit_code != 0 && cgroup_->refused_a_process())
      exit->message += std::string(exit->message.empty() ? "" : "; ") + "it reached the " +
                       std::to_string(spec_.max_processes) +
                       " processes that this host allows a job";
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
  decide(&exit);
  if (stuck_)
    exit.message +=
        std::string(exit.message.empty() ? "" : "; ") + "some of its processes could not be killed";
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  auto ms = [](const timeval& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1000 + static_cast<uint64_t>(t.tv_usec) / 1000;
  };
  exit.cpu_ms = ms(usage.ru_utime) + ms(usage.ru_stime);
  exit.peak_memory_kb = std::max(
      {static_cast<uint64_t>(usage.ru_maxrss), peak_memory_kb_, cgroup_->peak_memory_kb()});
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
