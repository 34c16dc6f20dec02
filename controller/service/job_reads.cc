// Service: reads that more than the state answers: the archive of ended jobs, a worker about a
// job's output.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/service/reads.h"
#include "controller/service/service.h"
#include "xce/config.h"
#include "xce/errnox.h"

namespace xce::service {
namespace {

constexpr size_t kMaxArchiveReads = 1000;  // that wait for the disk
constexpr uint32_t kMaxLogBytes = 1024 * 1024;

}  // namespace

void Service::ask_archive(const Request& request, HalfAnswer half) {
  if (archive_reads_ >= kMaxArchiveReads) {
    answer_status(request, E_XCE_BUSY,
                  "more questions about the history wait than the disk answers; try again");
    return;
  }
  ++archive_reads_;
  // The answer is of now: what is applied meanwhile is not in it.
  Answer reply = answer_to(request);
  const auto kept = std::make_shared<HalfAnswer>(std::move(half));
  archive_->find(kept->query,
                 [this, request, reply, kept](absl::StatusOr<history::Page> page) mutable {
                   --archive_reads_;
                   if (!page.ok()) {
                     answer_status(request, E_XCE_NOT_READY, std::string(page.status().message()));
                     return;
                   }
                   answer_whole(std::move(*kept), *std::move(page), request, &reply);
                   answer(std::move(reply));
                 });
}

// ---- a job's output -----------------------------------------------------------------------------

void Service::ask_for_log(const Request& request) {
  const JobId id = std::get<LogRequest>(request.what).job;
  if (const Job* job = state_->job(id)) {
    ask_worker(request, *job);
    return;
  }
  if (archive_ == nullptr || id == 0 || id >= state_->next_job() ||
      archive_reads_ >= kMaxArchiveReads) {
    answer_status(request, E_XCE_NOENT, absl::StrCat("no job ", id));
    return;
  }
  history::Query query;
  query.filter.ids = {id};
  ++archive_reads_;
  archive_->find(std::move(query), [this, request, id](absl::StatusOr<history::Page> page) {
    --archive_reads_;
    if (page.ok() && !page->jobs.empty())
      ask_worker(request, page->jobs[0]);
    else
      answer_status(request, page.ok() ? E_XCE_NOENT : E_XCE_NOT_READY,
                    page.ok() ? absl::StrCat("job ", id, " is no longer in the history")
                              : std::string(page.status().message()));
  });
}

void Service::ask_worker(const Request& request, const Job& job) {
  const auto& what = std::get<LogRequest>(request.what);
  if (!may_see(job, *request.who)) {
    answer_status(request, E_XCE_PERM, absl::StrCat("job ", what.job, " is ", job.spec.user, "'s"));
    return;
  }
  if (job.allocs.empty()) {
    answer_status(request, E_XCE_NOENT,
                  absl::StrCat("job ", what.job, " has not run yet (it is ", name_of(job.state),
                               "): it has no output"));
    return;
  }
  const std::string& host = job.allocs.front().host;
  const std::string& file = what.stream == Stream::kStderr && !job.stderr_file.empty()
                                ? job.stderr_file
                                : job.stdout_file;
  const std::string where =
      absl::StrCat(file.empty() ? "the file that its -o option names" : file, " on host ", host);
  const ConnId worker = serving() ? hub_.worker_of(host) : 0;
  if (worker == 0) {
    answer_status(request, E_XCE_BUSY,
                  absl::StrCat("the worker of host ", host,
                               " is not connected now; try again, or read ", where));
    return;
  }
  const uint32_t wait_ms = std::min<uint32_t>(what.wait_ms, XCE_MAX_LOG_WAIT_MS);
  LogQuestion question{request.conn, request.seq, host, where,
                       clock_.monotonic_us() / 1000 + options_.log_query_ms + wait_ms};
  const uint32_t limit = what.limit == 0 || what.limit > kMaxLogBytes ? kMaxLogBytes : what.limit;
  hub_.send(worker, push::LogQuery{log_queries_.add(std::move(question)), what.job, what.stream,
                                   what.offset, limit, wait_ms});
}

void Service::worker_answered(const Request& request) {
  const auto& chunk = std::get<LogChunk>(request.what);
  const auto question = log_queries_.take(chunk.query_id, request.who->name);
  if (!question) return;  // too late, or not asked
  Answer reply = answer_to(request);
  reply.conn = question->asker;
  reply.seq = question->seq;
  reply.ask = Ask::kJobLog;
  reply.counted = true;
  reply.status = chunk.status < 0 ? -chunk.status : chunk.status;
  reply.message = chunk.message;
  reply.body = chunk;
  answer(std::move(reply));
}

}  // namespace xce::service
