#include "controller/consensus/uv_surroundings.h"

#include <utility>

#include "controller/consensus/data_dir.h"
#include "controller/consensus/peer_net.h"
#include "controller/consensus/uv_handle.h"

namespace xce::consensus {
namespace {

// A libuv handle and what it calls. It lives until libuv is through with it, so that a callback may
// destroy its owner.
template <class Handle>
struct Calling : Handle {
  std::function<void()> call;
};

template <class Handle>
Calling<Handle>* make_calling(std::function<void()> call) {
  auto* const handle = new Calling<Handle>;
  handle->call = std::move(call);
  handle->data = handle;
  return handle;
}

template <class Handle>
void run(Handle* handle) {
  if (handle->data != nullptr) static_cast<Calling<Handle>*>(handle)->call();
}

class UvTimer final : public Surroundings::Timer {
 public:
  UvTimer(uv_loop_t* loop, std::function<void()> fire)
      : loop_(loop), timer_(make_calling<uv_timer_t>(std::move(fire))) {
    uv_timer_init(loop, timer_);
  }
  ~UvTimer() override { close_handle(timer_); }
  void start(uint64_t delay_ms) override {
    uv_update_time(loop_);
    uv_timer_start(timer_, run<uv_timer_t>, delay_ms, 0);
  }
  void stop() override { uv_timer_stop(timer_); }

 private:
  uv_loop_t* const loop_;
  Calling<uv_timer_t>* timer_;
};

class UvTurns final : public Surroundings::Turns {
 public:
  // Proposals made in timers and the like must not wait for the poll: flush before it and after it.
  UvTurns(uv_loop_t* loop, const std::function<void()>& flush, std::function<void()> more)
      : prepare_(make_calling<uv_prepare_t>(flush)),
        check_(make_calling<uv_check_t>(flush)),
        idle_(make_calling<uv_idle_t>(std::move(more))) {
    uv_prepare_init(loop, prepare_);
    uv_prepare_start(prepare_, run<uv_prepare_t>);
    uv_check_init(loop, check_);
    uv_check_start(check_, run<uv_check_t>);
    uv_idle_init(loop, idle_);
  }
  ~UvTurns() override {
    close_handle(prepare_);
    close_handle(check_);
    close_handle(idle_);
  }
  void set_busy(bool busy) override {
    if (busy)
      uv_idle_start(idle_, run<uv_idle_t>);
    else
      uv_idle_stop(idle_);
  }

 private:
  Calling<uv_prepare_t>* prepare_;
  Calling<uv_check_t>* check_;
  Calling<uv_idle_t>* idle_;
};

class UvWaker final : public Surroundings::Waker {
 public:
  UvWaker(uv_loop_t* loop, std::function<void()> call)
      : async_(make_calling<uv_async_t>(std::move(call))) {
    uv_async_init(loop, async_, run<uv_async_t>);
  }
  ~UvWaker() override { close_handle(async_); }
  void wake() override { uv_async_send(async_); }

 private:
  Calling<uv_async_t>* async_;
};

class UvSurroundings final : public Surroundings {
 public:
  explicit UvSurroundings(uv_loop_t* loop) : loop_(loop) {}

  uint64_t now_ns() const override { return uv_hrtime(); }
  uint64_t random() override { return random_u64(); }
  std::unique_ptr<Timer> timer(std::function<void()> fire) override {
    return std::make_unique<UvTimer>(loop_, std::move(fire));
  }
  std::unique_ptr<Turns> turns(std::function<void()> flush, std::function<void()> more) override {
    return std::make_unique<UvTurns>(loop_, flush, std::move(more));
  }
  std::unique_ptr<Waker> waker(std::function<void()> run) override {
    return std::make_unique<UvWaker>(loop_, std::move(run));
  }
  void in_background(std::function<void()> work) override {
    consensus::in_background(loop_, std::move(work));
  }
  std::unique_ptr<Transport> transport(Transport::Events* events, unsigned user_timeout_ms,
                                       uint64_t seed,
                                       std::shared_ptr<net::TlsCredentials> tls) override {
    return std::make_unique<PeerNet>(loop_, events, user_timeout_ms, seed, std::move(tls));
  }
  std::unique_ptr<LogWriter> log_writer(std::unique_ptr<LogStore> store, size_t max_record_bytes,
                                        std::function<void()> wake) override {
    return std::make_unique<LogWriter>(std::move(store), max_record_bytes, std::move(wake));
  }
  std::unique_ptr<SnapshotTaker> snapshot_taker(std::string directory,
                                                std::function<int(SnapshotStep)> hook) override {
    return std::make_unique<ForkingSnapshotTaker>(std::move(directory), std::move(hook));
  }
  std::unique_ptr<SnapshotInstaller> snapshot_installer(SnapshotInstaller::Environment environment,
                                                        SnapshotInstaller::Source source) override {
    return std::make_unique<SnapshotInstaller>(std::move(environment), source);
  }

 private:
  uv_loop_t* const loop_;
};

}  // namespace

std::unique_ptr<Surroundings> uv_surroundings(uv_loop_t* loop) {
  return std::make_unique<UvSurroundings>(loop);
}

}  // namespace xce::consensus
