#include "controller/history/history.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/history/record.h"
#include "libxce/base/crash_point.h"

namespace xce::history {
namespace {

// Adds to a page in id order what is not in it: rows that are not yet in the store.
void merge(std::vector<Job> unwritten, const Query& query, Page* page) {
  if (unwritten.empty()) return;
  const bool down = query.filter.descending;
  const auto before = [down](const Job& a, const Job& b) {
    return down ? a.id > b.id : a.id < b.id;
  };
  std::vector<Job> jobs = std::move(page->jobs);
  for (Job& job : unwritten) {
    const bool beyond = page->next_after_id != 0 &&
                        (down ? job.id < page->next_after_id : job.id > page->next_after_id);
    if (!beyond) jobs.push_back(std::move(job));
  }
  std::stable_sort(jobs.begin(), jobs.end(), before);
  const auto same = [](const Job& a, const Job& b) { return a.id == b.id; };
  jobs.erase(std::unique(jobs.begin(), jobs.end(), same), jobs.end());
  if (jobs.size() > query.max_jobs) {
    jobs.resize(query.max_jobs);
    page->next_after_id = jobs.back().id;
  }
  page->jobs = std::move(jobs);
}

bool asked_for(const Job& job, const JobFilter& filter) {
  if (filter.after_id != 0 &&
      (filter.descending ? job.id >= filter.after_id : job.id <= filter.after_id))
    return false;
  if (!filter.ids.empty() &&
      std::find(filter.ids.begin(), filter.ids.end(), job.id) == filter.ids.end())
    return false;
  return matches(job, filter);
}

}  // namespace

History::History(Options options, std::function<void(std::function<void()>)> post,
                 std::function<void(absl::Status)> failed, std::function<void()> drained)
    : options_(std::move(options)),
      post_(std::move(post)),
      failed_(std::move(failed)),
      drained_(std::move(drained)) {}

History::~History() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    to_write_.notify_all();
    to_read_.notify_all();
  }
  for (std::thread* thread : {&writer_, &reader_, &packer_})
    if (thread->joinable()) thread->join();
}

absl::Status History::open(const std::string& directory) {
  directory_ = directory;
  auto store = Store::open(directory, options_.max_jobs);
  if (!store.ok()) return store.status();
  store_ = *std::move(store);
  kept_ = store_->written();  // what survived is on the disk
  writer_ = std::thread([this] { write_loop(); });
  reader_ = std::thread([this] { read_loop(); });
  return absl::OkStatus();
}

void History::fail(const absl::Status& status) {
  if (broken_.exchange(true)) return;
  post_([this, status] { failed_(status); });
}

// ---- writing ------------------------------------------------------------------------------------

void History::add(Index index, std::vector<Job> jobs) {
  if (jobs.empty() || broken_ || index <= store_->written()) return;
  Added added;
  added.index = index;
  added.rows.reserve(jobs.size());
  for (Job& job : jobs) {
    added.bytes += bytes_of(job);
    added.rows.push_back({index, std::make_shared<const Job>(std::move(job))});
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Row& row : added.rows) unwritten_[row.job->id] = row.job;
  backlog_ += added.bytes;
  if (backlog_ > options_.backlog_bytes) full_ = true;
  queue_.push_back(std::move(added));
  to_write_.notify_one();
}

void History::keep(Index index) {
  Added wish;
  wish.index = index;
  wish.sync = true;
  const std::lock_guard<std::mutex> lock(mutex_);
  queue_.push_back(std::move(wish));
  to_write_.notify_one();
}

void History::write_loop() {
  for (;;) {
    std::deque<Added> added;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      to_write_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      added.swap(queue_);
    }
    if (broken_) continue;
    size_t bytes = 0;
    std::vector<std::shared_ptr<const Job>> jobs;
    for (const Added& each : added) {
      bytes += each.bytes;
      for (const Row& row : each.rows) jobs.push_back(row.job);
    }
    const absl::Status status = write(std::move(added));
    if (!status.ok()) {
      fail(status);
      continue;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& job : jobs) {
      const auto it = unwritten_.find(job->id);
      if (it != unwritten_.end() && it->second == job) unwritten_.erase(it);
    }
    backlog_ -= bytes;
    if (full_ && backlog_ <= options_.backlog_bytes / 2) {
      full_ = false;
      post_([this] { drained_(); });
    }
  }
}

absl::Status History::write(std::deque<Added> added) {
  if (options_.before_write) options_.before_write();
  std::vector<Row> rows;
  Index safe = 0;
  for (Added& each : added) {
    for (Row& row : each.rows) rows.push_back(std::move(row));
    if (each.sync) safe = std::max(safe, each.index);
  }
  if (!rows.empty()) crash_point("history.before_write");
  absl::Status status = store_->write(rows, added.back().index);
  if (!rows.empty()) crash_point("history.after_write");
  if (!status.ok() || safe == 0) return status;
  if (options_.before_sync) options_.before_sync();
  crash_point("history.before_sync");
  status = store_->sync();
  if (status.ok()) kept_ = std::max(kept_.load(), safe);
  return status;
}

// ---- reading ------------------------------------------------------------------------------------

void History::find(Query query, std::function<void(absl::StatusOr<Page>)> done) {
  const std::lock_guard<std::mutex> lock(mutex_);
  questions_.push_back({std::move(query), std::move(done)});
  to_read_.notify_one();
}

void History::read_loop() {
  for (;;) {
    Question question;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      to_read_.wait(lock, [this] { return stopping_ || !questions_.empty(); });
      if (stopping_) return;
      question = std::move(questions_.front());
      questions_.pop_front();
    }
    auto page = std::make_shared<absl::StatusOr<Page>>(answer(question.query));
    if (!page->ok()) fail(page->status());
    post_([done = std::move(question.done), page] { done(std::move(*page)); });
  }
}

absl::StatusOr<Page> History::answer(const Query& query) {
  // First what is not in the store, then the store: what moves in between is in both.
  std::vector<Job> unwritten;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [id, job] : unwritten_)
      if (asked_for(*job, query.filter)) unwritten.push_back(*job);
  }
  auto page = store_->find(query);
  if (page.ok()) merge(std::move(unwritten), query, &*page);
  return page;
}

// ---- for other nodes ----------------------------------------------------------------------------

void History::pack(Index after, std::function<void(absl::StatusOr<std::string>)> done) {
  if (packing_.exchange(true)) {
    post_([done = std::move(done)] {
      done(absl::UnavailableError("the history is being packed for another node"));
    });
    return;
  }
  if (packer_.joinable()) packer_.join();  // it has ended
  const std::string path = absl::StrCat(directory_, ".", ++packs_, ".tmp");
  packer_ = std::thread([this, after, path, done = std::move(done)] {
    const absl::Status status = store_->export_to(path, after, stopping_);
    packing_ = false;
    post_([done, path, status] {
      if (status.ok())
        done(path);
      else
        done(status);
    });
  });
}

absl::Status History::unpack(const std::string& path) {
  crash_point("history.before_import");
  const absl::Status status = store_->import_from(path);
  crash_point("history.after_import");
  if (status.ok()) kept_ = std::max(kept_.load(), store_->written());
  return status;
}

}  // namespace xce::history
