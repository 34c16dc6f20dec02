#include "cli/waiter.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/labels.h"
#include "cli/terminal.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

constexpr size_t kIdsPerCall = 500;
constexpr size_t kMostArrays = 1024;  // watched at once

// Whom to tell what.
class Tell {
 public:
  Tell(const std::function<void(const EndedJob&)>& each,
       const std::function<void(const xce_job_t&)>& stuck)
      : each_(each), stuck_(stuck) {}
  void ended(const xce_job_t& job) const { each_(ended_job(job)); }
  void waits(const xce_job_t& job) const {
    if (stuck_ && is_stuck(job) && told_.insert(job.id).second) stuck_(job);
  }

 private:
  const std::function<void(const EndedJob&)>& each_;
  const std::function<void(const xce_job_t&)>& stuck_;
  mutable std::set<uint64_t> told_;
};

absl::Status still_under_way(const std::string& first, size_t n) {
  return absl::DeadlineExceededError(
      absl::StrCat(first, n == 1 ? " is" : absl::StrCat(" and ", n - 1, " more are"),
                   " still under way; wait longer with --timeout"));
}

// Waits for jobs and arrays. Of an array one task that is alive, its witness, is watched: while it
// is alive the array is. So a large array costs a question now and then, and no event of its other
// tasks.
class Waiter {
 public:
  Waiter(Session& session, const std::vector<Resolved>& targets, long long until, const Tell& tell)
      : session_(session), until_(until), tell_(tell) {
    for (const Resolved& target : targets) {
      if (target.array)
        arrays_.push_back({target, 0});
      else
        jobs_[target.id] = target.text;
    }
  }

  absl::Status run() {
    const absl::Status status = wait();
    // What a call cut short by the timeout says is of less use than which jobs are left.
    if (status.code() != absl::StatusCode::kDeadlineExceeded) return status;
    return still_under_way(
        jobs_.empty() ? "array " + arrays_[0].target.text : "job " + jobs_.begin()->second,
        jobs_.size() + arrays_.size());
  }

 private:
  struct Array {
    Resolved target;
    uint64_t witness;  // 0: to be found
  };

  absl::Status wait();
  // Gives every array a witness; those without any have ended: they are told and taken out.
  absl::Status find_witnesses();
  absl::Status tell_tasks(const Resolved& target);
  // Reads how these jobs stand; those that have ended are told and taken out.
  absl::Status look_at(const std::vector<uint64_t>& ids);
  absl::Status look_at_some(const uint64_t* ids, size_t n);
  // What to watch now: every witness, and as many jobs as can be.
  std::vector<uint64_t> to_watch();

  Session& session_;
  const long long until_;
  const Tell& tell_;
  std::map<uint64_t, std::string> jobs_;  // that have not ended, as typed
  std::vector<Array> arrays_;
  std::vector<uint64_t> watched_;  // of jobs_, when there are too many for one subscription
};

absl::Status Waiter::tell_tasks(const Resolved& target) {
  xce_job_filter_t filter{};
  filter.array_id = target.id;
  size_t tasks = 0;
  while (true) {
    const auto page = session_.follow_page("cannot follow the job", filter, until_);
    if (!page.ok()) return page.status();
    for (size_t i = 0; i < (*page)->njobs; ++i) tell_.ended((*page)->jobs[i]);
    tasks += (*page)->njobs;
    filter.after_id = (*page)->next_after_id;
    if (filter.after_id == 0) break;
  }
  return tasks > 0 ? absl::OkStatus() : forgotten("array " + target.text);
}

