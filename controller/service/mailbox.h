// A mailbox between two event loops: many threads post, the thread of `loop` consumes in batches.
#ifndef XCE_CONTROLLER_SERVICE_MAILBOX_H_
#define XCE_CONTROLLER_SERVICE_MAILBOX_H_

#include <uv.h>

#include <cstdlib>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace xce::service {

// Made, opened and closed on the thread of `loop`; post() from any thread. Closed before it is
// destroyed, with a turn of the loop in between (libuv calls back for the closed handle).
template <typename T>
class Mailbox {
 public:
  // Values arrive in the order in which they were posted; one call takes all that are there.
  using Consumer = std::function<void(std::vector<T>)>;

  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  void open(uv_loop_t* loop, Consumer consumer) {
    consumer_ = std::move(consumer);
    async_.data = this;
    if (uv_async_init(loop, &async_, &Mailbox::on_async) != 0)
      std::abort();  // out of file descriptors at the start
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    if (!values_.empty()) uv_async_send(&async_);
  }

  // Values posted from now on are dropped when the mailbox is destroyed.
  void close() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!open_) return;
      open_ = false;
    }
    uv_close(reinterpret_cast<uv_handle_t*>(&async_), nullptr);
  }

  void post(T value) {
    std::lock_guard<std::mutex> lock(mutex_);
    values_.push_back(std::move(value));
    if (open_ && values_.size() == 1) uv_async_send(&async_);
  }

  void post_all(std::vector<T> values) {
    if (values.empty()) return;
    std::lock_guard<std::mutex> lock(mutex_);
    const bool wake = values_.empty();
    if (wake)
      values_ = std::move(values);
    else
      values_.insert(values_.end(), std::make_move_iterator(values.begin()),
                     std::make_move_iterator(values.end()));
    if (open_ && wake) uv_async_send(&async_);
  }

  // How many wait. Any thread.
  size_t size() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return values_.size();
  }

 private:
  static void on_async(uv_async_t* async) {
    auto* self = static_cast<Mailbox*>(async->data);
    std::vector<T> values;
    {
      std::lock_guard<std::mutex> lock(self->mutex_);
      values.swap(self->values_);
    }
    if (!values.empty()) self->consumer_(std::move(values));
  }

  mutable std::mutex mutex_;
  std::vector<T> values_;  // guarded by mutex_
  bool open_ = false;      // guarded by mutex_
  uv_async_t async_;
  Consumer consumer_;
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_MAILBOX_H_
