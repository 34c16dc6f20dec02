// The last stage, and the only one that calls the controllers: joins, takes the state, and
// publishes decisions in their order.
//
// One thread. A decision is published again and again until it succeeds, is refused, or the
// scheduler stops (A7.1-A7.6); the stop is checked before each attempt, so that stopping costs one
// call at most, however many decisions are queued. A refusal is rolled back in the view and planned
// anew. The check whether to rejoin comes after each publish has returned (A2.2).
#ifndef XCE_SCHEDULER_PIPELINE_PUBLISHER_H_
#define XCE_SCHEDULER_PIPELINE_PUBLISHER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "scheduler/pipeline/controller_port.h"
#include "scheduler/pipeline/decision.h"
#include "scheduler/pipeline/fifo.h"
#include "scheduler/pipeline/membership.h"

namespace xce::sched {

struct PublisherOptions {
  int idle_ms = 100;           // between liveness checks when there is nothing to publish
  int standby_poll_ms = 1000;  // how often a standby asks whether anybody is active
  int first_delay_ms = 20;     // before an extended retry; doubles
  int max_delay_ms = 1000;
  uint32_t page_rows = 1000;
  size_t past_jobs = 1000;  // that ended lately, read once at the start; 0: none
  int refused_ms = 100;     // before a refused job is tried again; doubles, up to 10 s
};

struct PublisherStats {
  std::atomic<uint64_t> joins{0}, published{0}, dispatched{0}, evicted{0}, refused{0}, reasons{0},
      retries{0}, dropped{0};
};

class Publisher {
 public:
  using Clock = std::function<int64_t()>;  // milliseconds since the epoch

  Publisher(ControllerPort* port, Membership* membership, SharedView* shared,
            Fifo<Decision>* decisions, const PublisherOptions& options, Clock now_ms,
            std::function<void()> replan, LogFn log);

  // Works until stop(). Call on one thread.
  void run();
  // Any thread. A call in flight is ended by the port's owner.
  void stop();
  // True once joined and with the state taken for the first time.
  bool ready() const { return ready_; }
  const PublisherStats& stats() const { return stats_; }

 private:
  bool stopped() const { return stop_; }
  void pause(int ms);
  // What membership asks for. False when it failed and should be tried again after a pause.
  bool settle();
  bool join();
  bool take_state();
  void take_past();
  void ask_for_dependencies();
  int ask_for_array(JobId array_id);
  void idle();
  void publish(const Decision& decision);
  int attempt(const Decision& decision, std::vector<int>* item_status);
  void succeeded(const Decision& decision, const std::vector<int>& item_status, int attempts);
  void refused(const Decision& decision, int rc);
  void drop(const Decision& decision, const char* why);
  void roll_back(const Dispatch& dispatch);
  void undo_evictions(const Decision& decision);

  ControllerPort* const port_;
  Membership* const membership_;
  SharedView* const shared_;
  Fifo<Decision>* const decisions_;
  const PublisherOptions options_;
  const Clock now_ms_;
  const std::function<void()> replan_;
  const LogFn log_;

  std::mutex mutex_;
  std::condition_variable stopping_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> ready_{false};
  bool past_taken_ = false;
  uint64_t joined_generation_ = 0;
  int settle_failures_ = 0;
  int stale_in_row_ = 0;
  int64_t next_poll_ms_ = 0;
  PublisherStats stats_;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_PIPELINE_PUBLISHER_H_
