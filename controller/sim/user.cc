#include "controller/sim/user.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "xce/errnox.h"

namespace xce::sim {
namespace {

constexpr HostId kFirstUserHost = 100;
constexpr uint64_t kDeadlineMs = 4000;

Identity identity(int number) {
  Identity who;
  who.role = Role::kUser;
  who.user = absl::StrCat("u", number);
  who.uid = who.gid = 1000 + static_cast<uint32_t>(number);
  return who;
}

}  // namespace

User::User(World* world, Network* network, Oracle* oracle, Gossip* gossip, int number,
           int controllers)
    : world_(world),
      oracle_(oracle),
      gossip_(gossip),
      number_(number),
      random_(world->random().fork()),
      context_(world, network, kFirstUserHost + number,
               ClientId{7, static_cast<uint64_t>(number) + 1}, identity(number), controllers) {}

void User::start(int width, uint64_t pause) {
  pause_ = pause;
  for (int i = 0; i < width; ++i) next();
}

void User::next() {
  if (stopped_) return;
  world_->after(random_.between(1, 2 * pause_), [this] { act(); });
}

void User::act() {
  if (stopped_) return;
  switch (random_.below(10)) {
    case 0:
    case 1:
    case 2:
    case 3: return submit();
    case 4:
    case 5: return control();
    case 6: return list();
    default: return info();
  }
}

void User::written(const CallResult& result) {
  const Oracle::WriteId write{context_.client(), result.op_seq};
  if (result.result == 0) {
    ++done_;
    Result told;
    if (const auto* const made = std::get_if<service::SubmittedBody>(&result.answer.body)) {
      told.job = made->job;
      gossip_->jobs.push_back(made->job);
    }
    oracle_->acknowledged(write, told, result.answer.index);
  } else {
    ++failed_;
    // A refusal of the state machine's is not applied either, but it is in the log.
    if (result.result == -E_XCE_NOT_READY && !result.maybe_applied)
      oracle_->told_not_applied(write);
  }
  next();
}

void User::submit() {
  JobSpec spec;
  spec.name = absl::StrCat("u", number_, "-", ++submissions_);
  auto body = std::make_shared<JobBody>();
  body->args = {"/bin/true", std::string(random_.one_in(8) ? 2000 : 20, 'x')};
  spec.body = std::move(body);
  spec.cpus = 1 + static_cast<uint32_t>(random_.below(2));
  spec.hold = random_.one_in(6);
  spec.requeue = random_.one_in(2);
  if (random_.one_in(3)) {
    // Some keys are new, some an earlier submission's.
    if (random_.one_in(2)) ++gossip_->keys;
    spec.submit_key = absl::StrCat("key-", random_.below(gossip_->keys + 1));
    spec.name = absl::StrCat("u", number_, "-", spec.submit_key);
    submissions_--;
  }
  context_.call(service::Ask::kJobSubmit, Op(std::move(spec)), kDeadlineMs,
                [this](const CallResult& result) { written(result); });
}

void User::control() {
  JobControl control;
  if (gossip_->jobs.empty()) return next();
  control.ids = {gossip_->jobs[random_.below(gossip_->jobs.size())]};
  constexpr JobAction kActions[] = {JobAction::kKill,    JobAction::kHold,   JobAction::kRelease,
                                    JobAction::kSuspend, JobAction::kResume, JobAction::kRequeue};
  control.action = kActions[random_.below(6)];
  context_.call(service::Ask::kJobCtrl, Op(std::move(control)), kDeadlineMs,
                [this](const CallResult& result) { written(result); });
}

void User::list() {
  JobFilter filter;
  filter.limit = 20;
  const Index before = oracle_->known();
  context_.call(service::Ask::kJobList, std::move(filter), kDeadlineMs,
                [this, before](const CallResult& result) {
                  if (result.result == 0) {
                    ++done_;
                    oracle_->read(before, result.answer.index, "a list");
                  } else {
                    ++failed_;
                  }
                  next();
                });
}

void User::info() {
  if (gossip_->jobs.empty()) return next();
  const JobId id = gossip_->jobs[random_.below(gossip_->jobs.size())];
  const Index before = oracle_->known();
  context_.call(service::Ask::kJobInfo, id, kDeadlineMs,
                [this, before, id](const CallResult& result) {
                  if (result.result == 0 || result.result == -E_XCE_NOENT) {
                    ++done_;
                    oracle_->read(before, result.answer.index, absl::StrCat("job ", id));
                    if (result.result != 0) oracle_->not_found(id, true);
                  } else {
                    ++failed_;
                  }
                  next();
                });
}

void User::probe(bool* answered) {
  context_.call(service::Ask::kQueueList, std::monostate{}, kDeadlineMs,
                [this, answered](const CallResult& result) {
                  if (result.result == 0)
                    *answered = true;
                  else
                    probe(answered);
                });
}

}  // namespace xce::sim
