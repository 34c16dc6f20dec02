#include "cli/waiter.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/labels.h"
#include "cli/terminal.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

constexpr int kFirstPauseMs = 50;
constexpr int kLongestPauseMs = 500;
constexpr int kLogPauseMs = 200;
constexpr int kLogPatienceMs = 10000;      // for a worker that looks for the new primary
constexpr int kLogPatienceEndedMs = 2000;  // for the output of a job that has ended
constexpr size_t kIdsPerCall = 500;
constexpr uint32_t kLogChunkBytes = 256 * 1024;

absl::StatusOr<Page> list(Session& session, const xce_job_filter_t& filter, long long until) {
  xce_job_page_t* page = nullptr;
  const auto rc = session.follow("cannot follow the job", until, [&](xcecli_ctx_t ctx) {
    return xcecli_joblist(ctx, &filter, &page);
  });
  if (!rc.ok()) return rc.status();
  return Page(page);
}

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

// Tells of all tasks when none is alive any more. True: that was so.
absl::StatusOr<bool> check_array(Session& session, const Resolved& target, long long until,
                                 const Tell& tell) {
  xce_job_filter_t filter{};
  filter.array_id = target.id;
  filter.states = kAliveStates;
  filter.limit = 1;
  const auto alive = list(session, filter, until);
  if (!alive.ok()) return alive.status();
  if ((*alive)->njobs > 0) {
    tell.waits((*alive)->jobs[0]);
    return false;
  }
  filter.states = 0;
  filter.limit = 0;
  size_t tasks = 0;
  while (true) {
    const auto page = list(session, filter, until);
    if (!page.ok()) return page.status();
    for (size_t i = 0; i < (*page)->njobs; ++i) tell.ended((*page)->jobs[i]);
    tasks += (*page)->njobs;
    filter.after_id = (*page)->next_after_id;
    if (filter.after_id == 0) break;
  }
  if (tasks == 0)
    return absl::NotFoundError(
        absl::StrCat("array ", target.text, " is no longer known to the cluster"));
  return true;
}

// Asks for up to kIdsPerCall jobs; those that have ended are told and taken out of [begin, end).
// True: some had.
absl::StatusOr<bool> check_jobs(Session& session, std::vector<Resolved>* targets, size_t begin,
                                size_t n, long long until, const Tell& tell) {
  std::vector<uint64_t> ids;
  for (size_t i = begin; i < begin + n; ++i) ids.push_back((*targets)[i].id);
  xce_job_filter_t filter{};
  filter.ids = ids.data();
  filter.nids = ids.size();
  std::vector<uint64_t> seen, ended;
  while (true) {
    const auto page = list(session, filter, until);
    if (!page.ok()) return page.status();
    for (size_t i = 0; i < (*page)->njobs; ++i) {
      const xce_job_t& job = (*page)->jobs[i];
      seen.push_back(job.id);
      if (!is_ended(job)) {
        tell.waits(job);
        continue;
      }
      tell.ended(job);
      ended.push_back(job.id);
    }
    filter.after_id = (*page)->next_after_id;
    if (filter.after_id == 0) break;
  }
  const auto has = [](const std::vector<uint64_t>& list, uint64_t id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  for (uint64_t id : ids) {
    if (!has(seen, id))
      return absl::NotFoundError(absl::StrCat("job ", id, " is no longer known to the cluster"));
  }
  const auto first = targets->begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = first + static_cast<std::ptrdiff_t>(n);
  targets->erase(
      std::remove_if(first, last, [&](const Resolved& target) { return has(ended, target.id); }),
      last);
  return !ended.empty();
}

}  // namespace

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

std::string outcome_words(const EndedJob& job) {
  std::string out = absl::StrCat("Job ", job.text, " ", state_word(job.state));
  if (job.state == XCE_JOB_FAILED)
    absl::StrAppend(&out, " with exit code ", exit_code_words(job.exit_code, job.exit_signal));
  if (job.run_ms >= 0) absl::StrAppend(&out, " after ", long_duration(job.run_ms));
  if (job.state != XCE_JOB_COMPLETED && !job.reason.empty())
    absl::StrAppend(&out, ": ", printable(job.reason));
  return out;
}

