#include "scheduler/pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "scheduler/pipeline/fake_port_testutil.h"

namespace xce::sched {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::HasSubstr;

// Runs a pipeline over a FakePort on threads of its own.
class PipelineTest : public testing::Test {
 protected:
  PipelineTest() {
    options.tick_ms = 50;
    options.reasons_every_ms = 20;
    options.publisher.idle_ms = 5;
    options.publisher.first_delay_ms = 1;
    options.publisher.max_delay_ms = 5;
    options.publisher.refused_ms = 10;
    options.publisher.standby_poll_ms = 10;
  }
  ~PipelineTest() override { stop(); }

  void start() {
    const auto clock = [] {
      return std::chrono::duration_cast<milliseconds>(
                 std::chrono::system_clock::now().time_since_epoch())
          .count();
    };
    pipeline = std::make_unique<Pipeline>(&port, options, clock,
                                          [this](LogLevel level, const std::string& line) {
                                            std::lock_guard<std::mutex> lock(log_mutex);
                                            if (level == LogLevel::kWarn) warnings.push_back(line);
                                          });
    port.sink = pipeline.get();
    thread = std::thread([this] { pipeline->run(); });
    ASSERT_TRUE(until([this] { return pipeline->ready(); }));
  }

  void stop() {
    if (!thread.joinable()) return;
    port.set_gate(true);
    pipeline->stop();
    thread.join();
  }

  template <typename Condition>
  static bool until(Condition condition, int seconds = 10) {
    const auto deadline = steady_clock::now() + std::chrono::seconds(seconds);
    while (!condition()) {
      if (steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  }

  // Waits until a number has not changed for a while, and returns it.
  template <typename Number>
  static uint64_t settled(Number number) {
    uint64_t last = number();
    auto since = steady_clock::now();
    while (steady_clock::now() - since < milliseconds(150)) {
      std::this_thread::sleep_for(milliseconds(1));
      if (number() != last) {
        last = number();
        since = steady_clock::now();
      }
    }
    return last;
  }

  bool warned(const std::string& words) {
    std::lock_guard<std::mutex> lock(log_mutex);
    for (const std::string& line : warnings) {
      if (line.find(words) != std::string::npos) return true;
    }
    return false;
  }

  FakePort port;
  PipelineOptions options;
  std::unique_ptr<Pipeline> pipeline;
  std::thread thread;
  std::mutex log_mutex;
  std::vector<std::string> warnings;
};

TEST_F(PipelineTest, StartsWhatWaitsAndWhatComes) {
  port.add_host("h1", 2);
  port.submit(1);
  start();
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  port.submit(2);
  port.submit(3);
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 2; }));
  ASSERT_TRUE(until([&] { return port.reasons().count(3) == 1; }));
  EXPECT_EQ(port.reasons()[3], "waiting for 1 free cpu: the largest free host has 0");
  port.end(1);
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 3; }));
  EXPECT_THAT(port.dispatched(), ElementsAre(1, 2, 3));
}

TEST_F(PipelineTest, ABatchIsOneCommand) {
  port.add_host("h1", 100);
  for (JobId id = 1; id <= 40; ++id) port.submit(id);
  start();
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 40; }));
  EXPECT_EQ(port.calls().size(), 1u);
}

// A7.1, A7.3, A7.4: the same decision again, nothing skipped, order kept, and the log tells it
// apart.
TEST_F(PipelineTest, NotReadyIsRetriedWithTheSameDecisionAndOrderIsKept) {
  options.round.max_dispatches = 1;
  port.add_host("h1", 100);
  for (JobId id = 1; id <= 5; ++id) port.submit(id);
  port.fail_next({-E_XCE_NOT_READY, -E_XCE_NOT_READY, -E_XCE_OUTCOME_UNKNOWN, -ETIMEDOUT});
  start();
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 5; }));
  EXPECT_THAT(port.dispatched(), ElementsAre(1, 2, 3, 4, 5));
  const auto calls = port.calls();
  ASSERT_GE(calls.size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_THAT(calls[i].jobs, ElementsAre(1));
  EXPECT_TRUE(warned("extended retry 1"));
  EXPECT_TRUE(warned("published by extended retry, at attempt 5"));
}

TEST_F(PipelineTest, AFirstAttemptThatSucceedsWarnsOfNothing) {
  port.add_host("h1", 100);
  port.submit(1);
  start();
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  stop();
  EXPECT_TRUE(warnings.empty());
}

