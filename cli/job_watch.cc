#include "cli/job_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "cli/terminal.h"

namespace xce::cli {

JobWatch::JobWatch(xcecli_ctx_t ctx) : ctx_(ctx), wake_fd_(::eventfd(0, EFD_CLOEXEC)) {
  xcecli_set_push_handler(
      ctx_,
      [](xcecli_ctx_t, const xce_event_t* event, void* self) {
        static_cast<JobWatch*>(self)->take(*event);
      },
      this);
  xcecli_set_disconnect_handler(
      ctx_, [](xcecli_ctx_t, void* self) { static_cast<JobWatch*>(self)->lose(); }, this);
}

JobWatch::~JobWatch() { ::close(wake_fd_); }

void JobWatch::wake() const { (void)::eventfd_write(wake_fd_, 1); }

void JobWatch::take(const xce_event_t& event) {
  if (event.kind == XCE_EVENT_GAP) lose();
  if (event.kind != XCE_EVENT_JOB && event.kind != XCE_EVENT_JOB_REMOVED) return;
  const uint64_t id = event.kind == XCE_EVENT_JOB ? event.job->id : event.id;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::find(changed_.begin(), changed_.end(), id) == changed_.end()) changed_.push_back(id);
  }
  wake();
}

void JobWatch::lose() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    lost_ = true;
  }
  wake();
}

bool JobWatch::covers(const std::vector<uint64_t>& ids) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return !lost_ && std::all_of(ids.begin(), ids.end(), [this](uint64_t id) {
    return std::binary_search(ids_.begin(), ids_.end(), id);
  });
}

int JobWatch::subscribe(std::vector<uint64_t> ids) {
  std::sort(ids.begin(), ids.end());
  {
    std::lock_guard<std::mutex> lock(mutex_);
    lost_ = false;  // from here on a loss counts
    changed_.clear();
    ids_ = std::move(ids);
  }
  const int rc = xcecli_subscribe_jobs(ctx_, ids_.data(), ids_.size());
  if (rc < 0) lose();
  return rc;
}

std::vector<uint64_t> JobWatch::wait(long long timeout_ms) {
  const long long end = steady_ms() + timeout_ms;
  while (true) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!changed_.empty()) return std::exchange(changed_, {});
      if (lost_) return {};
    }
    const long long left = timeout_ms < 0 ? -1 : end - steady_ms();
    if (interrupted() != 0 || (timeout_ms >= 0 && left <= 0)) return {};
    pollfd fds[] = {{wake_fd_, POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
    ::poll(fds, 2, static_cast<int>(std::min<long long>(left, INT_MAX)));
    eventfd_t ignored = 0;
    if ((fds[0].revents & POLLIN) != 0) (void)::eventfd_read(wake_fd_, &ignored);
  }
}

}  // namespace xce::cli
