// A bounded first-in first-out channel between two stages of the pipeline. Any thread. Header only.
#ifndef XCE_SCHEDULER_PIPELINE_FIFO_H_
#define XCE_SCHEDULER_PIPELINE_FIFO_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace xce::sched {

template <typename T>
class Fifo {
 public:
  explicit Fifo(size_t capacity) : capacity_(capacity) {}

  // Waits for room. False, without taking the item, once closed.
  bool put(T item) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    changed_.notify_all();
    return true;
  }

  // The oldest item; nothing when there is none for that long, after a poke, or when closed and
  // empty.
  std::optional<T> get(std::chrono::milliseconds timeout) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return closed_ || poked_ || !items_.empty(); });
    poked_ = false;
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

  // Ends the present or next get() early.
  void poke() {
    std::lock_guard<std::mutex> lock(mutex_);
    poked_ = true;
    changed_.notify_all();
  }

  // Ends every wait. What is queued can still be got.
  void close() {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  size_t size() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return items_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  const size_t capacity_;
  bool closed_ = false;
  bool poked_ = false;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_PIPELINE_FIFO_H_
