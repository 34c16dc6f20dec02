// See connector.h.
#include "worker/agent/connector.h"

#include <spdlog/spdlog.h>
#include <xce/errnox.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "libxce/base/trail.h"
#include "worker/agent/clock.h"
#include "worker/shepherd/lease.h"

namespace xce::worker {
namespace {

constexpr int kFirstLeaseMs = 20;  // from a join to the hello that gives the first lease

}  // namespace

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
  return joined_generation_ == 0 || told_fault_ != supervisor_->fault() ||
         joined_generation_ != link_->generation() || joined_reconnects_ != reconnects_;
}

void Connector::run() {
  const int status = link_->start();
  if (status < 0 && !stopping()) {
    ++failures_;
    spdlog::warn("{}",
                 unreached_line(failures_, link_->last_trail(), !options_.exit_if_unreachable));
    if (options_.exit_if_unreachable) {
      if (on_fatal_) on_fatal_();
      return;
    }
  }
  while (!stopping()) {
    tick();
    if (stopping()) return;
    // A failed join is tried again at the next tick; a connection that changed meanwhile at once.
    wait(pause_ms());
  }
}

int Connector::pause_ms() const {
  if (!refusal_.empty()) return std::max(options_.hello_interval_ms, options_.refused_interval_ms);
  if (failures_ == 0 && needs_join()) return 1;
  // The lease comes with the next hello.
  const bool no_lease = failures_ == 0 && leased_generation_ != joined_generation_;
  return no_lease ? std::min(options_.hello_interval_ms, kFirstLeaseMs)
                  : options_.hello_interval_ms;
}

void Connector::tick() {
  HelloAnswer hello;
  const int64_t sent_ms = boot_ms();
  const int status = link_->hello(&hello);
  if (stopping()) return;
  if (status < 0) {
    ++failures_;
    if (!reached_) {
      spdlog::warn("{}", unreached_line(failures_, link_->last_trail(), true));
      return;
    }
    spdlog::warn(
        "no controller answers (attempt {}): {} [{}]; jobs on this host go on, their results wait",
        failures_, link_->last_error(), outcomes_by_candidate(link_->last_trail()));
    return;
  }
  if (failures_ > 0)
    spdlog::info("controller {} answers{}", link_->current_master(), reached_ ? " again" : "");
  reached_ = true;
  failures_ = 0;
  if (!cluster_checked_) {
    cluster_checked_ = check_cluster(hello.cluster_id);
    if (!cluster_checked_) return;
  }
  // A controller that has given this host up does not count it as joined.
  if (needs_join() || !hello.joined) {
    if (!join()) {
      ++failures_;
      return;
    }
  } else {
    supervisor_->confirm(hello.outbox_applied);
    renew_lease(sent_ms, hello);
  }
  if (gap_.exchange(false)) reconciled_ = false;
  if (!reconciled_) reconciled_ = reconcile();
}

// The primary answers a hello only while it surely leads, and gives this host's jobs away no sooner
// than their lease after it: so the lease counts from before the hello left.
void Connector::renew_lease(int64_t sent_ms, const HelloAnswer& hello) {
  constexpr int64_t kWithoutEnd = int64_t{1} << 62;
  supervisor_->renew_lease(hello.lease_ms == 0 ? kWithoutEnd : sent_ms + hello.lease_ms);
  leased_generation_ = joined_generation_;
}

// At once when it is news, then once a minute.
void Connector::tell_refusal() {
  const std::string words = link_->last_error();
  const int64_t now_ms = monotonic_ms();
  if (words == refusal_ && now_ms - refusal_told_ms_ < 60000) return;
  refusal_ = words;
  refusal_told_ms_ = now_ms;
  spdlog::error(
      "the controllers refuse this worker as host {}: {}. It runs no job until that is settled; it "
      "asks again now and then",
      options_.host.name, words);
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
    HostAttrs host = options_.host;
    host.fault = supervisor_->fault();
    const int status = link_->join(host, options_.instance, &answer);
    if (status == -E_XCE_PERM || status == -E_XCE_INVALID) {
      tell_refusal();
      return false;
    }
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
    refusal_.clear();
    told_fault_ = host.fault;
    supervisor_->joined(answer.outbox_applied, answer.revision, host.fault);
    joined_reconnects_ = reconnects;
    joined_generation_ = generation;
    leased_generation_ = 0;
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
