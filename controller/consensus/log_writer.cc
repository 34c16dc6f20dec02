#include "controller/consensus/log_writer.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace xce::consensus {

LogWriter::LogWriter(std::unique_ptr<LogStore> store, size_t max_record_bytes,
                     std::function<void()> wake, std::function<void()> ask)
    : max_record_bytes_(max_record_bytes),
      wake_(std::move(wake)),
      ask_(std::move(ask)),
      store_(std::move(store)) {
  if (!ask_) thread_ = std::thread([this] { run(); });
}

LogWriter::~LogWriter() { stop(); }

uint64_t LogWriter::enqueue(std::string items, uint64_t highest_index) {
  return add({0, std::move(items), highest_index, 0});
}

uint64_t LogWriter::enqueue_compaction(std::string items, uint64_t index) {
  return add({0, std::move(items), 0, index});
}

uint64_t LogWriter::add(Item item) {
  uint64_t ticket;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    backlog_ += item.bytes.size();
    item.ticket = ticket = ++last_ticket_;
    queue_.push_back(std::move(item));
    wanted_.notify_one();
  }
  if (ask_) ask_();
  return ticket;
}

LogWriter::Progress LogWriter::progress() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return progress_;
}

size_t LogWriter::backlog() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return backlog_;
}

Histogram LogWriter::write_times() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return write_times_;
}

void LogWriter::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    wanted_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void LogWriter::run() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wanted_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
    }
    if (!write_some()) return;
  }
}

bool LogWriter::write_some() {
  std::string items;
  uint64_t ticket = 0;
  uint64_t highest_index = 0;
  uint64_t remove_through = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.empty() || !progress_.error.ok()) return false;
    while (!queue_.empty() &&
           (items.empty() || items.size() + queue_.front().bytes.size() <= max_record_bytes_)) {
      items += queue_.front().bytes;
      ticket = queue_.front().ticket;
      highest_index = std::max(highest_index, queue_.front().highest_index);
      remove_through = std::max(remove_through, queue_.front().remove_through);
      queue_.pop_front();
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  absl::Status status = store_->append(items, highest_index);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  absl::Status cleanup;
  const bool cleans = status.ok() && remove_through != 0;
  if (cleans) cleanup = store_->remove_through(remove_through);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    backlog_ -= items.size();
    write_times_.add(took.count());
    if (status.ok()) {
      progress_.durable = ticket;
      if (cleans) progress_.cleanup = cleanup;
    } else {
      progress_.error = status;
    }
  }
  wake_();
  return status.ok();
}

}  // namespace xce::consensus
