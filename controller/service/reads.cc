#include "controller/service/reads.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "xce/errnox.h"

namespace xce::service {
namespace {

constexpr size_t kMaxRows = 1000;          // a page: bounds the time of one turn
constexpr size_t kMaxPageBytes = 3 << 20;  // a page: fits a frame

size_t bytes_of(const Job& job) {
  size_t n = 640 + job.reason.size() + job.spec.comment.size() + job.spec.array.size() * 4 +
             job.allocs.size() * 96 + job.spec.name.size() + job.spec.work_dir.size() +
             job.spec.submit_key.size() + job.spec.stdout_path.size() +
             job.spec.stderr_path.size() + job.stdout_file.size() + job.stderr_file.size();
  if (job.spec.body) {
    n += job.spec.body->script.size();
    for (const std::string& arg : job.spec.body->args) n += arg.size() + 16;
    for (const std::string& env : job.spec.body->env) n += env.size() + 16;
  }
  return n;
}

Job shown(const Job& job, bool full, const Identity& who) {
  Job copy = job;
  if (!full || !may_see(job, who)) copy.spec.body = nullptr;
  return copy;
}

void answer_jobs(const state::State& state, const JobFilter& filter, const Identity& who,
                 Answer* answer) {
  const auto found = state.jobs(filter, kMaxRows);
  JobPageBody page;
  page.full = filter.full;
  page.total = found.total;
  page.next_after_id = found.next_after_id;
  page.jobs.reserve(found.jobs.size());
  size_t bytes = 0;
  for (const Job* job : found.jobs) {
    Job copy = shown(*job, filter.full, who);
    bytes += bytes_of(copy);
    if (!page.jobs.empty() && bytes > kMaxPageBytes) {
      page.next_after_id = page.jobs.back().id;
      break;
    }
    page.jobs.push_back(std::move(copy));
  }
  answer->body = std::move(page);
}

void answer_job(const state::State& state, JobId id, const Identity& who, Answer* answer) {
  const Job* job = state.job(id);
  if (job == nullptr) {
    answer->status = E_XCE_NOENT;
    answer->message = absl::StrCat("no job ", id);
    return;
  }
  JobPageBody page;
  page.full = true;
  page.total = 1;
  page.jobs.push_back(shown(*job, true, who));
  answer->body = std::move(page);
}

std::vector<Gres> resources(const state::State& state) {
  std::map<std::string, uint64_t> sums;
  for (const auto& [name, host] : state.hosts()) {
    if (host.state != HostState::kUp) continue;
    sums["cpus"] += host.attrs.cpus;
    sums["memory_mb"] += host.attrs.memory_mb;
    for (const Gres& gres : host.attrs.gres) sums[gres.name] += gres.count;
  }
  std::vector<Gres> out;
  for (const auto& [name, sum] : sums)
    out.push_back({name, static_cast<uint32_t>(
                             std::min<uint64_t>(sum, std::numeric_limits<uint32_t>::max()))});
  return out;
}

void answer_resource(const state::State& state, const std::string& name, Answer* answer) {
  for (Gres& gres : resources(state))
    if (gres.name == name) {
      answer->body = std::vector<Gres>{std::move(gres)};
      return;
    }
  answer->status = E_XCE_NOENT;
  answer->message = absl::StrCat("no host that is up has a resource '", name, "'");
}

std::string scheduler_words(const state::State& state) {
  const auto stats = state.stats();
  const auto& scheduler = state.scheduler();
  const std::string who = scheduler.epoch == 0 ? std::string("no scheduler has joined yet")
                                               : absl::StrCat("scheduler ", scheduler.name,
                                                              ", epoch ", scheduler.epoch);
  return absl::StrCat(who, "; ", stats.pending, " jobs pending, ", stats.running, " running");
}

template <typename Value>
std::vector<Value> values(const std::map<std::string, Value>& from) {
  std::vector<Value> out;
  out.reserve(from.size());
  for (const auto& [name, value] : from) out.push_back(value);
  return out;
}

}  // namespace

bool may_ask(Role role, Ask ask, std::string* why) {
  const auto only = [&](bool allowed, const char* who) {
    if (!allowed)
      *why = absl::StrCat(name_of(ask), " is for ", who, "; this connection's role is ",
                          name_of(role));
    return allowed;
  };
  switch (ask) {
    case Ask::kNotify:
    case Ask::kUpdateResvals:
    case Ask::kJobLogData: return only(role == Role::kWorker, "workers");
    case Ask::kJobDispatch:
    case Ask::kEstimates:
    case Ask::kSetPendReason: return only(role == Role::kScheduler, "schedulers");
    case Ask::kJobSubmit:
    case Ask::kQueueCtrl:
    case Ask::kHostCtrl:
    case Ask::kRunTask:
    case Ask::kMemberCtrl:
    case Ask::kBackup:
    case Ask::kBackupRead:
      return only(role == Role::kUser || role == Role::kApiserver, "people and apiservers");
    case Ask::kJobCtrl: return only(role != Role::kWorker, "people, apiservers and schedulers");
    default: return true;
  }
}

bool may_see(const Job& job, const Identity& who) {
  return who.role != Role::kUser || who.uid == 0 || who.user == job.spec.user;
}

void answer_read(const state::State& state, const Request& request, Answer* answer) {
  switch (request.ask) {
    case Ask::kJobList:
      answer_jobs(state, std::get<JobFilter>(request.what), *request.who, answer);
      break;
    case Ask::kJobHist: {
      JobFilter filter = std::get<JobFilter>(request.what);
      if (filter.states == 0)
        for (int s = static_cast<int>(JobState::kCompleted); s < kJobStates; ++s)
          filter.states |= 1u << s;
      answer_jobs(state, filter, *request.who, answer);
      break;
    }
    case Ask::kJobInfo:
      answer_job(state, std::get<uint64_t>(request.what), *request.who, answer);
      break;
    case Ask::kWorkerList: answer->body = values(state.hosts()); break;
    case Ask::kQueueList: answer->body = values(state.queues()); break;
    case Ask::kUserList: answer->body = state.users(); break;
    case Ask::kResList: answer->body = resources(state); break;
    case Ask::kResVal: answer_resource(state, std::get<std::string>(request.what), answer); break;
    case Ask::kSchedAdmin: answer->body = scheduler_words(state); break;
    default:
      answer->status = E_XCE_INVALID;
      answer->message = absl::StrCat(name_of(request.ask), " is not a read");
  }
}

}  // namespace xce::service