namespace {

absl::Status still_under_way(const std::vector<Resolved>& targets,
                             const std::vector<Resolved>& arrays) {
  const size_t n = targets.size() + arrays.size();
  const std::string first =
      absl::StrCat(targets.empty() ? "array " + arrays[0].text : "job " + targets[0].text);
  return absl::DeadlineExceededError(
      absl::StrCat(first, n == 1 ? " is" : absl::StrCat(" and ", n - 1, " more are"),
                   " still under way; wait longer with --timeout"));
}

}  // namespace

absl::Status wait_for(Session& session, std::vector<Resolved> targets, long long until_steady_ms,
                      const std::function<void(const EndedJob&)>& each,
                      const std::function<void(const xce_job_t&)>& stuck) {
  const Tell tell(each, stuck);
  // What a call cut short by the timeout says is of less use than which jobs are left.
  const auto words = [&](const absl::Status& status, const std::vector<Resolved>& arrays_left) {
    const bool timeout = status.code() == absl::StatusCode::kDeadlineExceeded;
    return timeout ? still_under_way(targets, arrays_left) : status;
  };
  std::vector<Resolved> arrays;
  for (const Resolved& target : targets) {
    if (target.array) arrays.push_back(target);
  }
  targets.erase(
      std::remove_if(targets.begin(), targets.end(), [](const Resolved& t) { return t.array; }),
      targets.end());
  int pause_ms = kFirstPauseMs;
  while (true) {
    bool progress = false;
    for (size_t at = 0; at < targets.size();) {
      const size_t before = targets.size();
      const size_t n = std::min(kIdsPerCall, before - at);
      const auto some = check_jobs(session, &targets, at, n, until_steady_ms, tell);
      if (!some.ok()) return words(some.status(), arrays);
      progress = progress || *some;
      at += n - (before - targets.size());
    }
    for (size_t i = 0; i < arrays.size();) {
      const auto done = check_array(session, arrays[i], until_steady_ms, tell);
      if (!done.ok()) return words(done.status(), arrays);
      if (*done) {
        arrays.erase(arrays.begin() + static_cast<std::ptrdiff_t>(i));
        progress = true;
      } else {
        ++i;
      }
    }
    if (targets.empty() && arrays.empty()) return absl::OkStatus();
    if (interrupted() != 0) return absl::CancelledError("interrupted");
    pause_ms = progress ? kFirstPauseMs : std::min(kLongestPauseMs, pause_ms + pause_ms / 2);
    int nap = pause_ms;
    if (until_steady_ms != 0) {
      const long long left = until_steady_ms - steady_ms();
      if (left <= 0) return still_under_way(targets, arrays);
      nap = static_cast<int>(std::min<long long>(left, nap));
    }
    sleep_ms(nap);
  }
}

absl::Status LogReader::pump(Session& session, bool follow) {
  struct Deleter {
    void operator()(xce_log_chunk_t* chunk) const { xce_free_log_chunk(chunk); }
  };
  const std::string what = absl::StrCat("cannot read the output of job ", job_id_);
  while (interrupted() == 0) {
    xce_log_chunk_t* raw = nullptr;
    const auto op = [&](xcecli_ctx_t ctx) {
      return xcecli_joblog(ctx, job_id_, stream_, offset_, kLogChunkBytes, &raw);
    };
    const auto rc = follow ? session.follow(what, 0, op) : session.call(what, op);
    if (!rc.ok()) return rc.status();
    const std::unique_ptr<xce_log_chunk_t, Deleter> chunk(raw);
    if (chunk->status != 0) {
      const std::string detail = chunk->message != nullptr && chunk->message[0] != '\0'
                                     ? printable(chunk->message)
                                     : xce_strerror(chunk->status);
      return absl::Status(code_of(chunk->status), absl::StrCat(what, ": ", detail));
    }
    const std::string_view data(reinterpret_cast<const char*>(chunk->data), chunk->len);
    if (fd_ == 1) {
      print(data);
    } else {
      std::string_view rest = data;
      while (!rest.empty()) {
        const ssize_t n = ::write(fd_, rest.data(), rest.size());
        if (n < 0 && errno != EINTR) break;  // nobody reads our standard error: not worth dying of
        if (n > 0) rest.remove_prefix(static_cast<size_t>(n));
      }
    }
    offset_ += chunk->len;
    if (chunk->len == 0 || chunk->eof) return absl::OkStatus();
  }
  return absl::OkStatus();
}

