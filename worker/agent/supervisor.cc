// See supervisor.h. Launching jobs, and what must be so for that, is in launching.cc; taking up
// jobs after a restart in adoption.cc.
#include "worker/agent/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "worker/agent/clock.h"
#include "worker/shepherd/process_tree.h"

namespace xce::worker {
namespace {

JobState outcome_of(const std::string& word) {
  JobState state = JobState::kFailed;
  parse_job_state(word, &state);
  return state;
}

Exited exited_event(Key key, const StatusExit& exit) {
  Exited event;
  event.key = key;
  event.time_ms = exit.time_ms;
  event.outcome = outcome_of(exit.outcome);
  event.exit_code = exit.exit_code;
  event.exit_signal = exit.exit_signal;
  event.usage = {exit.cpu_ms, exit.peak_memory_kb, exit.wall_ms};
  event.message = exit.message;
  return event;
}

}  // namespace

Supervisor::Supervisor(Options options, Outbox* outbox)
    : options_(std::move(options)),
      outbox_(outbox),
      store_(options_.data_dir, options_.host, options_.jobs),
      launcher_(options_.shepherd_binary, options_.data_dir),
      health_(options_.data_dir, options_.health),
      boot_id_(options_.boot_id.empty() ? boot_id() : options_.boot_id),
      lifecycle_(options_.host) {}

Supervisor::~Supervisor() {
  for (auto& [key, track] : tracks_) {
    if (track.pidfd >= 0) close(track.pidfd);
  }
  for (int fd : {epoll_fd_, wake_fd_, events_fd_}) {
    if (fd >= 0) close(fd);
  }
}

absl::Status Supervisor::start() {
  absl::Status status = store_.prepare();
  if (!status.ok()) return status;
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // Read and write, so that it never reads as closed while no shepherd writes.
  events_fd_ = open(store_.events_fifo().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (epoll_fd_ < 0 || wake_fd_ < 0 || events_fd_ < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot open ", store_.events_fifo(), ": ", std::strerror(errno)));
  }
  for (int fd : {wake_fd_, events_fd_}) {
    epoll_event event{EPOLLIN, {.fd = fd}};
    epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
  }
  status = launcher_.start();
  if (!status.ok()) return status;
  epoll_event event{EPOLLIN, {.fd = launcher_.fd()}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, launcher_.fd(), &event);
  lease_ = read_lease(options_.data_dir).value_or(Lease());
  adopt_jobs();
  end_orphans();
  look_at_health();
  after_commit();
  return absl::OkStatus();
}

void Supervisor::run() {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) break;
    }
    turn();
  }
  const absl::Status status = outbox_->commit();
  if (!status.ok()) spdlog::error("{}", status.ToString());
}

void Supervisor::stop() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
  const uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof one) < 0)
    spdlog::error("cannot wake the supervisor: {}", std::strerror(errno));
}

void Supervisor::post(Input input) {
  absl::MutexLock lock(&mutex_);
  inputs_.push_back(std::move(input));
  if (inputs_.size() != 1) return;  // it has been woken already
  const uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof one) < 0)
    spdlog::error("cannot wake the supervisor: {}", std::strerror(errno));
}

void Supervisor::observe(Job job) { post(Event(Observed{std::move(job)})); }
void Supervisor::disown(Key key, std::string why) { post(Event(Disowned{key, std::move(why)})); }
void Supervisor::disown_all(JobId job, std::string why) { post(DisownAll{job, std::move(why)}); }
void Supervisor::confirm(uint64_t seq) { post(ConfirmUpTo{seq}); }
void Supervisor::joined(uint64_t applied, uint64_t revision, std::string fault) {
  post(JoinedAt{applied, revision, std::move(fault)});
}
void Supervisor::renew_lease(int64_t until_ms) { post(RenewLease{until_ms}); }

std::string Supervisor::fault() const {
  absl::MutexLock lock(&mutex_);
  return fault_;
}

