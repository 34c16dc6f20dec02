#include "scheduler/policy/reasons.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "scheduler/policy/round.h"

namespace xce::sched {
namespace {

std::string plural(uint64_t n, const char* noun) {
  return absl::StrCat(n, " ", noun, n == 1 ? "" : "s");
}

// What a job needs on a host, as "4 cpus, 2000 MB of memory and 1 gpu".
std::string need_words(const Need& need) {
  std::vector<std::string> parts = {plural(need.cpus, "cpu")};
  if (need.memory_mb > 0) parts.push_back(absl::StrCat(need.memory_mb, " MB of memory"));
  for (const Gres& g : need.gres) parts.push_back(absl::StrCat(g.count, " ", g.name));
  if (parts.size() == 1) return parts[0];
  const std::string last = parts.back();
  parts.pop_back();
  return absl::StrCat(absl::StrJoin(parts, ", "), " and ", last);
}

struct Survey {  // of the usable hosts
  size_t joined = 0, usable = 0, capable = 0, free = 0;
  size_t drained = 0, unreachable = 0;
  size_t capable_but_away = 0;
  const Kept* kept = nullptr;  // what keeps the job off a host that is free
  Amounts largest;             // totals, each the largest of any usable host
  Amounts largest_free;        // of capable hosts
};

void raise(Amounts* to, const Amounts& amounts, const Need& need) {
  to->cpus = std::max(to->cpus, amounts.cpus);
  to->memory_mb = std::max(to->memory_mb, amounts.memory_mb);
  to->gres.resize(need.gres.size());
  for (size_t i = 0; i < need.gres.size(); ++i) {
    to->gres[i].name = need.gres[i].name;
    to->gres[i].count = std::max(to->gres[i].count, amounts.gres_count(need.gres[i].name));
  }
}

Survey survey(const HostPool& pool, const Need& need, int64_t now_ms, int64_t until_ms) {
  Survey s;
  for (const auto& [name, host] : pool.hosts()) {
    if (!host.joined) continue;
    ++s.joined;
    const bool capable = host.total.fits(need);
    if (!host.usable()) {
      ++(host.state == HostState::kUnreachable ? s.unreachable : s.drained);
      if (capable) ++s.capable_but_away;
      continue;
    }
    ++s.usable;
    raise(&s.largest, host.total, need);
    if (!capable) continue;
    ++s.capable;
    raise(&s.largest_free, host.free, need);
    if (!host.fits_now(need)) continue;
    const Kept* kept = host.kept.empty() ? nullptr : host.keeps_off(need, now_ms, until_ms);
    if (kept == nullptr)
      ++s.free;
    else if (s.kept == nullptr || kept->end_ms < s.kept->end_ms)
      s.kept = kept;
  }
  return s;
}

std::string away_words(const Survey& s) {
  if (s.drained > 0 && s.unreachable > 0) {
    return absl::StrCat(plural(s.drained, "host"), " drained, ", plural(s.unreachable, "host"),
                        " unreachable");
  }
  if (s.drained > 0) return absl::StrCat(plural(s.drained, "host"), " drained");
  return absl::StrCat(plural(s.unreachable, "host"), " unreachable");
}

// No usable host could ever run the job.
std::string impossible_words(const Survey& s, const Need& need) {
  std::string words;
  if (need.cpus > s.largest.cpus) {
    words = absl::StrCat("no host has ", plural(need.cpus, "cpu"), " (the largest has ",
                         s.largest.cpus, ")");
  } else if (need.memory_mb > s.largest.memory_mb) {
    words = absl::StrCat("no host has ", need.memory_mb, " MB of memory (the largest has ",
                         s.largest.memory_mb, ")");
  } else {
    for (size_t i = 0; i < need.gres.size() && words.empty(); ++i) {
      if (need.gres[i].count <= s.largest.gres[i].count) continue;
      words = absl::StrCat("no host has ", need.gres[i].count, " ", need.gres[i].name,
                           " (the most that one has is ", s.largest.gres[i].count, ")");
    }
    if (words.empty()) words = absl::StrCat("no single host has ", need_words(need));
  }
  if (s.capable_but_away > 0) absl::StrAppend(&words, "; one that does is drained or unreachable");
  return words;
}

// Hosts are free, but kept for others.
std::string kept_words(const Kept& kept, int64_t now_ms) {
  if (kept.start_ms <= now_ms) {
    return absl::StrCat("free hosts are kept for others until ", utc_words(kept.end_ms, now_ms),
                        " (reservation '", kept.name, "')");
  }
  return absl::StrCat("free hosts are kept for others from ", utc_words(kept.start_ms, now_ms),
                      " on (reservation '", kept.name,
                      "'): with a time limit that ends before, it could start");
}

// Hosts could run the job, but are not free.
std::string busy_words(const Survey& s, const Need& need, uint32_t nodes) {
  if (nodes > 1) {
    return absl::StrCat("waiting for ", nodes, " hosts with ", need_words(need),
                        " free each: ", s.free, s.free == 1 ? " has" : " have");
  }
  if (need.exclusive) return "waiting for a host that runs no other job";
  if (need.cpus > s.largest_free.cpus) {
    return absl::StrCat("waiting for ", plural(need.cpus, "free cpu"),
                        ": the largest free host has ", s.largest_free.cpus);
  }
  if (need.memory_mb > s.largest_free.memory_mb) {
    return absl::StrCat("waiting for ", need.memory_mb,
                        " MB of free memory: the most that a host has is ",
                        s.largest_free.memory_mb);
  }
  for (size_t i = 0; i < need.gres.size(); ++i) {
    if (need.gres[i].count <= s.largest_free.gres[i].count) continue;
    return absl::StrCat("waiting for ", need.gres[i].count, " free ", need.gres[i].name,
                        ": the most that a host has is ", s.largest_free.gres[i].count);
  }
  return absl::StrCat("waiting for a host with ", need_words(need), " free");
}

Reason limit_words(const View& view, const ClassKey& key, Limit limit) {
  const std::string& queue = view.name(key.queue);
  switch (limit) {
    case Limit::kNone: break;
    case Limit::kQueueStopped:
      return {ReasonKind::kQueueStopped, absl::StrCat("queue '", queue, "' is stopped")};
    case Limit::kQueueFull:
      return {ReasonKind::kQueueLimit,
              absl::StrCat("queue '", queue, "' runs as many jobs as it may (",
                           view.queue(key.queue)->max_running, ")")};
    case Limit::kUserFull:
      return {ReasonKind::kUserLimit,
              absl::StrCat("user ", view.name(key.user),
                           " runs as many jobs as one user may in queue '", queue, "' (",
                           view.queue(key.queue)->max_running_per_user, ")")};
    case Limit::kUserCpus:
      return {ReasonKind::kUserLimit,
              absl::StrCat("user ", view.name(key.user), " holds as many cpus as one user may in ",
                           "queue '", queue, "' (", view.queue(key.queue)->max_cpus_per_user, ")")};
    case Limit::kArrayFull:
      return {ReasonKind::kArrayLimit, absl::StrCat("array limit ", key.array_limit, " reached")};
  }
  return {};
}

// Collects the changes of one pass.
class Pass {
 public:
  Pass(View* view, int64_t now_ms, const ReasonLimits& limits)
      : view_(*view), now_ms_(now_ms), limits_(limits) {}