// A7.2: five decisions are queued behind the one that fails; the stop costs none of them an
// attempt.
TEST_F(PipelineTest, StopMidRetryIsBoundedHoweverManyAreQueued) {
  options.round.max_dispatches = 1;
  options.publisher.first_delay_ms = options.publisher.max_delay_ms = 60'000;
  port.add_host("h1", 100);
  for (JobId id = 1; id <= 20; ++id) port.submit(id);
  port.set_gate(false);
  start();
  ASSERT_TRUE(
      until([&] { return port.waiting_at_gate() == 1 && pipeline->decisions_queued() == 5; }));
  port.always_fail(-E_XCE_NOT_READY);
  ASSERT_TRUE(until([&] { return port.calls().size() == 1; }));
  const auto began = steady_clock::now();
  stop();
  EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(5));
  EXPECT_EQ(port.calls().size(), 1u);
}

// A3.2, as the spec derives it: with Q decisions queued when the publisher takes one that cannot be
// published, 6 - Q more are queued behind it before the allocator stalls, with one more in its
// hand, so that 7 - Q jobs are decided on after the outage began; then everything stalls, and
// nothing of it is lost.
class Backpressure : public PipelineTest, public testing::WithParamInterface<size_t> {};

TEST_P(Backpressure, IsBoundedByWhatWasQueuedAndLosesNothing) {
  const size_t queued = GetParam();
  options.round.max_dispatches = 1;
  options.tick_ms = 2;  // even a picker that never rests is held up
  options.reasons_every_ms = 1'000'000;
  port.add_host("h1", 100);
  port.set_gate(false);
  start();
  for (JobId id = 1; id <= queued + 1; ++id) port.submit(id);  // one under way, Q behind it
  ASSERT_TRUE(
      until([&] { return port.waiting_at_gate() == 1 && pipeline->decisions_queued() == queued; }));
  port.let_pass(1);
  ASSERT_TRUE(until(
      [&] { return port.waiting_at_gate() == 1 && pipeline->decisions_queued() == queued - 1; }));
  EXPECT_EQ(port.dispatched().size(), 1u);
  // The outage: the second decision is under way and gets no answer.
  const size_t decided = queued + 1;
  for (JobId id = decided + 1; id <= 50; ++id) port.submit(id);
  ASSERT_TRUE(until([&] { return pipeline->decisions_queued() == 5; }));
  const uint64_t rounds = settled([&] { return pipeline->rounds_picked(); });
  EXPECT_EQ(settled([&] { return pipeline->rounds_picked(); }), rounds);
  {
    std::lock_guard<std::mutex> lock(pipeline->shared_view()->mutex);
    EXPECT_EQ(50u - pipeline->shared_view()->view.waiting() - decided, 7 - queued);
  }
  EXPECT_EQ(5 - (queued - 1), 6 - queued);  // that were queued
  port.always_fail(-E_XCE_NOT_READY);
  ASSERT_TRUE(until([&] { return port.calls().size() > 3; }));
  EXPECT_EQ(pipeline->decisions_queued(), 5u);
  EXPECT_EQ(pipeline->rounds_picked(), rounds);
  port.always_fail(0);
  port.set_gate(true);
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 50; }));
  const auto order = port.dispatched();
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

INSTANTIATE_TEST_SUITE_P(Queued, Backpressure, testing::Values(1, 2, 3, 4, 5));

// A7: what the scheduler believes and what the controllers were told is the same after an outage.
TEST_F(PipelineTest, AfterAnOutageItsViewIsThatOfTheControllers) {
  options.round.max_dispatches = 2;
  port.add_host("h1", 20);
  for (JobId id = 1; id <= 20; ++id) port.submit(id);
  port.refuse_next(3, E_XCE_STALE);
  std::vector<int> outage(10, -E_XCE_NOT_READY);
  outage.push_back(-E_XCE_OUTCOME_UNKNOWN);
  port.fail_next(outage);
  start();
  for (JobId id = 1; id <= 20; ++id) {
    ASSERT_TRUE(until([&] { return port.get(id).attempt > 0; })) << id;
    port.end(id);
  }
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 20; }));
  const View& view = pipeline->shared_view()->view;
  ASSERT_TRUE(until([&] {  // what the controllers pushed is taken in
    std::lock_guard<std::mutex> lock(pipeline->shared_view()->mutex);
    return view.jobs() == 0;
  }));
  std::lock_guard<std::mutex> lock(pipeline->shared_view()->mutex);
  EXPECT_EQ(view.hosts().hosts().at("h1").free.cpus, 20u);
  EXPECT_TRUE(view.hosts().hosts().at("h1").holds.empty());
}

TEST_F(PipelineTest, ARefusedStartIsRolledBackAndPlannedAnew) {
  port.add_host("h1", 1);
  port.refuse_next(1, E_XCE_BUSY);
  port.submit(1);
  start();
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  EXPECT_EQ(port.calls().size(), 2u);
  EXPECT_EQ(pipeline->publisher_stats().refused, 1u);
}