std::vector<Key> Supervisor::alive() const {
  std::vector<Key> keys;
  absl::MutexLock lock(&lifecycle_mutex_);
  for (const auto& [key, job] : lifecycle_.jobs()) {
    if (job.phase != Phase::kEnded) keys.push_back(key);
  }
  return keys;
}

std::optional<Supervisor::OutputFiles> Supervisor::output_files(JobId job) const {
  std::optional<OutputFiles> files;
  absl::MutexLock lock(&lifecycle_mutex_);
  const auto& jobs = lifecycle_.jobs();
  for (auto it = jobs.lower_bound(Key{job, 0}); it != jobs.end() && it->first.job == job; ++it) {
    files = OutputFiles{it->second.stdout_file, it->second.stderr_file,
                        it->second.phase == Phase::kEnded};
  }
  return files;
}

void Supervisor::turn() {
  const bool retry = outbox_failing_ || !unsent_.empty() || !to_ask_.empty();
  const int64_t wait =
      std::clamp<int64_t>(next_look_ms_ - monotonic_ms(), 0, retry ? 50 : options_.look_ms);
  epoll_event events[128];
  const int n = epoll_wait(epoll_fd_, events, 128, static_cast<int>(wait));
  bool launcher_spoke = false;
  for (int i = 0; i < n; ++i) {
    const int fd = events[i].data.fd;
    if (fd == wake_fd_) {
      uint64_t count;
      while (read(wake_fd_, &count, sizeof count) > 0) continue;
    } else if (fd == events_fd_) {
      handle_events_fifo();
    } else if (fd == launcher_.fd()) {
      launcher_spoke = true;
    } else if (auto it = by_pidfd_.find(fd); it != by_pidfd_.end()) {
      look_at(it->second, true);
    }
  }
  if (launcher_spoke) handle_answers();
  handle_inputs();
  std::vector<Order> orders;
  orders.swap(unsent_);
  for (const Order& order : orders) send_order(order);
  if (monotonic_ms() >= next_look_ms_) look_at_all();
  after_commit();
}

void Supervisor::handle_inputs() {
  std::vector<Input> inputs;
  {
    absl::MutexLock lock(&mutex_);
    inputs.swap(inputs_);
  }
  for (Input& input : inputs) {
    if (auto* event = std::get_if<Event>(&input)) {
      step(*event);
    } else if (auto* all = std::get_if<DisownAll>(&input)) {
      for (Key key : alive()) {
        if (key.job == all->job) step(Disowned{key, all->why});
      }
    } else if (auto* confirmed = std::get_if<ConfirmUpTo>(&input)) {
      confirm_now(confirmed->seq);
    } else if (auto* joined = std::get_if<JoinedAt>(&input)) {
      joined_now(*joined);
    } else if (auto* renewal = std::get_if<RenewLease>(&input)) {
      renew_now(renewal->until_ms);
    }
  }
}

void Supervisor::confirm_now(uint64_t seq) {
  for (Key key : outbox_->confirm(seq)) step(FinalConfirmed{key});
}

void Supervisor::joined_now(const JoinedAt& joined) {
  if (joined.revision < revision_ || joined.applied < outbox_->confirmed()) {
    spdlog::warn(
        "the controllers have lost their past (revision {}, was {}): the numbers of jobs and "
        "reports start anew",
        joined.revision, revision_);
    step(ControllersReset{});
  }
  // What was put off may have been given to another host by now; what is still ours is observed
  // again.
  std::vector<Launch> put_off;
  put_off.swap(put_off_);
  for (const Launch& launch : put_off) step(NotLaunched{launch.key});
  told_fault_ = joined.fault;
  revision_ = joined.revision;
  confirm_now(joined.applied);
  outbox_->rebase(joined.applied);
}

void Supervisor::step(const Event& event) {
  std::vector<Action> actions;
  {
    absl::MutexLock lock(&lifecycle_mutex_);
    actions = lifecycle_.step(event, wall_ms());
  }
  for (const Action& action : actions) act(action);
}

