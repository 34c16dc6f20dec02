#include "cli/session.h"

#include <xce/cluster.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/labels.h"
#include "cli/terminal.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

constexpr int kNoticeAfterMs = 1000;
constexpr size_t kIdsPerPage = 500;
constexpr long long kLookAnywayMs = 60000;  // while waiting for a change

bool worth_waiting(int rc) {
  return xce_is_retriable(rc) || code_of(rc) == absl::StatusCode::kUnavailable;
}

const char* next_step(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return "see 'xce cluster status', or name the controllers with --masters";
    case absl::StatusCode::kUnknown: return "look with 'xce jobs' before you do it again";
    case absl::StatusCode::kUnauthenticated: return "the cluster does not know who you are";
    case absl::StatusCode::kResourceExhausted: return "try again later";
    default: return "";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::open(const Connection& connection) {
  std::unique_ptr<Session> session(new Session(connection));
  const absl::Status status = session->start();
  if (!status.ok()) return status;
  return session;
}

absl::Status Session::start() {
  xce_cluster_config_t cluster{};
  char why[512] = "";
  if (xce_parse_peers(connection_.masters.text.c_str(), &cluster, why, sizeof(why)) != 0 ||
      xce_cluster_config_validate(&cluster, why, sizeof(why)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("masters from ", connection_.masters.origin,
                                                   ": ", why, "; write host:port,host:port"));
  }
  xce_client_config_t config{};
  xce_client_config_init(&config);
  xce_cluster_config_to_client_config(&cluster, &config);
  config.role = HostRole_user;
  config.call_deadline_ms = connection_.deadline_ms;
  if (xce_client_config_set_tls(&config, connection_.tls.ca.c_str(), connection_.tls.cert.c_str(),
                                connection_.tls.key.c_str()) < 0)
    return absl::InvalidArgumentError("a path of the TLS files is too long");
  const int made = xcecli_ctx_init(&ctx_, &config);
  if (made < 0) return error("cannot set up the connection", made);
  watcher_ = std::thread([this] { watch(); });
  const int rc = watched([](xcecli_ctx_t ctx) { return xcecli_start(ctx); });
  if (rc < 0) {
    return error(absl::StrCat("no primary at ", connection_.masters.text, " (from ",
                              connection_.masters.origin, ")"),
                 rc);
  }
  return absl::OkStatus();
}

Session::~Session() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (watcher_.joinable()) watcher_.join();
  if (ctx_ != nullptr) {
    xcecli_stop(ctx_);
    xcecli_ctx_free(ctx_);
  }
}

void Session::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    if (call_since_ == 0 || noticed_) {
      changed_.wait(lock);
      continue;
    }
    const long long left = call_since_ + kNoticeAfterMs - steady_ms();
    if (left > 0) {
      changed_.wait_for(lock, std::chrono::milliseconds(left));
      continue;
    }
    noticed_ = true;
    if (connection_.notice) complain("no primary yet, still trying (Ctrl-C to stop)");
  }
}

int Session::watched(const std::function<int(xcecli_ctx_t)>& op) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    call_since_ = steady_ms();
  }
  changed_.notify_all();
  const int rc = op(ctx_);
  std::lock_guard<std::mutex> lock(mutex_);
  call_since_ = 0;
  if (rc >= 0) noticed_ = false;
  return rc;
}

absl::Status Session::error(const std::string& what, int rc) const {
  xce_error_t last{};
  xcecli_last_error(&last);
  const absl::StatusCode code = code_of(rc);
  std::string text = what;
  const std::string detail =
      last.status == rc && last.message[0] != '\0' ? last.message : xce_strerror(rc);
  absl::StrAppend(&text, ": ", printable(detail));
  const std::string step = next_step(code);
  if (!step.empty()) absl::StrAppend(&text, "; ", step);
  if (connection_.verbose && last.trail[0] != '\0')
    absl::StrAppend(&text, " [attempts: ", printable(last.trail), "]");
  return absl::Status(code, text);
}

absl::StatusOr<int> Session::call(const std::string& what,
                                  const std::function<int(xcecli_ctx_t)>& op) {
  const int rc = watched(op);
  if (rc < 0) return error(what, rc);
  return rc;
}