absl::Status Waiter::find_witnesses() {
  for (size_t i = 0; i < arrays_.size();) {
    if (arrays_[i].witness != 0) {
      ++i;
      continue;
    }
    xce_job_filter_t filter{};
    filter.array_id = arrays_[i].target.id;
    filter.states = kAliveStates;
    filter.limit = 1;
    filter.descending = true;  // the last tasks are likely to end last
    const auto alive = session_.follow_page("cannot follow the job", filter, until_);
    if (!alive.ok()) return alive.status();
    if ((*alive)->njobs > 0) {
      tell_.waits((*alive)->jobs[0]);
      arrays_[i++].witness = (*alive)->jobs[0].id;
      continue;
    }
    const absl::Status told = tell_tasks(arrays_[i].target);
    if (!told.ok()) return told;
    arrays_.erase(arrays_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return absl::OkStatus();
}

absl::Status Waiter::look_at_some(const uint64_t* ids, size_t n) {
  xce_job_filter_t filter{};
  filter.ids = ids;
  filter.nids = n;
  std::set<uint64_t> missing(ids, ids + n);
  while (true) {
    const auto page = session_.follow_page("cannot follow the job", filter, until_);
    if (!page.ok()) return page.status();
    for (size_t i = 0; i < (*page)->njobs; ++i) {
      const xce_job_t& job = (*page)->jobs[i];
      missing.erase(job.id);
      if (!is_ended(job)) {
        tell_.waits(job);
        continue;
      }
      tell_.ended(job);
      jobs_.erase(job.id);
    }
    filter.after_id = (*page)->next_after_id;
    if (filter.after_id == 0) break;
  }
  return missing.empty() ? absl::OkStatus() : forgotten(absl::StrCat("job ", *missing.begin()));
}

absl::Status Waiter::look_at(const std::vector<uint64_t>& ids) {
  std::vector<uint64_t> jobs;
  for (uint64_t id : ids) {
    if (jobs_.count(id) > 0) jobs.push_back(id);
    for (Array& array : arrays_) {
      if (array.witness == id) array.witness = 0;
    }
  }
  for (size_t at = 0; at < jobs.size(); at += kIdsPerCall) {
    const absl::Status status =
        look_at_some(jobs.data() + at, std::min(kIdsPerCall, jobs.size() - at));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<uint64_t> Waiter::to_watch() {
  const size_t room = XCE_MAX_WATCHED_JOBS - std::min<size_t>(arrays_.size(), kMostArrays);
  const auto gone = [this](uint64_t id) { return jobs_.count(id) == 0; };
  watched_.erase(std::remove_if(watched_.begin(), watched_.end(), gone), watched_.end());
  // Few subscriptions: a new one only when half of the jobs of the last one have ended.
  if (watched_.size() < std::min(jobs_.size(), room / 2)) {
    watched_.clear();
    for (auto it = jobs_.begin(); it != jobs_.end() && watched_.size() < room; ++it)
      watched_.push_back(it->first);
  }
  std::vector<uint64_t> ids = watched_;
  for (size_t i = 0; i < std::min(arrays_.size(), kMostArrays); ++i)
    ids.push_back(arrays_[i].witness);
  return ids;
}

absl::Status Waiter::wait() {
  while (true) {
    absl::Status status = find_witnesses();
    if (!status.ok()) return status;
    if (jobs_.empty() && arrays_.empty()) return absl::OkStatus();
    const std::vector<uint64_t> ids = to_watch();
    const auto anew = session_.watch_jobs("cannot follow the job", ids, until_);
    if (!anew.ok()) return anew.status();
    std::vector<uint64_t> changed = ids;
    if (!*anew) {
      changed = session_.wait_for_change(until_);
      if (interrupted() != 0) return absl::CancelledError("interrupted");
      if (until_ != 0 && steady_ms() >= until_) return absl::DeadlineExceededError("");
      if (changed.empty()) changed = ids;  // a look now and then costs little
    }
    status = look_at(changed);
    if (!status.ok()) return status;
  }
}

}  // namespace

absl::Status forgotten(const std::string& what) {
  return absl::NotFoundError(absl::StrCat(what, " is no longer known to the cluster"));
}

EndedJob ended_job(const xce_job_t& job) {
  EndedJob out;
  out.text = id_of(job);
  out.id = job.id;
  out.state = job.state;
  out.exit_signal = job.exit_signal;
  out.exit_code = exit_code_of_job(job.state, job.exit_code, job.exit_signal);
  out.run_ms = run_ms(job, job.end_ms);
  out.reason = job.reason == nullptr ? "" : job.reason;
  return out;
}

std::string stuck_words(const xce_job_t& job) {
  const std::string reason = printable(job.reason == nullptr ? "" : job.reason);
  const std::string rest = reason.empty() ? "" : absl::StrCat(" (", reason, ")");
  if (job.state == XCE_JOB_HELD)
    return absl::StrCat("job ", id_of(job), " is held", rest, " and waits until 'xce release ",
                        id_of(job), "'");
  return absl::StrCat("job ", id_of(job), " cannot start as things are: ", reason, "; 'xce kill ",
                      id_of(job), "' gives it up");
}

std::string outcome_words(const EndedJob& job) {
  std::string out = absl::StrCat("Job ", job.text, " ", state_word(job.state));
  if (job.state == XCE_JOB_FAILED)
    absl::StrAppend(&out, " with exit code ", exit_code_words(job.exit_code, job.exit_signal));
  if (job.run_ms >= 0) absl::StrAppend(&out, " after ", long_duration(job.run_ms));
  if (job.state != XCE_JOB_COMPLETED && !job.reason.empty())
    absl::StrAppend(&out, ": ", printable(job.reason));
  return out;
}

absl::Status wait_for(Session& session, const std::vector<Resolved>& targets,
                      long long until_steady_ms, const std::function<void(const EndedJob&)>& each,
                      const std::function<void(const xce_job_t&)>& stuck) {
  return Waiter(session, targets, until_steady_ms, Tell(each, stuck)).run();
}

}  // namespace xce::cli
