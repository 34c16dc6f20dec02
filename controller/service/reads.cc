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

Job shown(const Job& job, bool full, const Identity& who) {
  Job copy = job;
  if (!full || !may_see(job, who)) copy.spec.body = nullptr;
  return copy;
}

// As many of the jobs as a page may hold.
JobPageBody page_of(const std::vector<const Job*>& jobs, bool full, JobId next_after_id,
                    const Identity& who) {
  JobPageBody page;
  page.full = full;
  page.next_after_id = next_after_id;
  page.jobs.reserve(jobs.size());
  size_t bytes = 0;
  for (const Job* job : jobs) {
    Job copy = shown(*job, full, who);
    bytes += history::bytes_of(copy);
    if (!page.jobs.empty() && bytes > kMaxPageBytes) {
      page.next_after_id = page.jobs.back().id;
      break;
    }
    page.jobs.push_back(std::move(copy));
  }
  return page;
}

void answer_jobs(const state::State& state, const JobFilter& filter, const Identity& who,
                 Answer* answer) {
  const auto found = state.jobs(filter, kMaxRows);
  JobPageBody page = page_of(found.jobs, filter.full, found.next_after_id, who);
  page.total = found.total;
  answer->body = std::move(page);
}

constexpr uint32_t ended_states() {
  uint32_t states = 0;
  for (int s = 0; s < kJobStates; ++s)
    if (is_ended(static_cast<JobState>(s))) states |= 1u << s;
  return states;
}

// What a read asks of jobs that may have departed; nothing: it asks nothing of them.
std::optional<JobFilter> wanted_of(const state::State& state, const Request& request) {
  JobFilter filter;
  switch (request.ask) {
    case Ask::kJobInfo: filter.ids = {std::get<uint64_t>(request.what)}; break;
    case Ask::kJobHist:
    case Ask::kJobList: filter = std::get<JobFilter>(request.what); break;
    default: return std::nullopt;
  }
  if (request.ask == Ask::kJobHist) {
    filter.states = filter.states == 0 ? ended_states() : filter.states & ended_states();
    if (filter.states == 0) filter.states = 1u << kJobStates;  // none, where 0 would mean all
    return filter;
  }
  if (filter.states != 0 && (filter.states & ended_states()) == 0) return std::nullopt;
  if (filter.ids.empty())
    return filter.array_id != 0 && filter.array_id < state.next_job() ? std::make_optional(filter)
                                                                      : std::nullopt;
  const bool gone = std::any_of(filter.ids.begin(), filter.ids.end(), [&](JobId id) {
    return id != 0 && id < state.next_job() && state.job(id) == nullptr;
  });
  return gone ? std::make_optional(std::move(filter)) : std::nullopt;
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
    case Ask::kReservationCtrl:
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

std::optional<HalfAnswer> half_of(const state::State& state, const Request& request) {
  std::optional<JobFilter> filter = wanted_of(state, request);
  if (!filter) return std::nullopt;
  HalfAnswer half;
  half.query.filter = *std::move(filter);
  half.query.max_jobs =
      half.query.filter.limit == 0 ? kMaxRows : std::min<size_t>(half.query.filter.limit, kMaxRows);
  half.query.max_bytes = kMaxPageBytes;
  const auto found = state.jobs(half.query.filter, kMaxRows);
  half.jobs.reserve(found.jobs.size());
  for (const Job* job : found.jobs) half.jobs.push_back(*job);
  half.next_after_id = half.query.stop_at = found.next_after_id;
  half.total = found.total;
  return half;
}

void answer_whole(HalfAnswer half, history::Page page, const Request& request, Answer* answer) {
  const JobFilter& filter = half.query.filter;
  const bool down = filter.descending;
  const bool info = request.ask == Ask::kJobInfo;
  std::vector<const Job*> jobs;
  for (const Job& job : half.jobs) jobs.push_back(&job);
  for (const Job& job : page.jobs) jobs.push_back(&job);
  std::stable_sort(jobs.begin(), jobs.end(), [down](const Job* a, const Job* b) {
    return down ? a->id > b->id : a->id < b->id;
  });
  const auto last = std::unique(jobs.begin(), jobs.end(),
                                [](const Job* a, const Job* b) { return a->id == b->id; });
  const uint64_t twice = static_cast<uint64_t>(jobs.end() - last);
  jobs.erase(last, jobs.end());
  // The page ends where one of the halves does: of ids beyond it, that half has not told.
  JobId end = half.next_after_id;
  if (page.next_after_id != 0 &&
      (end == 0 || (down ? page.next_after_id > end : page.next_after_id < end)))
    end = page.next_after_id;
  while (end != 0 && !jobs.empty() && (down ? jobs.back()->id < end : jobs.back()->id > end))
    jobs.pop_back();
  if (jobs.size() > half.query.max_jobs) {
    jobs.resize(half.query.max_jobs);
    end = jobs.back()->id;
  }
  if (info && jobs.empty()) {
    answer->status = E_XCE_NOENT;
    answer->message = absl::StrCat("job ", filter.ids[0], " is no longer in the history");
    return;
  }
  JobPageBody body = page_of(jobs, filter.full || info, end, *request.who);
  body.total = half.total + page.jobs.size() - twice;
  answer->body = std::move(body);
}

void answer_read(const state::State& state, const Request& request, Answer* answer) {
  switch (request.ask) {
    case Ask::kJobList:
      answer_jobs(state, std::get<JobFilter>(request.what), *request.who, answer);
      break;
    case Ask::kJobHist: answer_jobs(state, *wanted_of(state, request), *request.who, answer); break;
    case Ask::kJobInfo:
      answer_job(state, std::get<uint64_t>(request.what), *request.who, answer);
      break;
    case Ask::kWorkerList: answer->body = values(state.hosts()); break;
    case Ask::kQueueList: answer->body = values(state.queues()); break;
    case Ask::kReservationList: answer->body = values(state.reservations()); break;
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
