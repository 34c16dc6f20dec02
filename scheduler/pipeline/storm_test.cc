// A storm of failovers, and then the question of A7: is what the scheduler believes what the
// controllers know? Seeded; the pipeline's threads make each run a little different.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "scheduler/pipeline/fake_port_testutil.h"
#include "scheduler/pipeline/pipeline.h"

namespace xce::sched {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr JobId kJobs = 300;
constexpr uint32_t kCpus = 8;

class Storm : public testing::TestWithParam<uint64_t> {
 protected:
  Storm() : random_(GetParam()) {
    options_.tick_ms = 5;
    options_.reasons_every_ms = 5;
    options_.round.max_dispatches = 3;
    options_.publisher.idle_ms = 2;
    options_.publisher.first_delay_ms = 1;
    options_.publisher.max_delay_ms = 4;
    options_.publisher.refused_ms = 2;
    options_.publisher.page_rows = 40;
    for (int i = 0; i < 4; ++i) port_.add_host(absl::StrCat("h", i), kCpus);
  }

  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void submit(JobId id) {
    Job job;
    job.id = id;
    job.spec.cpus = static_cast<uint32_t>(between(1, 4));
    job.spec.nodes = between(0, 9) == 0 ? 2 : 1;
    job.spec.user = between(0, 1) ? "ann" : "bob";
    job.spec.queue = "default";
    port_.change(job);
  }

  std::vector<JobId> placed() {
    std::vector<JobId> ids;
    for (const auto& [id, job] : port_.all_jobs())
      if (has_hosts(job.state)) ids.push_back(id);
    return ids;
  }

  // Something that happens in a storm.
  void blow() {
    const int lost = between(0, 1) ? -E_XCE_NOT_READY : -ETIMEDOUT;
    switch (between(0, 7)) {
      case 0: port_.fail_next({lost, lost}); break;
      case 1: port_.fail_after({-E_XCE_OUTCOME_UNKNOWN, lost}); break;  // done, and not told
      case 2: port_.fail_next({-E_XCE_STALE}); break;
      case 3: port_.refuse_next(static_cast<JobId>(between(1, kJobs)), E_XCE_STALE); break;
      case 4: port_.set_generation(++generation_); break;
      case 5: pipeline_->on_reconnect(); break;
      case 6: {  // an event is lost, and that it was
        const std::vector<JobId> ids = placed();
        if (ids.empty()) break;
        Job job = port_.get(ids[0]);
        job.state = JobState::kFailed;
        port_.put_silently(job);
        pipeline_->on_gap();
        break;
      }
      default:
        for (const JobId id : placed())
          if (between(0, 2) == 0) port_.end(id);
    }
  }

  // The first thing in which the two differ, in words; "" when they agree.
  std::string difference() {
    const std::map<JobId, Job> known = port_.all_jobs();
    std::lock_guard<std::mutex> lock(pipeline_->shared_view()->mutex);
    const View& view = pipeline_->shared_view()->view;
    std::map<std::string, uint32_t> free;
    for (const auto& [name, host] : view.hosts().hosts()) free[name] = kCpus;
    size_t alive = 0;
    for (const auto& [id, job] : known) {
      const JobRecord* record = view.find(id);
      if (is_ended(job.state) != (record == nullptr))
        return absl::StrCat("job ", id, is_ended(job.state) ? " has ended" : " is not in the view");
      if (record == nullptr) continue;
      ++alive;
      if (record->planned) return absl::StrCat("job ", id, " is believed to be starting");
      if (record->state != job.state || record->attempt != job.attempt)
        return absl::StrCat("job ", id, " is in another state, or of another attempt");
      for (const Alloc& alloc : job.allocs) {
        if (!has_hosts(job.state)) continue;
        free[alloc.host] -= alloc.cpus;
        const HostSlot& host = view.hosts().hosts().at(alloc.host);
        if (host.holds.count(id) == 0) return absl::StrCat("job ", id, " does not hold its host");
      }
    }
    if (alive != view.jobs()) return absl::StrCat("the view has ", view.jobs() - alive, " more");
    for (const auto& [name, host] : view.hosts().hosts())
      if (host.free.cpus != free[name])
        return absl::StrCat("host ", name, " has ", free[name], " cpus free, not ", host.free.cpus);
    return "";
  }

  size_t waiting() {
    std::lock_guard<std::mutex> lock(pipeline_->shared_view()->mutex);
    return pipeline_->shared_view()->view.waiting();
  }

  bool agree() {
    const auto deadline = steady_clock::now() + std::chrono::seconds(10);
    while (steady_clock::now() < deadline) {
      if (difference().empty()) return true;
      std::this_thread::sleep_for(milliseconds(2));
    }
    return false;
  }

  std::mt19937_64 random_;
  FakePort port_;
  PipelineOptions options_;
  std::unique_ptr<Pipeline> pipeline_;
  uint64_t generation_ = 1;
};

TEST_P(Storm, ViewAndControllersAgreeAfterwards) {
  const auto clock = [] {
    return std::chrono::duration_cast<milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  pipeline_ =
      std::make_unique<Pipeline>(&port_, options_, clock, [](LogLevel, const std::string&) {});
  port_.sink = pipeline_.get();
  std::thread thread([this] { pipeline_->run(); });
  JobId next = 1;
  for (int gust = 0; gust < 60; ++gust) {
    for (int i = 0; i < 5 && next <= kJobs; ++i) submit(next++);
    blow();
    std::this_thread::sleep_for(milliseconds(between(1, 12)));  // how long it lasts, not a wait
  }
  EXPECT_TRUE(agree()) << difference();
  const auto deadline = steady_clock::now() + std::chrono::seconds(20);
  while (steady_clock::now() < deadline) {  // calm again: all the rest runs
    const std::vector<JobId> ids = placed();
    for (const JobId id : ids) port_.end(id);
    if (ids.empty() && waiting() == 0 && difference().empty()) break;
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(agree()) << difference();
  for (const auto& [id, job] : port_.all_jobs()) {
    EXPECT_TRUE(is_ended(job.state)) << "job " << id << " was forgotten";
    EXPECT_EQ(job.attempt, 1u) << "job " << id;
  }
  pipeline_->stop();
  thread.join();
}

INSTANTIATE_TEST_SUITE_P(Seeds, Storm, testing::Range(uint64_t{1}, uint64_t{6}));

}  // namespace
}  // namespace xce::sched
