#include "controller/service/daemon.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/service/state_codec.h"
#include "spdlog/spdlog.h"

namespace xce::service {
namespace {

constexpr uint64_t kHandOverMs = 1000;
constexpr uint64_t kDrainMs = 500;
constexpr uint64_t kPollMs = 5;
constexpr uint64_t kPublishMs = 200;

uv_loop_t* init(uv_loop_t* loop) {
  if (uv_loop_init(loop) != 0) std::abort();  // out of file descriptors at the start
  return loop;
}

consensus::Options with_tls(const DaemonOptions& options) {
  consensus::Options out = options.consensus;
  out.tls = options.tls;
  return out;
}

}  // namespace

Daemon::Daemon(DaemonOptions options)
    : options_(std::move(options)),
      history_(
          options_.history,
          [this](std::function<void()> work) { from_history_.post(std::move(work)); },
          [this](absl::Status status) { consensus_.fail(std::move(status)); },
          [this] { consensus_.resume(); }),
      consensus_(init(&loop_), with_tls(options_), this, this),
      replica_(&consensus_, &options_.consensus, &history_),
      service_(
          options_.service, Runner::clock(), &state_, &replica_,
          [this](std::vector<Outgoing> outgoing) { gateway_.post(std::move(outgoing)); },
          &history_),
      runner_(&loop_, &service_),
      gateway_(options_.limits, options_.tls,
               [this](std::vector<Inbound> inbound) { runner_.post(std::move(inbound)); }) {
  from_history_.open(&loop_, [](std::vector<std::function<void()>> works) {
    for (const auto& work : works) work();
  });
  uv_signal_init(&loop_, &term_);
  uv_signal_init(&loop_, &int_);
  uv_timer_init(&loop_, &timer_);
  uv_timer_init(&loop_, &publisher_);
  uv_async_init(&loop_, &stopper_,
                [](uv_async_t* a) { static_cast<Daemon*>(a->data)->begin_stop(); });
  term_.data = int_.data = timer_.data = publisher_.data = stopper_.data = this;
}

Daemon::~Daemon() {
  if (phase_ != Phase::kStopped) {
    end();
    uv_run(&loop_, UV_RUN_DEFAULT);
  }
  if (uv_loop_close(&loop_) != 0) spdlog::error("the consensus loop was not empty at the end");
}

absl::Status Daemon::start() {
  absl::Status status = gateway_.listen(options_.listen_host, options_.listen_port);
  if (!status.ok()) return status;
  replica_.set_own_address(options_.listen_host, gateway_.port());
  status = consensus_.start();
  if (!status.ok()) return status;
  status = serve_http();
  if (!status.ok()) return status;
  status = write_port_file();
  if (!status.ok()) return status;
  if (options_.catch_signals) {
    const auto on_signal = [](uv_signal_t* s, int number) {
      spdlog::info("{}: stopping", number == SIGTERM ? "SIGTERM" : "SIGINT");
      static_cast<Daemon*>(s->data)->begin_stop();
    };
    uv_signal_start(&term_, on_signal, SIGTERM);
    uv_signal_start(&int_, on_signal, SIGINT);
  }
  gateway_.start();
  started_ = true;
  spdlog::info("xce_controller ready on {}:{} (node {} of {}, {} TLS)", options_.listen_host,
               gateway_.port(), options_.consensus.self, consensus_.members().all.size(),
               options_.tls ? "with" : "without");
  return absl::OkStatus();
}

absl::Status Daemon::serve_http() {
  if (options_.metrics_host.empty()) return absl::OkStatus();
  const absl::Status status =
      gateway_.listen_http(options_.metrics_host, options_.metrics_port,
                           [this](const std::string& path, const GatewayCounts& counts) {
                             return answer_http(path, *board_.get(), counts, uv_hrtime() / 1000);
                           });
  if (!status.ok())
    return absl::Status(status.code(),
                        absl::StrCat("--metrics-listen: ", std::string(status.message())));
  publish();
  uv_timer_start(
      &publisher_, [](uv_timer_t* t) { static_cast<Daemon*>(t->data)->publish(); }, kPublishMs,
      kPublishMs);
  spdlog::info("metrics on http://{}:{}/metrics", options_.metrics_host, gateway_.http_port());
  return absl::OkStatus();
}

void Daemon::publish() {
  if (options_.metrics_host.empty()) return;
  Telemetry telemetry = service_.telemetry();
  telemetry.stopping = stopping_;
  telemetry.inbox = runner_.inbox();
  board_.put(std::move(telemetry));
}

absl::Status Daemon::write_port_file() const {
  if (options_.port_file.empty()) return absl::OkStatus();
  const std::string temporary = absl::StrCat(options_.port_file, ".", getpid(), ".tmp");
  std::FILE* file = std::fopen(temporary.c_str(), "we");
  bool ok = file != nullptr && std::fprintf(file, "%d\n", int{gateway_.port()}) > 0;
  if (file != nullptr) ok = std::fclose(file) == 0 && ok;
  ok = ok && std::rename(temporary.c_str(), options_.port_file.c_str()) == 0;
  return ok ? absl::OkStatus()
            : absl::UnavailableError(absl::StrCat("cannot write --port-file ", options_.port_file));
}

void Daemon::run() { uv_run(&loop_, UV_RUN_DEFAULT); }

void Daemon::stop() { uv_async_send(&stopper_); }

void Daemon::apply(uint64_t index, uint64_t, std::string_view entry) {
  service_.apply(index, entry);
  heap_.advise();
}

namespace {
struct LoadedState : consensus::StateMachine::Restored {
  std::unique_ptr<state::State> state;
};
}  // namespace

absl::Status Daemon::open(const std::string& data_dir) {
  return history_.open(data_dir + "/history");
}

bool Daemon::save(const std::function<bool(std::string_view)>& write) const {
  return save_state(state_, write);
}

absl::StatusOr<std::unique_ptr<consensus::StateMachine::Restored>> Daemon::load(
    const std::function<size_t(char*, size_t)>& read) {
  uint16_t version = 0;
  auto state = load_state(
      [&](char* to, size_t n) {
        if (std::this_thread::get_id() == thread_) heap_.advise();  // at the start
        return read(to, n);
      },
      &version);
  if (!state.ok()) return state.status();
  if (version >= kDepartedApart && (*state)->applied() > history_.written())
    return absl::OutOfRangeError(absl::StrCat(
        "the history of ended jobs in ", options_.consensus.data_dir, "/history ends at entry ",
        history_.written(), ", before the snapshot up to entry ", (*state)->applied()));
  auto loaded = std::make_unique<LoadedState>();
  loaded->state = *std::move(state);
  return loaded;
}

void Daemon::restore(uint64_t index, Restored* state) {
  state_.swap(*static_cast<LoadedState*>(state)->state);
  if (state_.applied() > index) {
    spdlog::critical("a snapshot up to entry {} holds entry {}: please report this", index,
                     state_.applied());
    std::abort();  // entries would be applied twice
  }
  service_.restored();
}

void Daemon::on_role(const consensus::RoleInfo& role) {
  service_.role_changed(role_view(role));
  if (started_) publish();
}

void Daemon::on_fatal(absl::Status status) {
  service_.failed(std::string(status.message()));
  if (started_) publish();
}

// ---- the end ------------------------------------------------------------------------------------

void Daemon::begin_stop() {
  if (phase_ != Phase::kServing) {
    spdlog::warn("asked again to stop: leaving at once");
    std::_Exit(1);
  }
  stopping_ = true;
  publish();
  if (consensus_.role().role != consensus::Role::kLeader || consensus_.members().voters() < 2) {
    drain();
    return;
  }
  phase_ = Phase::kHandingOver;
  uv_timer_start(
      &timer_, [](uv_timer_t* t) { static_cast<Daemon*>(t->data)->drain(); }, kHandOverMs, 0);
  consensus_.transfer(0, [this](absl::Status status) {
    if (!status.ok())
      spdlog::warn("the primary role could not be handed over: {}", std::string(status.message()));
    drain();
  });
}

void Daemon::drain() {
  if (phase_ >= Phase::kDraining) return;
  phase_ = Phase::kDraining;
  gateway_.post({StopAccepting{}});
  service_.end_pushes();
  drain_until_ms_ = uv_hrtime() / 1000000 + kDrainMs;
  uv_timer_start(
      &timer_, [](uv_timer_t* t) { static_cast<Daemon*>(t->data)->drained_or_not_yet(); }, kPollMs,
      kPollMs);
}

void Daemon::drained_or_not_yet() {
  if (!service_.idle() && uv_hrtime() / 1000000 < drain_until_ms_) return;
  end();
}

void Daemon::end() {
  if (phase_ == Phase::kStopped) return;
  phase_ = Phase::kStopped;
  consensus_.stop();  // answers whoever still waits
  runner_.close();    // hands the last answers to the gateway
  gateway_.stop();
  from_history_.close();
  uv_close(reinterpret_cast<uv_handle_t*>(&term_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&int_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&publisher_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&stopper_), nullptr);
  if (started_) spdlog::info("stopped");
}

}  // namespace xce::service