TEST_F(PipelineTest, ARefusedDecisionIsNotRepeatedInAHotLoop) {
  options.publisher.refused_ms = 10'000;
  port.add_host("h1", 1);
  port.submit(1);
  port.always_fail(-E_XCE_INVALID);
  start();
  ASSERT_TRUE(until([&] { return port.calls().size() == 1; }));
  EXPECT_LE(settled([&] { return port.calls().size(); }), 2u);
}

// A2.5: the flag is cleared by a successful join only.
TEST_F(PipelineTest, RejoinsAfterAReconnectUntilThatSucceeds) {
  start();
  ASSERT_EQ(port.joins(), 1);
  port.fail_joins(3);
  pipeline->on_reconnect();
  ASSERT_TRUE(until([&] { return port.states_taken() == 2; }));
  EXPECT_EQ(port.joins(), 5);
}

TEST_F(PipelineTest, AReconnectThatRanNoHookIsSeenByTheGeneration) {
  start();
  port.set_generation(2);
  ASSERT_TRUE(until([&] { return port.joins() == 2 && port.states_taken() == 2; }));
}

TEST_F(PipelineTest, TheHookReturnsAtOnceEvenWhileAPublishIsStuck) {
  port.add_host("h1", 1);
  port.submit(1);
  port.set_gate(false);
  start();
  ASSERT_TRUE(until([&] { return port.waiting_at_gate() == 1; }));
  const auto began = steady_clock::now();
  pipeline->on_reconnect();
  EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(1));
  EXPECT_EQ(port.joins(), 1);  // no I/O from the hook
  port.set_gate(true);
  ASSERT_TRUE(until([&] { return port.joins() == 2; }));
}

TEST_F(PipelineTest, AGapMakesItTakeTheStateAnew) {
  port.add_host("h1", 1);
  start();
  Job lost;
  lost.id = 1;
  lost.spec.queue = "default";
  port.put_silently(lost);
  pipeline->on_gap();
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  EXPECT_EQ(port.joins(), 1);
}

TEST_F(PipelineTest, AStaleEpochMeansJoinAgain) {
  port.add_host("h1", 1);
  port.submit(1);
  port.fail_next({-E_XCE_STALE});
  start();
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  EXPECT_EQ(port.joins(), 2);
}

TEST_F(PipelineTest, StandsByWhileAnotherOneIsActive) {
  port.add_host("h1", 4);
  start();
  port.active = "other";
  pipeline->on_scheduler(8, "other");
  port.submit(1);
  EXPECT_EQ(settled([&] { return port.calls().size(); }), 0u);
  port.answer = {5, 9, true};
  pipeline->on_scheduler(8, "");  // it has gone
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  EXPECT_EQ(port.calls()[0].epoch, 9u);
}

TEST_F(PipelineTest, TakesOverFromOneThatStartsNothing) {
  options.tick_ms = 5;
  options.takeover_ms = 100;
  port.add_host("h1", 4);
  start();
  port.active = "other";
  pipeline->on_scheduler(8, "other");
  port.answer = {5, 9, true};
  EXPECT_EQ(settled([&] { return port.joins(); }), 1u);  // nothing waits: nothing is wrong
  port.submit(1);
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  EXPECT_TRUE(warned("does not work, taking over"));
}

TEST_F(PipelineTest, AsksForTheFateOfDependencies) {
  port.add_host("h1", 4);
  Job old;
  old.id = 1;
  old.state = JobState::kCompleted;
  port.put_silently(old);
  start();
  port.submit(3, 1, {{DependencyKind::kAfterOk, 1}});
  port.submit(4, 1, {{DependencyKind::kAfterOk, 2}});
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  EXPECT_THAT(port.dispatched(), ElementsAre(3));
  ASSERT_TRUE(until([&] { return port.reasons().count(4) == 1; }));
  EXPECT_THAT(port.reasons()[4], HasSubstr("job 2 is not known"));
}

// Task 1 of the array ended before this scheduler came, and task 3 is still there.
TEST_F(PipelineTest, ADependencyOnAnArrayAsksForAllItsTasks) {
  port.add_host("h1", 4);
  for (const JobId array : {10, 20}) {
    for (JobId id = array; id < array + 3; ++id) {
      Job task;
      task.id = id;
      task.array_id = array;
      task.starts = 1;
      task.state = id == 21 ? JobState::kFailed : JobState::kCompleted;
      if (id == array + 2) {
        task.state = JobState::kHeld;
        port.put_silently(task);
      } else {
        port.put_history(task);
      }
    }
  }
  start();
  port.submit(30, 1, {{DependencyKind::kAfterOk, 10}});
  port.submit(40, 1, {{DependencyKind::kAfterOk, 20}});
  ASSERT_TRUE(
      until([&] { return port.reasons().count(30) == 1 && port.reasons().count(40) == 1; }));
  EXPECT_EQ(port.reasons()[30], "waits for array 10 to succeed");
  EXPECT_EQ(port.reasons()[40], "waits for array 20 to succeed");
  port.end(12);
  port.end(22);
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  EXPECT_THAT(port.dispatched(), ElementsAre(30));
  ASSERT_TRUE(until([&] {
    return port.reasons()[40] == "dependency can never be met: a task of array 20 failed";
  }));
}

