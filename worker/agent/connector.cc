// See connector.h.
#include "worker/agent/connector.h"

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace xce::worker {

Connector::Connector(Options options, ControllerLink* link, Supervisor* supervisor, LogReader* logs)
    : options_(std::move(options)), link_(link), supervisor_(supervisor), logs_(logs) {
  link_->set_handlers([this](Pushed pushed) { handle_push(std::move(pushed)); },
                      [this] {
                        ++reconnects_;
                        kick();
                      });
}

void Connector::start() {
  thread_ = std::thread([this] { run(); });
}

void Connector::stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  link_->stop();
  if (thread_.joinable()) thread_.join();
}

void Connector::kick() {
  absl::MutexLock lock(&mutex_);
  kicked_ = true;
}

bool Connector::stopping() const {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

void Connector::wait(int ms) {
  absl::MutexLock lock(&mutex_);
  auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || kicked_; };
  mutex_.AwaitWithTimeout(absl::Condition(&woken), absl::Milliseconds(ms));
  kicked_ = false;
}

void Connector::handle_push(Pushed pushed) {
  if (auto* job = std::get_if<Job>(&pushed)) {
    supervisor_->observe(std::move(*job));
  } else if (auto* removal = std::get_if<PushedRemoval>(&pushed)) {
    supervisor_->disown_all(removal->job, "the controller has forgotten it");
  } else if (auto* confirmation = std::get_if<PushedConfirmation>(&pushed)) {
    supervisor_->confirm(confirmation->seq);
  } else if (auto* query = std::get_if<LogQuery>(&pushed)) {
    logs_->ask(*query);
  } else {
    gap_ = true;
    kick();
  }
}

bool Connector::needs_join() const {
  return joined_generation_ == 0 || joined_generation_ != link_->generation() ||
         joined_reconnects_ != reconnects_;
}

void Connector::run() {
  const int status = link_->start();
  if (status < 0 && !stopping()) {
    spdlog::warn("no controller candidate could be reached at start: {}", link_->last_error());
    if (options_.exit_if_unreachable) {
      if (on_fatal_) on_fatal_();
      return;
    }
  }
  while (!stopping()) {
    tick();
    if (stopping()) return;
    // A failed join is tried again at the next tick; a connection that changed meanwhile at once.
    const bool again = failures_ == 0 && needs_join();
    wait(again ? 1 : options_.hello_interval_ms);
  }
}

void Connector::tick() {
  HelloAnswer hello;
  const int status = link_->hello(&hello);
  if (stopping()) return;
  if (status < 0) {
    ++failures_;
    spdlog::warn(
        "no controller answers (attempt {}): {}; jobs on this host go on, their results wait",
        failures_, link_->last_error());
    return;
  }
  if (failures_ > 0) spdlog::info("controller {} answers again", link_->current_master());
  failures_ = 0;
  if (!cluster_checked_) {
    cluster_checked_ = check_cluster(hello.cluster_id);
    if (!cluster_checked_) return;
  }
  if (needs_join()) {
    if (!join()) {
      ++failures_;
      return;
    }
  } else {
    supervisor_->confirm(hello.outbox_applied);
  }
  if (gap_.exchange(false)) reconciled_ = false;
  if (!reconciled_) reconciled_ = reconcile();
}

// Jobs of two clusters share ids: never mix them in one data directory.
bool Connector::check_cluster(uint64_t cluster_id) {
  if (cluster_id == 0 || options_.cluster_id_file.empty()) return true;
  std::string known;
  std::ifstream(options_.cluster_id_file) >> known;
  const std::string id = std::to_string(cluster_id);
  if (known == id) return true;
  if (known.empty()) {
    std::ofstream(options_.cluster_id_file) << id << "\n";
    return true;
  }
  spdlog::error(
      "this worker's data directory belongs to cluster {}, but the controllers are of cluster {}: "
      "give it another "
      "--data-dir, or remove the old one once its jobs have ended",
      known, id);
  if (on_fatal_) on_fatal_();
  return false;
}

bool Connector::join() {
  for (int tries = 0; tries < 8 && !stopping(); ++tries) {
    const uint64_t generation = link_->generation();
    const uint64_t reconnects = reconnects_;
    JoinAnswer answer;
    const int status = link_->join(options_.host, options_.instance, &answer);
    if (status < 0) {
      if (!stopping())
        spdlog::warn("cannot join the cluster: {}; trying again", link_->last_error());
      return false;
    }
    // The call itself may have moved to another controller: only a join on a connection that stayed
    // counts.
    if (link_->generation() != generation || reconnects_ != reconnects) continue;
    spdlog::info("xcecd ready on {}: joined controller {} at revision {}", options_.host.name,
                 link_->current_master(), answer.revision);
    supervisor_->joined(answer.outbox_applied, answer.revision);
    joined_reconnects_ = reconnects;
    joined_generation_ = generation;
    reconciled_ = false;
    if (on_joined_) on_joined_();
    return true;
  }
  spdlog::warn("the connection changes faster than the host can join; trying again");
  return false;
}

// Both ways: what the controller counts as ours is observed, what runs here unlisted is asked
// about.
bool Connector::reconcile() {
  const std::vector<Key> alive_here = supervisor_->alive();
  std::set<Key> listed;
  JobPage page;
  do {
    const JobId after = page.next_after_id;
    page = JobPage();
    if (link_->list_jobs(options_.host.name, after, &page) < 0) {
      if (!stopping())
        spdlog::warn("cannot list this host's jobs: {}; trying again", link_->last_error());
      return false;
    }
    for (Job& job : page.jobs) {
      listed.insert(Key{job.id, job.attempt});
      supervisor_->observe(std::move(job));
    }
  } while (page.next_after_id != 0 && !stopping());
  bool all = true;
  for (Key key : alive_here) {
    if (listed.count(key) == 0) all = settle_unlisted(key) && all;
  }
  return all;
}

bool Connector::settle_unlisted(Key key) {
  std::optional<Job> job;
  if (link_->job_info(key.job, &job) < 0) return false;
  if (!job) {
    supervisor_->disown(key, "the controller does not know it");
  } else if (!has_hosts(job->state)) {
    supervisor_->disown(key, absl::StrCat("the controller counts it as ", name_of(job->state)));
  } else if (job->attempt != key.attempt) {
    supervisor_->disown(key, absl::StrCat("the controller is at attempt ", job->attempt));
  } else if (job->allocs.empty() || job->allocs.front().host != options_.host.name) {
    supervisor_->disown(key, "the controller runs it on another host");
  } else {
    supervisor_->observe(std::move(*job));
  }
  return true;
}

}  // namespace xce::worker