void Supervisor::act(const Action& action) {
  if (auto* l = std::get_if<Launch>(&action)) {
    spdlog::debug("job {} (attempt {}) is launched", l->key.job, l->key.attempt);
    launch(*l);
  } else if (auto* send = std::get_if<Send>(&action)) {
    const Report& report = send->report;
    spdlog::debug("job {} (attempt {}): report {} {} {}", report.job, report.attempt,
                  static_cast<int>(report.kind), name_of(report.outcome), report.message);
    outbox_->add_report(report);
  } else if (auto* order = std::get_if<Order>(&action)) {
    send_order(*order);
  } else if (auto* remove = std::get_if<Remove>(&action)) {
    to_remove_.push_back(remove->key);
  } else if (auto* note = std::get_if<Note>(&action)) {
    spdlog::log(note->warning ? spdlog::level::warn : spdlog::level::info, "{}", note->text);
  }
}

void Supervisor::send_order(const Order& order) {
  {
    absl::MutexLock lock(&lifecycle_mutex_);
    const LocalJob* job = lifecycle_.find(order.key);
    if (job == nullptr || job->phase == Phase::kEnded) return;
  }
  auto earlier = [&](const Order& other) { return other.key == order.key; };
  const bool wait =
      std::any_of(unsent_.begin(), unsent_.end(), earlier);  // orders keep their order
  if (!wait && store_.send(order).ok()) return;
  // Somebody removed the directory: the shepherd still hears signals.
  const auto track = tracks_.find(order.key);
  if (order.control == Control::kKill && track != tracks_.end() && track->second.pidfd >= 0 &&
      !store_.launched(order.key)) {
    syscall(SYS_pidfd_send_signal, track->second.pidfd, SIGTERM, nullptr, 0);
    return;
  }
  unsent_.push_back(order);  // tried again until it is taken or the job has ended
}

// What may happen only once the outbox is on disk.
void Supervisor::after_commit() {
  const absl::Status status = outbox_->commit();
  if (!status.ok()) {
    if (!outbox_failing_)
      spdlog::error("{}; no job is started and nothing is reported until it can be written",
                    std::string(status.message()));
    outbox_failing_ = true;
    return;
  }
  if (outbox_failing_) spdlog::info("the outbox can be written again");
  outbox_failing_ = false;
  std::vector<Key> keys;
  keys.swap(to_ask_);
  for (size_t i = 0; i < keys.size(); ++i) {
    const absl::Status asked = launcher_.ask(keys[i]);
    if (asked.ok()) continue;
    to_ask_.assign(keys.begin() + static_cast<long>(i), keys.end());
    if (absl::IsUnavailable(asked)) restart_launcher();
    break;
  }
  for (Key key : to_remove_) {
    auto it = tracks_.find(key);
    if (it != tracks_.end()) {
      unwatch(&it->second);
      tracks_.erase(it);
    }
    store_.remove(key);
  }
  to_remove_.clear();
  if (on_reports_) on_reports_();
}

void Supervisor::restart_launcher() {
  spdlog::warn("the launcher of shepherds is gone; starting it again");
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, launcher_.fd(), nullptr);
  const absl::Status status = launcher_.start();
  if (!status.ok()) {
    spdlog::error("{}", std::string(status.message()));
    return;
  }
  epoll_event event{EPOLLIN, {.fd = launcher_.fd()}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, launcher_.fd(), &event);
  // What was asked for and not launched is asked for again; asking twice starts nothing twice.
  absl::MutexLock lock(&lifecycle_mutex_);
  for (const auto& [key, job] : lifecycle_.jobs()) {
    if (job.phase != Phase::kLaunching || tracks_.count(key) == 0 || store_.launched(key)) continue;
    if (std::find(to_ask_.begin(), to_ask_.end(), key) == to_ask_.end()) to_ask_.push_back(key);
  }
}

void Supervisor::handle_answers() {
  std::vector<LauncherClient::Answer> answers;
  const bool there = launcher_.read_answers(&answers);
  for (const LauncherClient::Answer& answer : answers) {
    if (answer.pid > 0) {
      watch(answer.key, answer.pid);
    } else if (!answer.launched_before) {
      host_failed(answer.error);
      step(GivenBack{answer.key, wall_ms(),
                     absl::StrCat("host ", options_.host, " could not start it: ", answer.error)});
    }
  }
  if (!there) restart_launcher();
}