absl::StatusOr<int> Session::follow(const std::string& what, long long until_steady_ms,
                                    const std::function<int(xcecli_ctx_t)>& op) {
  while (true) {
    if (until_steady_ms != 0) {
      const long long left = until_steady_ms - steady_ms();
      if (left <= 0)
        return absl::DeadlineExceededError(absl::StrCat(what, ": the timeout has passed"));
      xcecli_set_deadline(ctx_,
                          static_cast<int>(std::min<long long>(left, connection_.deadline_ms)));
    }
    const int rc = watched(op);
    if (until_steady_ms != 0) xcecli_set_deadline(ctx_, 0);
    if (rc >= 0) return rc;
    if (!worth_waiting(rc)) return error(what, rc);
    const bool out_of_time = until_steady_ms != 0 && steady_ms() >= until_steady_ms;
    if (!out_of_time && connection_.deadline_given) return error(what, rc);
    if (interrupted() != 0) return absl::CancelledError("interrupted");
    if (!out_of_time) sleep_ms(100);
  }
}

absl::StatusOr<Page> Session::follow_page(const std::string& what, const xce_job_filter_t& filter,
                                          long long until_steady_ms) {
  xce_job_page_t* page = nullptr;
  const auto rc = follow(what, until_steady_ms,
                         [&](xcecli_ctx_t ctx) { return xcecli_joblist(ctx, &filter, &page); });
  if (!rc.ok()) return rc.status();
  return Page(page);
}

absl::StatusOr<Page> Session::job_page(const xce_job_filter_t& filter) {
  xce_job_page_t* page = nullptr;
  const auto rc = call("cannot list jobs",
                       [&](xcecli_ctx_t ctx) { return xcecli_joblist(ctx, &filter, &page); });
  if (!rc.ok()) return rc.status();
  return Page(page);
}

absl::Status Session::all_jobs(xce_job_filter_t filter,
                               const std::function<bool(const xce_job_t&)>& each) {
  return pages(filter, false, each);
}

absl::Status Session::ended_jobs(xce_job_filter_t filter,
                                 const std::function<bool(const xce_job_t&)>& each) {
  return pages(filter, true, each);
}

absl::Status Session::pages(xce_job_filter_t filter, bool ended,
                            const std::function<bool(const xce_job_t&)>& each) {
  while (true) {
    xce_job_page_t* raw = nullptr;
    const auto rc = call("cannot list jobs", [&](xcecli_ctx_t ctx) {
      return ended ? xcecli_jobhist(ctx, &filter, &raw) : xcecli_joblist(ctx, &filter, &raw);
    });
    if (!rc.ok()) return rc.status();
    const Page page(raw);
    for (size_t i = 0; i < page->njobs; ++i) {
      if (!each(page->jobs[i])) return absl::OkStatus();
    }
    if (page->next_after_id == 0) return absl::OkStatus();
    filter.after_id = page->next_after_id;
  }
}

absl::StatusOr<bool> Session::watch_jobs(const std::string& what, const std::vector<uint64_t>& ids,
                                         long long until_steady_ms) {
  if (watch_ == nullptr) watch_ = std::make_unique<JobWatch>(ctx_);
  if (watch_->covers(ids)) return false;
  const auto rc =
      follow(what, until_steady_ms, [&](xcecli_ctx_t) { return watch_->subscribe(ids); });
  if (!rc.ok()) return rc.status();
  return true;
}

std::vector<uint64_t> Session::wait_for_change(long long until_steady_ms) {
  const long long left = until_steady_ms - steady_ms();
  return watch_->wait(until_steady_ms == 0 ? kLookAnywayMs
                                           : std::clamp<long long>(left, 0, kLookAnywayMs));
}

absl::StatusOr<int64_t> Session::now_ms() {
  if (!clock_known_) {
    xce_hello_t hello{};
    const auto rc = call("cannot ask for the time",
                         [&](xcecli_ctx_t ctx) { return xcecli_hello(ctx, &hello); });
    if (!rc.ok()) return rc.status();
    clock_offset_ms_ = hello.server_ms - steady_ms();
    clock_known_ = true;
  }
  return clock_offset_ms_ + steady_ms();
}

