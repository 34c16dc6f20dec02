#include "libxce/client/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "libxce/client/endpoint_loop.h"

namespace xce::client {

void Waiter::complete(int error, Words words) {
  std::lock_guard<std::mutex> lock(mu_);
  if (done_) return;
  done_ = true;
  error_ = error;
  words_ = std::move(words);
  cv_.notify_one();
}

bool Waiter::set_written() {
  std::lock_guard<std::mutex> lock(mu_);
  written_ = !withdrawn_;
  return written_;
}

bool Waiter::withdraw() {
  std::lock_guard<std::mutex> lock(mu_);
  withdrawn_ = !written_;
  return written_;
}

bool Waiter::wait_until(Clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(mu_);
  return cv_.wait_until(lock, deadline, [this] { return done_; });
}

bool Waiter::written() {
  std::lock_guard<std::mutex> lock(mu_);
  return written_;
}

Endpoint::Endpoint(std::vector<Address> candidates, std::shared_ptr<net::TlsCredentials> tls,
                   Callbacks callbacks)
    : loop_(std::make_unique<Loop>(std::move(candidates), std::move(tls), std::move(callbacks))) {}

Endpoint::~Endpoint() {
  loop_->shutdown();
  loop_->join();
}

int Endpoint::start(std::string hello, std::string ping) {
  return loop_->start(std::move(hello), std::move(ping));
}
void Endpoint::shutdown() { loop_->shutdown(); }
void Endpoint::join() { loop_->join(); }
bool Endpoint::on_loop_thread() const { return loop_->on_loop_thread(); }

Handshake Endpoint::handshake(const std::vector<Address>& targets, Clock::time_point deadline) {
  constexpr auto kLongest = std::chrono::milliseconds(2000);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  const auto timeout =
      std::clamp(left, std::chrono::milliseconds(1), std::chrono::milliseconds(kLongest));
  auto pending = std::make_shared<Loop::Pending>();
  Loop* loop = loop_.get();
  const bool posted = loop->post([loop, targets, timeout, pending] {
    loop->start_race(targets, static_cast<uint64_t>(timeout.count()), pending);
  });
  Handshake none;
  none.error = ECANCELED;
  if (!posted) return none;
  std::unique_lock<std::mutex> lock(pending->mu);
  // The race ends by itself at the timeout; the second is for a loop that is late.
  if (pending->cv.wait_for(lock, timeout + std::chrono::seconds(1), [&] { return pending->done; }))
    return std::move(pending->result);
  none.error = ETIMEDOUT;
  return none;
}

void Endpoint::send(uint64_t connection, uint64_t seq, std::string frame,
                    std::shared_ptr<Waiter> waiter) {
  Loop* loop = loop_.get();
  const bool posted =
      loop->post([loop, connection, seq, waiter, frame = std::move(frame)]() mutable {
        loop->send(connection, seq, std::move(frame), waiter);
      });
  if (!posted && waiter != nullptr) waiter->complete(ECANCELED, {});
}

void Endpoint::forget(uint64_t connection, uint64_t seq) {
  Loop* loop = loop_.get();
  loop->post([loop, connection, seq] { loop->forget(connection, seq); });
}

void Endpoint::close(uint64_t connection) {
  Loop* loop = loop_.get();
  loop->post([loop, connection] { loop->close(connection); });
}

void Endpoint::watch_idle() {
  Loop* loop = loop_.get();
  loop->post([loop] { loop->watch_idle(); });
}

}  // namespace xce::client