  bool full() const { return items_.size() >= limits_.max_items; }
  std::vector<PendReason> take() { return std::move(items_); }

  // False: there was no room for it. Words of one kind are repeated at once only where they change
  // rarely.
  bool offer(JobId id, const Reason& reason, bool repeat_at_once = false) {
    const JobRecord* job = view_.find(id);
    if (job == nullptr || reason.kind == ReasonKind::kNone) return true;
    const uint64_t hash = stable_hash(reason.words);
    if (hash == job->reason_hash) return true;
    if (!repeat_at_once && reason.kind == job->reason_kind &&
        now_ms_ - job->reason_ms < limits_.repeat_ms)
      return true;
    if (full()) return false;
    // Of a job that nobody knows any more it cannot be said what became of it.
    const bool hopeless = reason.kind == ReasonKind::kNever && !reason.unknown;
    items_.push_back(PendReason{id, reason.words, hopeless && limits_.end_hopeless});
    view_.set_reason(id, reason.kind, hash, now_ms_);
    return true;
  }

  void unready() {
    auto& stale = view_.stale_reasons();
    while (!stale.empty()) {
      const JobId id = *stale.begin();
      const JobRecord* job = view_.find(id);
      const bool held =
          job != nullptr && job->state == JobState::kHeld;  // the controller says who held it
      if (job != nullptr && !held && !offer(id, explain_unready(view_, *job), true)) return;
      stale.erase(id);
    }
  }

  void in_line() {
    ClassWalk walk(view_, now_ms_);
    JobId first_in_line = 0;
    size_t jobs = 0;
    while (jobs < limits_.max_jobs) {
      const JobClass* cls = walk.next();
      if (cls == nullptr) return;
      const Reason reason = explain_class(view_, *cls->key, first_in_line);
      if (first_in_line == 0 && reason.kind == ReasonKind::kBusy) {
        first_in_line = walk.id();
        Reason first = reason;
        first.words += latest_start_words(view_, *cls->key, now_ms_);
        if (!offer(first_in_line, first)) return;
      }
      // One kind of job must not use up the room of all others.
      const size_t most =
          std::min<size_t>(limits_.max_jobs - jobs, std::max<size_t>(limits_.max_jobs / 4, 1));
      size_t told = 0;
      for (const JobId id : cls->waiting) {
        if (told++ == most) break;
        if (id != first_in_line && !offer(id, reason)) return;
      }
      jobs += std::max<size_t>(told, 1);
    }
  }