namespace {

// Tasks of array `id` with these indices, by index.
absl::Status find_tasks(Session& session, uint64_t id, const std::vector<uint32_t>& indices,
                        std::map<uint32_t, Resolved>* found) {
  const auto take = [&](const xce_job_t& job) {
    if (job.array_id == id && std::binary_search(indices.begin(), indices.end(), job.array_index)) {
      (*found)[job.array_index] = {id_of(job), job.id, false, job.state};
    }
    return found->size() < indices.size();
  };
  // Tasks have consecutive ids: with indices that begin at 0 or 1 without gaps, a task's id can be
  // told from its index.
  std::vector<uint64_t> guess;
  for (uint32_t index : indices) {
    guess.push_back(id + index);
    if (index > 0) guess.push_back(id + index - 1);
  }
  xce_job_filter_t filter{};
  if (guess.size() <= kIdsPerPage) {
    std::sort(guess.begin(), guess.end());
    guess.erase(std::unique(guess.begin(), guess.end()), guess.end());
    filter.ids = guess.data();
    filter.nids = guess.size();
    const absl::Status status = session.all_jobs(filter, take);
    if (!status.ok() || found->size() == indices.size()) return status;
  }
  filter = {};
  filter.array_id = id;
  return session.all_jobs(filter, take);
}

}  // namespace

absl::StatusOr<std::vector<Resolved>> resolve(Session& session, const std::vector<JobRef>& refs,
                                              std::vector<std::string>* missing) {
  std::vector<uint64_t> ids;
  for (const JobRef& ref : refs) {
    if (!ref.indices.has_value()) ids.push_back(ref.id);
  }
  std::map<uint64_t, Resolved> known;
  for (size_t at = 0; at < ids.size(); at += kIdsPerPage) {
    xce_job_filter_t filter{};
    filter.ids = ids.data() + at;
    filter.nids = std::min(kIdsPerPage, ids.size() - at);
    const absl::Status status = session.all_jobs(filter, [&](const xce_job_t& job) {
      const bool array = job.array_id == job.id;
      known[job.id] = {array ? absl::StrCat(job.id) : id_of(job), job.id, array, job.state};
      return true;
    });
    if (!status.ok()) return status;
  }
  std::vector<Resolved> out;
  for (const JobRef& ref : refs) {
    if (!ref.indices.has_value()) {
      if (known.count(ref.id) == 0) {  // perhaps an array whose first task is no longer remembered
        xce_job_filter_t filter{};
        filter.array_id = ref.id;
        filter.limit = 1;
        const auto page = session.job_page(filter);
        if (!page.ok()) return page.status();
        if ((*page)->njobs > 0)
          known[ref.id] = {absl::StrCat(ref.id), ref.id, true, XCE_JOB_PENDING};
      }
      const auto it = known.find(ref.id);
      if (it == known.end()) {
        missing->push_back(absl::StrCat(ref.id));
      } else {
        out.push_back(it->second);
      }
      continue;
    }
    std::map<uint32_t, Resolved> tasks;
    const absl::Status status = find_tasks(session, ref.id, *ref.indices, &tasks);
    if (!status.ok()) return status;
    for (uint32_t index : *ref.indices) {
      const auto it = tasks.find(index);
      if (it == tasks.end()) {
        missing->push_back(format_job_id(ref.id, ref.id, index));
      } else {
        out.push_back(it->second);
      }
    }
  }
  return out;
}

absl::StatusOr<std::vector<uint64_t>> all_ids(Session& session, const std::vector<JobRef>& refs,
                                              std::vector<std::string>* missing) {
  std::vector<uint64_t> ids;
  const auto resolved = resolve(session, refs, missing);
  if (!resolved.ok()) return resolved.status();
  for (const Resolved& one : *resolved) {
    ids.push_back(one.id);
    if (!one.array) continue;
    xce_job_filter_t filter{};
    filter.array_id = one.id;
    const absl::Status status = session.all_jobs(filter, [&](const xce_job_t& job) {
      if (job.id != one.id) ids.push_back(job.id);
      return true;
    });
    if (!status.ok()) return status;
  }
  return ids;
}

absl::StatusOr<Resolved> resolve_one(Session& session, const JobRef& ref) {
  std::vector<std::string> missing;
  const auto found = resolve(session, {ref}, &missing);
  if (!found.ok()) return found.status();
  if (!missing.empty())
    return absl::NotFoundError(
        absl::StrCat("there is no job ", missing[0], "; see 'xce jobs --all'"));
  if (found->size() > 1) return absl::InvalidArgumentError("name one job, as in 17[3]");
  const Resolved& one = (*found)[0];
  if (one.array) {
    return absl::InvalidArgumentError(
        absl::StrCat(one.text, " is an array; name one of its tasks, as in ", one.text, "[0]"));
  }
  return one;
}

}  // namespace xce::cli