namespace {

// The first error; the other readers are served all the same.
absl::Status pump_all(Session& session, std::vector<LogReader>* readers) {
  absl::Status first;
  for (LogReader& reader : *readers) {
    const absl::Status status = reader.pump(session, true);
    if (first.ok()) first = status;
  }
  return first;
}

class Follower {
 public:
  Follower(FollowedJob job, bool quiet_errors) : job_(std::move(job)), quiet_(quiet_errors) {}

  // Copies what is there now. The job's end, once it has ended and all was copied.
  absl::StatusOr<std::optional<EndedJob>> look(Session& session);

 private:
  // Whether everything there is now was copied, or will not be.
  absl::StatusOr<bool> copy(Session& session, const xce_job_t& job);

  FollowedJob job_;
  const bool quiet_;
  bool complained_ = false, all_read_ = false;
  long long failing_since_ = 0;  // 0: the output could be read
  uint32_t attempt_ = 0;
};

absl::StatusOr<bool> Follower::copy(Session& session, const xce_job_t& job) {
  const absl::Status status = pump_all(session, &job_.readers);
  if (status.ok()) {
    failing_since_ = 0;
  } else if (failing_since_ == 0) {
    failing_since_ = steady_ms();
  }
  const int patience_ms = is_ended(job) ? kLogPatienceEndedMs : kLogPatienceMs;
  if (failing_since_ != 0 && steady_ms() - failing_since_ > patience_ms) {
    if (!quiet_) return status;
    if (!complained_) complain(std::string(status.message()));
    complained_ = true;
  }
  return status.ok() || complained_;
}

absl::StatusOr<std::optional<EndedJob>> Follower::look(Session& session) {
  xce_job_filter_t filter{};
  filter.ids = &job_.id;
  filter.nids = 1;
  const auto page = list(session, filter, 0);
  if (!page.ok()) return page.status();
  if ((*page)->njobs == 0)
    return absl::NotFoundError(absl::StrCat("job ", job_.id, " is no longer known to the cluster"));
  const xce_job_t& job = (*page)->jobs[0];
  if (job.attempt != attempt_) {  // started anew: its output begins again
    if (attempt_ != 0) {
      for (LogReader& reader : job_.readers) reader.restart();
    }
    attempt_ = job.attempt;
  }
  if (job.start_ms != 0 && !is_waiting(job) && job.state != XCE_JOB_STARTING) {
    const auto copied = copy(session, job);
    if (!copied.ok()) return copied.status();
    all_read_ = *copied;
  }
  if (is_ended(job) && (all_read_ || job.start_ms == 0))
    return std::optional<EndedJob>(ended_job(job));
  return std::optional<EndedJob>();
}

}  // namespace

absl::StatusOr<std::vector<EndedJob>> follow_jobs(Session& session, std::vector<FollowedJob> jobs,
                                                  bool quiet_errors) {
  std::vector<Follower> followers;
  for (FollowedJob& job : jobs) followers.emplace_back(std::move(job), quiet_errors);
  std::vector<std::optional<EndedJob>> ends(followers.size());
  int pause_ms = kFirstPauseMs;
  while (true) {
    bool all = true;
    for (size_t i = 0; i < followers.size(); ++i) {
      if (ends[i].has_value()) continue;
      auto end = followers[i].look(session);
      if (!end.ok()) return end.status();
      ends[i] = *std::move(end);
      all = all && ends[i].has_value();
    }
    if (all) break;
    if (interrupted() != 0) return absl::CancelledError("interrupted");
    sleep_ms(pause_ms);
    pause_ms = std::min(kLogPauseMs, pause_ms + pause_ms / 2);
  }
  std::vector<EndedJob> out;
  for (std::optional<EndedJob>& end : ends) out.push_back(*std::move(end));
  return out;
}

}  // namespace xce::cli