  void far_behind() {
    if (view_.ready().size() <= limits_.max_jobs / 4) return;
    const std::vector<JobId> first(
        view_.unexplained().begin(),
        std::next(view_.unexplained().begin(),
                  std::min(view_.unexplained().size(), limits_.max_items)));
    for (const JobId id : first) {
      const JobRecord* job = view_.find(id);
      if (job == nullptr || job->submit_ms + limits_.settle_ms > now_ms_) return;
      const Reason reason{ReasonKind::kBehind,
                          absl::StrCat("behind more than ", limits_.max_jobs / 4,
                                       " other jobs in queue '", view_.name(job->key.queue), "'")};
      if (!offer(id, reason)) return;
    }
  }

 private:
  View& view_;
  const int64_t now_ms_;
  const ReasonLimits& limits_;
  std::vector<PendReason> items_;
};

}  // namespace

Reason explain_class(const View& view, const ClassKey& key, JobId first_in_line) {
  const Limit limit = limit_of(view, key);
  if (limit != Limit::kNone) return limit_words(view, key, limit);
  const int64_t now_ms = view.now_ms();
  const Survey s = survey(view.hosts(), key.need, now_ms, later(now_ms, view.duration_ms(key)));
  if (s.joined == 0) return {ReasonKind::kNoHost, "no host has joined yet"};
  if (s.usable == 0)
    return {ReasonKind::kNoHost, absl::StrCat("no host takes jobs now: ", away_words(s))};
  if (s.capable == 0) return {ReasonKind::kImpossible, impossible_words(s, key.need)};
  if (s.capable < key.nodes) {
    return {ReasonKind::kImpossible,
            absl::StrCat("needs ", key.nodes, " hosts with ", need_words(key.need), ": only ",
                         s.capable, s.capable == 1 ? " is" : " are", " there")};
  }
  if (s.free < key.nodes && s.kept != nullptr)
    return {ReasonKind::kReserved, kept_words(*s.kept, now_ms)};
  if (s.free < key.nodes) return {ReasonKind::kBusy, busy_words(s, key.need, key.nodes)};
  if (first_in_line != 0) {
    return {ReasonKind::kTurn, absl::StrCat("waits its turn: free hosts are kept for job ",
                                            first_in_line, ", which is before it in line")};
  }
  return {};
}

std::string latest_start_words(const View& view, const ClassKey& key, int64_t now_ms) {
  Promise promise;
  if (!promise.make(view.hosts(), 1, key.need, key.nodes, now_ms, view.duration_ms(key)) ||
      promise.starts_ms() == 0) {
    return "";
  }
  return absl::StrCat("; next in line, starts by ", utc_words(promise.starts_ms(), now_ms),
                      " at the latest");
}

std::string utc_words(int64_t time_ms, int64_t now_ms) {
  constexpr int64_t kDayMs = 86'400'000;
  const int64_t minutes = (time_ms + 59'999) / 60'000;
  const std::string clock = absl::StrFormat("%02d:%02d UTC", minutes / 60 % 24, minutes % 60);
  if (time_ms < now_ms + kDayMs) return clock;
  // Days since the epoch to a date (Hinnant, "chrono-compatible low-level date algorithms").
  const int64_t days = minutes / 1440 + 719'468;
  const int64_t era = days / 146'097;
  const int64_t day_of_era = days % 146'097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month_from_march = (5 * day_of_year + 2) / 153;
  const int64_t day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
  const int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  const int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  return absl::StrFormat("%04d-%02d-%02d %s", year, month, day, clock);
}

Reason explain_unready(const View& view, const JobRecord& job) {
  if (job.state == JobState::kHeld) return {ReasonKind::kHeld, "held by its owner"};
  Dependency which;
  JobFate fate;
  const DependencyVerdict verdict = view.dependencies(job, &which, &fate);
  if (verdict == DependencyVerdict::kUnasked) return {};  // being asked for
  if (verdict != DependencyVerdict::kMet) {
    const ReasonKind kind =
        verdict == DependencyVerdict::kNever ? ReasonKind::kNever : ReasonKind::kDependency;
    return {kind, dependency_words(which, verdict, fate), !fate.known};
  }
  if (job.refusals < 3) return {};  // tried again at once: not worth a word
  return {ReasonKind::kRefused, absl::StrCat("the controller refused ", job.refusals,
                                             " attempts to start it; trying again")};
}

std::vector<PendReason> collect_reasons(View* view, int64_t now_ms, const ReasonLimits& limits,
                                        bool* more) {
  view->set_now(now_ms);
  Pass pass(view, now_ms, limits);
  pass.unready();
  if (!pass.full()) pass.in_line();
  if (!pass.full()) pass.far_behind();
  if (more != nullptr) *more = pass.full();
  return pass.take();
}

}  // namespace xce::sched
