#include "cli/follower.h"

#include <unistd.h>
#include <xce/client.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/labels.h"
#include "cli/terminal.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

constexpr int kLogPauseMs = 200;           // when output cannot be waited for
constexpr uint32_t kLogWaitMs = 500;       // that a worker keeps a question; Ctrl-C waits as long
constexpr int kLogPatienceMs = 10000;      // for a worker that looks for the new primary
constexpr int kLogPatienceEndedMs = 2000;  // for the output of a job that has ended
constexpr uint32_t kLogChunkBytes = 256 * 1024;

}  // namespace

absl::Status LogReader::pump(Session& session, bool follow, uint32_t wait_ms) {
  struct Deleter {
    void operator()(xce_log_chunk_t* chunk) const { xce_free_log_chunk(chunk); }
  };
  const std::string what = absl::StrCat("cannot read the output of job ", job_id_);
  while (interrupted() == 0) {
    xce_log_chunk_t* raw = nullptr;
    const auto op = [&](xcecli_ctx_t ctx) {
      return xcecli_joblog_wait(ctx, job_id_, stream_, offset_, kLogChunkBytes, wait_ms, &raw);
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
    // A short piece ends where the output ends now.
    if (chunk->len < kLogChunkBytes || chunk->eof) return absl::OkStatus();
  }
  return absl::OkStatus();
}

namespace {

// The first error; the other readers are served all the same.
absl::Status pump_all(Session& session, std::vector<LogReader>* readers, uint32_t wait_ms) {
  absl::Status first;
  for (LogReader& reader : *readers) {
    const absl::Status status = reader.pump(session, true, wait_ms);
    if (first.ok()) first = status;
  }
  return first;
}

// One of the jobs that are followed.
class Follower {
 public:
  Follower(FollowedJob job, Telling telling) : job_(std::move(job)), telling_(telling) {}

  uint64_t id() const { return job_.id; }
  size_t readers() const { return job_.readers.size(); }
  bool has_output() const { return has_output_; }
  void look_again() { look_again_ = true; }
  // Reads how the job stands, if that may have changed, and copies its output: what there is, or,
  // of a job that runs, what comes within wait_ms. True: there was some.
  absl::StatusOr<bool> go_on(Session& session, uint32_t wait_ms);
  // How it ended, once all was copied.
  std::optional<EndedJob> end() const;

 private:
  absl::Status look(Session& session);
  absl::StatusOr<bool> copy(Session& session, uint32_t wait_ms);
  uint64_t copied() const;

  FollowedJob job_;
  const Telling telling_;
  Page page_;  // with the job as last seen
  uint32_t attempt_ = 0;
  bool look_again_ = true, has_output_ = false, all_read_ = false;
  bool complained_ = false, told_stuck_ = false;
  long long failing_since_ = 0;  // 0: the output could be read
};

uint64_t Follower::copied() const {
  uint64_t bytes = 0;
  for (const LogReader& reader : job_.readers) bytes += reader.offset();
  return bytes;
}

absl::Status Follower::look(Session& session) {
  xce_job_filter_t filter{};
  filter.ids = &job_.id;
  filter.nids = 1;
  auto page = session.follow_page("cannot follow the job", filter, 0);
  if (!page.ok()) return page.status();
  if ((*page)->njobs == 0) return forgotten(absl::StrCat("job ", job_.id));
  page_ = *std::move(page);
  look_again_ = all_read_ = false;
  const xce_job_t& job = page_->jobs[0];
  if (job.attempt != attempt_ && attempt_ != 0) {  // started anew: its output begins again
    for (LogReader& reader : job_.readers) reader.restart();
  }
  attempt_ = job.attempt;
  has_output_ = job.start_ms != 0 && !is_waiting(job) && job.state != XCE_JOB_STARTING;
  if (telling_.why_it_waits && !told_stuck_ && is_stuck(job)) {
    complain(stuck_words(job));
    told_stuck_ = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Follower::copy(Session& session, uint32_t wait_ms) {
  const bool ended = is_ended(page_->jobs[0]);
  const long long before_ms = steady_ms();
  const uint64_t before = copied();
  const absl::Status status = pump_all(session, &job_.readers, ended ? 0 : wait_ms);
  all_read_ = status.ok();
  if (status.ok()) {
    failing_since_ = 0;
  } else if (failing_since_ == 0) {
    failing_since_ = before_ms;
  }
  const int patience_ms = ended ? kLogPatienceEndedMs : kLogPatienceMs;
  if (!status.ok() && steady_ms() - failing_since_ > patience_ms) {
    if (telling_.errors_end_it) return status;
    if (!complained_) complain(std::string(status.message()));
    complained_ = all_read_ = true;
  }
  return copied() != before;
}

absl::StatusOr<bool> Follower::go_on(Session& session, uint32_t wait_ms) {
  if (look_again_) {
    const absl::Status status = look(session);
    if (!status.ok()) return status;
  }
  if (!has_output_ || end().has_value()) return false;
  return copy(session, wait_ms);
}

std::optional<EndedJob> Follower::end() const {
  if (page_ == nullptr || look_again_ || !is_ended(page_->jobs[0])) return std::nullopt;
  if (has_output_ && !all_read_) return std::nullopt;
  return ended_job(page_->jobs[0]);
}

// All jobs that are followed and have not ended.
class Group {
 public:
  Group(std::vector<FollowedJob> jobs, Telling telling) {
    for (FollowedJob& job : jobs) followers_.emplace_back(std::move(job), telling);
  }

  absl::StatusOr<std::vector<EndedJob>> follow(Session& session);

 private:
  // Notes which jobs have changed; waits until_steady_ms for the first (0: a long while).
  void take_changes(Session& session, long long until_steady_ms);

  std::vector<Follower> followers_;
};

void Group::take_changes(Session& session, long long until_steady_ms) {
  const std::vector<uint64_t> changed = session.wait_for_change(until_steady_ms);
  for (Follower& follower : followers_) {
    const bool named = std::find(changed.begin(), changed.end(), follower.id()) != changed.end();
    if (named || (until_steady_ms == 0 && changed.empty())) follower.look_again();
  }
}

absl::StatusOr<std::vector<EndedJob>> Group::follow(Session& session) {
  std::vector<uint64_t> ids;
  size_t readers = 0;
  for (const Follower& follower : followers_) {
    ids.push_back(follower.id());
    readers += follower.readers();
  }
  // Only one can be waited for at a time; several are asked in turn.
  const uint32_t wait_ms = readers == 1 ? kLogWaitMs : 0;
  while (true) {
    if (interrupted() != 0) return absl::CancelledError("interrupted");
    const auto anew = session.watch_jobs("cannot follow the job", ids, 0);
    if (!anew.ok()) return anew.status();
    if (*anew) {
      for (Follower& follower : followers_) follower.look_again();
    } else {
      take_changes(session, steady_ms());
    }
    const long long began = steady_ms();
    bool some = false, output = false;
    std::vector<EndedJob> ends;
    for (Follower& follower : followers_) {
      const auto got = follower.go_on(session, wait_ms);
      if (!got.ok()) return got.status();
      some = some || *got;
      if (auto end = follower.end())
        ends.push_back(*std::move(end));
      else
        output = output || follower.has_output();
    }
    if (ends.size() == followers_.size()) return ends;
    const bool waited = wait_ms != 0 && steady_ms() - began >= wait_ms / 2;
    if (!output)
      take_changes(session, 0);
    else if (!some && !waited)
      take_changes(session, steady_ms() + kLogPauseMs);
  }
}

}  // namespace

absl::StatusOr<std::vector<EndedJob>> follow_jobs(Session& session, std::vector<FollowedJob> jobs,
                                                  Telling telling) {
  return Group(std::move(jobs), telling).follow(session);
}

}  // namespace xce::cli
