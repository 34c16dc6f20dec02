// See log_reader.h.
#include "worker/agent/log_reader.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xce/errnox.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "worker/agent/clock.h"
#include "worker/agent/users.h"

namespace xce::worker {
namespace {
constexpr size_t kMaxWaiting = 1000;
constexpr int64_t kFirstLookMs = 2;  // a short job's end is near
constexpr int64_t kLookAgainMs = 20;
}  // namespace

LogChunk read_log(const std::string& file, uint64_t offset, uint32_t limit, bool ended) {
  LogChunk chunk;
  chunk.offset = offset;
  const int fd = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) {
    if (errno == ENOENT && !ended) return chunk;
    chunk.status = E_XCE_NOENT;
    chunk.message = "cannot read " + file + ": " + std::strerror(errno);
    chunk.eof = true;
    return chunk;
  }
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    chunk.eof = true;  // /dev/null and the like hold nothing to show
    close(fd);
    return chunk;
  }
  const size_t want = std::min(limit == 0 ? kMaxLogBytes : limit, kMaxLogBytes);
  chunk.data.resize(want);
  size_t got = 0;
  while (got < want) {
    const ssize_t n = pread(fd, &chunk.data[got], want - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  close(fd);
  chunk.data.resize(got);
  chunk.eof = ended && got < want;
  return chunk;
}

void LogReader::start() {
  thread_ = std::thread([this] { run(); });
}

void LogReader::ask(LogQuery query) {
  absl::MutexLock lock(&mutex_);
  if (queries_.size() < kMaxWaiting) queries_.push_back(query);
}

void LogReader::stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool LogReader::next(int64_t pause_ms, std::optional<Question>* out) {
  absl::MutexLock lock(&mutex_);
  auto ready = [this]()
                   ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !queries_.empty(); };
  mutex_.AwaitWithTimeout(absl::Condition(&ready),
                          kept_.empty() ? absl::InfiniteDuration() : absl::Milliseconds(pause_ms));
  if (stopping_) return false;
  if (!queries_.empty()) {
    const LogQuery query = queries_.front();
    queries_.pop_front();
    out->emplace(Question{query, monotonic_ms() + query.wait_ms, std::nullopt});
  }
  return true;
}

void LogReader::run() {
  int64_t pause_ms = kLookAgainMs, look_at_ms = 0;
  std::optional<Question> question;
  while (next(pause_ms, &question)) {
    const int64_t now = monotonic_ms();
    if (question) {
      if (!serve(&*question, now)) {
        kept_.push_back(std::move(*question));
        pause_ms = kFirstLookMs;
        look_at_ms = now + pause_ms;
      }
      question.reset();
    }
    if (kept_.empty() || now < look_at_ms) continue;
    kept_.erase(std::remove_if(kept_.begin(), kept_.end(),
                               [&](Question& kept) { return serve(&kept, now); }),
                kept_.end());
    // Less often after a while, and when many are kept.
    pause_ms = std::max(std::min(kLookAgainMs, pause_ms + pause_ms / 2),
                        static_cast<int64_t>(kept_.size() / 10));
    look_at_ms = now + pause_ms;
  }
}

bool LogReader::serve(Question* question, int64_t now) {
  Reading reading = read(question);
  if (reading.may_grow && now < question->until_ms && kept_.size() <= kMaxWaiting) return false;
  const int status = link_->answer_log(std::move(reading.chunk));
  if (status < 0)
    spdlog::debug("the output of job {} could not be sent: {}", question->query.job, status);
  return true;
}

LogReader::Reading LogReader::read(Question* question) {
  const LogQuery& query = question->query;
  auto files = supervisor_->output_files(query.job);
  Reading out;
  out.may_grow = files && !files->ended;
  std::optional<Job>& job = question->owner;
  if (!job && (!files || as_users_)) {
    const int status = link_->job_info(query.job, &job);
    if (status < 0) job.reset();
  }
  if (!files && job)
    files = Supervisor::OutputFiles{job->stdout_file, job->stderr_file, is_ended(job->state)};
  if (as_users_ && !job) files.reset();  // whose it is must be known
  LogChunk& chunk = out.chunk;
  chunk.offset = query.offset;
  if (!files) {
    chunk.status = E_XCE_NOENT;
    chunk.message = "job " + std::to_string(query.job) + " is not known on this host";
  } else {
    const std::string& file =
        query.stream == Stream::kStdout ? files->stdout_file : files->stderr_file;
    if (!file.empty()) {
      const auto read = [&] { chunk = read_log(file, query.offset, query.limit, files->ended); };
      if (!as_users_) {
        read();
      } else if (!as_user(job->spec.uid, job->spec.gid, read)) {
        chunk.status = E_XCE_PERM;
        chunk.message = "cannot read " + file + " as user " + std::to_string(job->spec.uid);
        chunk.eof = true;
      }
    } else {
      chunk.eof = files->ended;  // it has not started yet, or never did
    }
  }
  chunk.query = query.query;
  out.may_grow = out.may_grow && chunk.status == 0 && chunk.data.empty() && !chunk.eof;
  return out;
}

}  // namespace xce::worker
