#include "controller/consensus/log_writer.h"

#include <utility>

namespace xce::consensus {

LogWriter::LogWriter(std::unique_ptr<LogStore> store, size_t max_record_bytes,
                     std::function<void()> wake)
    : max_record_bytes_(max_record_bytes),
      wake_(std::move(wake)),
      store_(std::move(store)),
      thread_([this] { run(); }) {}

LogWriter::~LogWriter() { stop(); }

uint64_t LogWriter::enqueue(std::string items) {
  const std::lock_guard<std::mutex> lock(mutex_);
  backlog_ += items.size();
  queue_.push_back({++last_ticket_, std::move(items)});
  wanted_.notify_one();
  return last_ticket_;
}

LogWriter::Progress LogWriter::progress() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return progress_;
}

size_t LogWriter::backlog() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return backlog_;
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
  std::string items;
  for (;;) {
    uint64_t ticket = 0;
    items.clear();
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wanted_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      while (!queue_.empty() &&
             (items.empty() || items.size() + queue_.front().bytes.size() <= max_record_bytes_)) {
        items += queue_.front().bytes;
        ticket = queue_.front().ticket;
        queue_.pop_front();
      }
    }
    absl::Status status = store_->append(items);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      backlog_ -= items.size();
      if (status.ok()) {
        progress_.durable = ticket;
      } else {
        progress_.error = status;
      }
    }
    wake_();
    if (!status.ok()) return;
  }
}

}  // namespace xce::consensus