TEST_F(PipelineTest, AJobWhoseDependencyFailedIsEnded) {
  port.add_host("h1", 4);
  start();
  port.submit(1);
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  port.submit(2, 1, {{DependencyKind::kAfterOk, 1}});
  port.submit(3, 1, {{DependencyKind::kAfterOk, 2}});
  port.end(1, JobState::kFailed);
  ASSERT_TRUE(until([&] { return port.get(3).state == JobState::kKilled; }));
  EXPECT_EQ(port.get(2).state, JobState::kKilled);
  EXPECT_EQ(port.reasons()[2], "dependency can never be met: job 1 failed");
  EXPECT_EQ(port.reasons()[3], "dependency can never be met: job 2 was killed");
}

TEST_F(PipelineTest, OrWaitsWhereThatIsWanted) {
  options.reasons.end_hopeless = false;
  port.add_host("h1", 4);
  start();
  port.submit(1);
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  port.submit(2, 1, {{DependencyKind::kAfterOk, 1}});
  port.end(1, JobState::kFailed);
  ASSERT_TRUE(
      until([&] { return port.reasons()[2] == "dependency can never be met: job 1 failed"; }));
  EXPECT_EQ(port.get(2).state, JobState::kPending);
}

TEST_F(PipelineTest, ALowQueueMakesRoomForAHighOne) {
  port.add_host("h1", 1);
  Queue low, high;
  low.name = "default";
  low.preemptible = true;
  high.name = "high";
  high.priority = 5;
  port.add_queue(low);
  port.add_queue(high);
  start();
  port.submit(1);
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  Job job;
  job.id = 2;
  job.spec.user = "bob";
  job.spec.queue = "high";
  port.change(job);
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 2; }));
  EXPECT_THAT(port.dispatched(), ElementsAre(1, 2));
  port.end(2);
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 3; }));
  EXPECT_EQ(port.get(1).attempt, 2u);
}

// When jobs may start is told once, and again only when it changes or the connection is new.
TEST_F(PipelineTest, TellsWhenWaitingJobsMayStart) {
  options.estimator.every_ms = 5;
  port.add_host("h1", 1);
  for (JobId id = 1; id <= 3; ++id) {
    Job job;
    job.id = id;
    job.spec.user = "ann";
    job.spec.time_limit_s = 100;
    port.put_silently(job);
  }
  start();
  ASSERT_TRUE(until([&] { return port.estimated().count(3) == 1; }));
  auto told = port.estimated();
  EXPECT_NEAR(told[3] - told[2], 100'000, 2000);
  const uint64_t messages = settled([&] { return port.estimate_messages(); });
  port.set_generation(2);
  ASSERT_TRUE(until([&] { return port.estimate_messages() > static_cast<int>(messages); }));
  Job held = port.get(3);
  held.state = JobState::kHeld;
  port.change(held);
  ASSERT_TRUE(until([&] { return port.estimated()[3] == 0; }));
}

// What ended before this scheduler came counts for fair share all the same.
TEST_F(PipelineTest, FairShareRemembersWhatAnotherSchedulerStarted) {
  options.fair_share_half_life_ms = 3'600'000;
  options.round.max_dispatches = 1;
  const int64_t now_ms =
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  Job past;
  past.id = 1;
  past.spec.user = "ann";
  past.state = JobState::kCompleted;
  past.start_ms = now_ms - 600'000;
  past.end_ms = now_ms - 1000;
  past.allocs = {{"h1", 4, 0, {}}};
  port.put_history(past);
  port.add_host("h1", 1);
  for (JobId id = 2; id <= 3; ++id) {
    Job job;
    job.id = id;
    job.spec.user = id == 2 ? "ann" : "bob";
    job.spec.queue = "default";
    port.put_silently(job);
  }
  start();
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 1; }));
  EXPECT_THAT(port.dispatched(), ElementsAre(3));
}

TEST_F(PipelineTest, TakesTheStateInPages) {
  options.publisher.page_rows = 7;
  port.add_host("h1", 200);
  for (JobId id = 1; id <= 100; ++id) port.submit(id);
  start();
  ASSERT_TRUE(until([&] { return port.dispatched().size() == 100; }));
}

}  // namespace
}  // namespace xce::sched