void Supervisor::watch(Key key, pid_t shepherd) {
  auto it = tracks_.find(key);
  if (it == tracks_.end() || it->second.pidfd >= 0) return;
  const int fd =
      static_cast<int>(syscall(SYS_pidfd_open, shepherd, 0));  // glibc 2.36 declares it for C only
  if (fd < 0 || !store_.alive(key)) {  // it is gone already (and its pid may be another's)
    if (fd >= 0) close(fd);
    look_at(key, true);
    return;
  }
  it->second.pidfd = fd;
  by_pidfd_[fd] = key;
  epoll_event event{EPOLLIN, {.fd = fd}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
}

void Supervisor::unwatch(Track* track) {
  if (track->pidfd < 0) return;
  by_pidfd_.erase(track->pidfd);
  close(track->pidfd);  // also leaves the epoll set
  track->pidfd = -1;
}

void Supervisor::handle_events_fifo() {
  char buffer[4096];
  for (ssize_t n; (n = read(events_fd_, buffer, sizeof buffer)) > 0;)
    event_lines_.append(buffer, static_cast<size_t>(n));
  size_t begin = 0;
  for (size_t end; (end = event_lines_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Key key;
    if (parse_dir_name(event_lines_.substr(begin, end - begin), &key.job, &key.attempt))
      look_at(key, false);
  }
  event_lines_.erase(0, begin);
}

// Reads what the shepherd wrote and passes on what is new. `dead`: the shepherd is known to have
// ended.
void Supervisor::look_at(Key key, bool dead) {
  auto it = tracks_.find(key);
  if (it == tracks_.end()) return;
  Track* track = &it->second;
  if (track->exited) {
    if (dead) unwatch(track);
    return;
  }
  const Status status = store_.read_status(key);
  if (status.started && !track->started) {
    track->started = true;
    step(Started{key, status.started->time_ms, status.started->stdout_file,
                 status.started->stderr_file});
  }
  for (; track->changes < status.changes.size(); ++track->changes) {
    const StatusChange& change = status.changes[track->changes];
    if (change.suspended) {
      step(Suspended{key, change.time_ms});
    } else {
      step(Resumed{key, change.time_ms});
    }
  }
  if (status.exit) {
    track->exited = true;
    step(exited_event(key, *status.exit));
  } else if (dead) {
    track->exited = true;
    vanished(key, status);
  }
  if (track->exited) unwatch(track);
}

// A shepherd that was killed: its job goes too, as nobody is left to watch it.
void Supervisor::vanished(Key key, const Status& status) {
  std::string why = "the process that watches it (its shepherd) was killed";
  if (status.started && status.started->boot_id != boot_id_) {
    why = absl::StrCat("host ", options_.host, " was restarted while it ran");
  } else {
    if (status.started) {
      const pid_t pid = status.started->pid;
      const uint64_t ticks = start_ticks(pid);
      if (ticks == 0 || ticks == status.started->start_ticks) {
        for (pid_t member : session_members(pid)) kill(member, SIGKILL);
      }
    }
    kill_marked(key);
    if (!store_.launched(key))
      why = absl::StrCat("its directory on host ", options_.host,
                         " was removed while it ran, and with it how it ended");
  }
  step(Vanished{key, wall_ms(), JobState::kLost, why});
}

void Supervisor::look_at_all() {
  next_look_ms_ = monotonic_ms() + options_.look_ms;
  look_at_health();
  if (health_.fault().empty()) outbox_->keep_reserve();
  for (Key key : alive()) {
    if (!store_.launched(key)) continue;
    // Asked before reading: a shepherd that writes its last word between the two is not taken for
    // one that left none.
    const bool dead = !store_.alive(key);
    look_at(key, dead);
  }
}

}  // namespace xce::worker
