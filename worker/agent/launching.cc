// Launching jobs, and what must be so for that: a host that can start something, and a lease for
// the jobs that need one. Part of supervisor.h.
//
// A launch that cannot be made now is put off. At the next join it is dropped and, if the job is
// still this host's, observed again: so nothing starts that was given to another host meanwhile.
// While the controllers know that this host can start nothing, it is given back.
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "worker/agent/clock.h"
#include "worker/agent/supervisor.h"

namespace xce::worker {

void Supervisor::renew_now(int64_t until_ms) {
  const int64_t now_ms = boot_ms();
  if (until_ms <= now_ms) return;  // the answer took too long
  Lease lease = lease_;
  lease.until_ms = until_ms;
  if (now_ms >= lease_.until_ms) {  // a new one: jobs of the last one, if any, are over
    std::random_device random;
    lease.epoch = (uint64_t{random()} << 32) | random() | 1;
  }
  if (!write_lease(options_.data_dir, lease)) {
    spdlog::error("the lease in {} cannot be written: {}; jobs that ask to be requeued will end",
                  options_.data_dir, std::strerror(errno));
    return;
  }
  lease_ = lease;
  launch_put_off();
}

// Launches what can be launched now.
void Supervisor::launch_put_off() {
  std::vector<Launch> put_off;
  put_off.swap(put_off_);
  for (const Launch& each : put_off) {
    bool wanted = false;
    {
      absl::MutexLock lock(&lifecycle_mutex_);
      const LocalJob* job = lifecycle_.find(each.key);
      wanted = job != nullptr && job->phase == Phase::kLaunching;
    }
    if (wanted) launch(each);
  }
}

void Supervisor::put_off(const Launch& launch) {
  // Given back only once nobody sends jobs here any more: it would just come back.
  if (!health_.fault().empty() && !told_fault_.empty()) {
    step(GivenBack{launch.key, wall_ms(),
                   absl::StrCat("host ", options_.host, " could not start it: ", health_.fault())});
    return;
  }
  put_off_.push_back(launch);
}

void Supervisor::look_at_health() {
  health_.look(monotonic_ms());
  const std::string& now = health_.fault();
  {
    absl::MutexLock lock(&mutex_);
    if (now == fault_) return;
    fault_ = now;
  }
  if (now.empty())
    spdlog::info("this host can start jobs again");
  else
    spdlog::error("this host can start no jobs and drains itself: {}", now);
  if (on_fault_) on_fault_();
  if (now.empty()) launch_put_off();
}

void Supervisor::host_failed(const std::string& why) {
  health_.failed(why, monotonic_ms());
  look_at_health();
}

void Supervisor::launch(const Launch& launch) {
  look_at_health();
  if (!health_.fault().empty() || (launch.job.spec.requeue && boot_ms() >= lease_.until_ms)) {
    put_off(launch);
    return;
  }
  const absl::Status status = store_.create(launch.key, launch.job, lease_.epoch);
  if (!status.ok()) {
    host_failed(std::string(status.message()));
    put_off(launch);
    return;
  }
  tracks_[launch.key] = Track{};
  outbox_->add_launch(launch.key, boot_id_);
  to_ask_.push_back(launch.key);
}

}  // namespace xce::worker
