#include "controller/sim/daemons.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "xce/errnox.h"

namespace xce::sim {
namespace {

constexpr HostId kFirstDaemonHost = 200;
constexpr uint64_t kDeadlineMs = 4000;

Identity identity(Role role, std::string name) {
  Identity who;
  who.role = role;
  who.name = std::move(name);
  return who;
}

constexpr uint32_t bit(JobState state) { return 1u << static_cast<int>(state); }

}  // namespace

Daemon::Daemon(World* world, Network* network, Oracle* oracle, int number, Identity who,
               int controllers)
    : world_(world),
      oracle_(oracle),
      random_(world->random().fork()),
      context_(world, network, kFirstDaemonHost + number,
               ClientId{8, static_cast<uint64_t>(number) + 1}, who, controllers),
      name_(who.name) {}

void Daemon::next() {
  if (stopped_) return;
  world_->after(random_.between(20, 120) * kMs, [this] {
    if (stopped_) return;
    if (generation_ != 0 && generation_ == context_.generation()) {
      round();
      return;
    }
    ask(service::Ask::kJoin, Op(join()), [this](const service::Answer& answer) {
      generation_ = context_.generation();
      if (const auto* const body = std::get_if<service::JoinedBody>(&answer.body)) joined(*body);
      next();
    });
  });
}

void Daemon::ask(service::Ask ask, decltype(service::Request::what) what,
                 std::function<void(const service::Answer&)> then) {
  const Index before = oracle_->known();
  context_.call(
      ask, std::move(what), kDeadlineMs,
      [this, ask, before, then = std::move(then)](const CallResult& result) {
        if (result.result != 0) {
          if (result.result != -E_XCE_NOT_READY) rejoin();
          next();
          return;
        }
        if (service::is_write(ask))
          oracle_->acknowledged({context_.client(), result.op_seq}, {}, result.answer.index);
        else
          oracle_->read(before, result.answer.index, absl::StrCat(name_, "'s read"));
        then(result.answer);
      });
}

// ---- the scheduler ------------------------------------------------------------------------------

Scheduler::Scheduler(World* world, Network* network, Oracle* oracle, int number, int controllers)
    : Daemon(world, network, oracle, number,
             identity(Role::kScheduler, absl::StrCat("scheduler-", number)), controllers) {}

Join Scheduler::join() {
  Join join;
  join.role = Role::kScheduler;
  return join;
}

void Scheduler::round() {
  JobFilter filter;
  filter.states = bit(JobState::kPending);
  filter.limit = 20;
  ask(service::Ask::kJobList, std::move(filter), [this](const service::Answer& answer) {
    const auto* const page = std::get_if<service::JobPageBody>(&answer.body);
    if (page == nullptr || page->jobs.empty()) return next();
    ask(service::Ask::kWorkerList, std::monostate{},
        [this, pending = page->jobs](const service::Answer& answer) {
          const auto* const hosts = std::get_if<std::vector<Host>>(&answer.body);
          if (hosts == nullptr) return next();
          plan(pending, *hosts);
        });
  });
}

void Scheduler::plan(const std::vector<Job>& pending, const std::vector<Host>& hosts) {
  std::map<std::string, uint32_t> free;
  for (const Host& host : hosts)
    if (host.state == HostState::kUp) free[host.attrs.name] = host.attrs.cpus - host.used_cpus;
  Dispatches dispatches;
  dispatches.epoch = epoch_;
  for (const Job& job : pending) {
    for (auto& [name, cpus] : free) {
      if (cpus < job.spec.cpus) continue;
      cpus -= job.spec.cpus;
      Dispatch item;
      item.job = job.id;
      item.attempt = job.attempt + 1;
      Alloc alloc;
      alloc.host = name;
      alloc.cpus = job.spec.cpus;
      item.allocs.push_back(std::move(alloc));
      dispatches.items.push_back(std::move(item));
      break;
    }
  }
  if (dispatches.items.empty()) return next();
  ask(service::Ask::kJobDispatch, Op(std::move(dispatches)),
      [this](const service::Answer&) { next(); });
}

// ---- a worker -----------------------------------------------------------------------------------

Worker::Worker(World* world, Network* network, Oracle* oracle, int number, int controllers)
    : Daemon(world, network, oracle, number, identity(Role::kWorker, absl::StrCat("host-", number)),
             controllers),
      instance_(random_.next() | 1) {}

Join Worker::join() {
  Join join;
  join.role = Role::kWorker;
  join.host.name = name_;
  join.host.cpus = 4;
  join.host.memory_mb = 1000;
  join.instance = instance_;
  return join;
}

void Worker::round() {
  JobFilter filter;
  filter.host = name_;
  filter.states = bit(JobState::kStarting) | bit(JobState::kRunning) | bit(JobState::kSuspended);
  ask(service::Ask::kJobList, std::move(filter), [this](const service::Answer& answer) {
    if (const auto* const page = std::get_if<service::JobPageBody>(&answer.body))
      look_at(page->jobs);
    if (!outbox_.empty()) {
      Notify notify;
      notify.host = name_;
      notify.instance = instance_;
      notify.items.assign(outbox_.begin(), outbox_.end());
      context_.tell(service::Ask::kNotify, Op(std::move(notify)));
    }
    // Hello says what has arrived.
    ask(service::Ask::kHello, std::monostate{}, [this](const service::Answer& answer) {
      if (const auto* const hello = std::get_if<service::HelloBody>(&answer.body)) {
        confirmed(hello->outbox_applied);
        if (!hello->joined) rejoin();
      }
      next();
    });
  });
}

void Worker::look_at(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    const auto [run, fresh] =
        runs_.try_emplace({job.id, job.attempt}, world_->now() + random_.between(10, 1500) * kMs);
    if (fresh && job.state == JobState::kStarting)
      report(job, NotifyKind::kStart, JobState::kCompleted);
    if (run->second == 0) continue;  // its end is reported
    if (job.desired == Desired::kKill) {
      run->second = 0;
      report(job, NotifyKind::kFinish, JobState::kKilled);
    } else if (world_->now() >= run->second) {
      run->second = 0;
      const bool failed = random_.one_in(5);
      report(job, failed ? NotifyKind::kFail : NotifyKind::kFinish,
             failed ? JobState::kFailed : JobState::kCompleted);
    }
  }
}

void Worker::report(const Job& job, NotifyKind kind, JobState outcome) {
  Report report;
  report.outbox_seq = ++last_report_;
  report.kind = kind;
  report.job = job.id;
  report.attempt = job.attempt;
  report.outcome = outcome;
  report.exit_code = outcome == JobState::kFailed ? 1 : 0;
  outbox_.push_back(std::move(report));
}

void Worker::confirmed(uint64_t seq) {
  if (seq > last_report_)
    world_->wrong(
        absl::StrCat(name_, " is confirmed report ", seq, ", but has sent only ", last_report_));
  while (!outbox_.empty() && outbox_.front().outbox_seq <= seq) outbox_.pop_front();
  if (!outbox_.empty() && outbox_.front().outbox_seq != seq + 1)
    world_->wrong(absl::StrCat(name_, " was confirmed report ", outbox_.front().outbox_seq - 1,
                               " before, and now only ", seq));
}

}  // namespace xce::sim
