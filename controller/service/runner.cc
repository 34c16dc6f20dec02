#include "controller/service/runner.h"

#include <chrono>
#include <utility>

namespace xce::service {
namespace {

constexpr uint64_t kTickMs = 200;

}  // namespace

Service::Clock Runner::clock() {
  Service::Clock clock;
  clock.monotonic_us = [] { return uv_hrtime() / 1000; };
  clock.wall_ms = [] {
    using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::system_clock;
    return static_cast<int64_t>(
        duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
  };
  return clock;
}

Runner::Runner(uv_loop_t* loop, Service* service) : service_(service) {
  mailbox_.open(loop, [this](std::vector<Inbound> inbound) { service_->take(std::move(inbound)); });
  uv_prepare_init(loop, &before_wait_);
  uv_idle_init(loop, &more_);
  uv_timer_init(loop, &ticker_);
  before_wait_.data = more_.data = ticker_.data = this;
  uv_prepare_start(&before_wait_, [](uv_prepare_t* p) { static_cast<Runner*>(p->data)->turn(); });
  uv_timer_start(
      &ticker_, [](uv_timer_t* t) { static_cast<Runner*>(t->data)->service_->tick(); }, kTickMs,
      kTickMs);
}

void Runner::turn() {
  if (service_->turn())
    uv_idle_start(&more_, [](uv_idle_t*) {});
  else
    uv_idle_stop(&more_);
}

void Runner::close() {
  if (std::exchange(closed_, true)) return;
  service_->turn();
  mailbox_.close();
  uv_close(reinterpret_cast<uv_handle_t*>(&before_wait_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&more_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&ticker_), nullptr);
}

}  // namespace xce::service
