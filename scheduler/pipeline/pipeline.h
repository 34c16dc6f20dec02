// The scheduler's pipeline: picker -> jbuf(1) -> allocator -> decisions(5) -> publisher.
//
//   picker     takes pushed events into the view and, when anything changed, asks for a round.
//              Wakes by events, and slowly by itself.
//   allocator  runs the policy over the view: what starts where becomes a decision of up to 256
//              jobs; reasons go when all is quiet.
//   publisher  publishes decisions in order (publisher.h). Runs on the thread that calls run().
// Beside them the estimator (estimator.h) tells when waiting jobs may start.
//
// During an outage the publisher retries one decision while at most five more wait and the
// allocator and the picker hold one each; then all stall, and go on when the cluster is back:
// nothing is dropped (A3.2).
#ifndef XCE_SCHEDULER_PIPELINE_PIPELINE_H_
#define XCE_SCHEDULER_PIPELINE_PIPELINE_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/pipeline/controller_port.h"
#include "scheduler/pipeline/decision.h"
#include "scheduler/pipeline/estimator.h"
#include "scheduler/pipeline/fifo.h"
#include "scheduler/pipeline/membership.h"
#include "scheduler/pipeline/publisher.h"
#include "scheduler/policy/reasons.h"
#include "scheduler/policy/round.h"

namespace xce::sched {

struct PipelineOptions {
  size_t jbuf_capacity = 1;
  size_t decisions_capacity = 5;
  int tick_ms = 1000;          // a round at least this often, should an event have been missed
  int reasons_every_ms = 200;  // between commands of reasons
  int takeover_ms =
      5000;  // a standby takes over when a job that could start has not been started for so long
  int64_t fair_share_half_life_ms = 0;  // 0: no fair share
  RoundLimits round;
  ReasonLimits reasons;
  PublisherOptions publisher;
  EstimatorOptions estimator;
};

class Pipeline : public PushSink {
 public:
  Pipeline(ControllerPort* port, const PipelineOptions& options, Publisher::Clock now_ms,
           LogFn log);
  ~Pipeline() override;

  // Starts the picker and the allocator, publishes on this thread until stop(), then joins the two.
  void run();
  // Any thread. The port's owner must also end a call in flight.
  void stop();
  bool ready() const { return publisher_.ready(); }
  // One line of counters.
  std::string stats() const;
  uint64_t rounds_picked() const { return rounds_picked_; }
  size_t decisions_queued() const { return decisions_.size(); }
  const PublisherStats& publisher_stats() const { return publisher_.stats(); }
  SharedView* shared_view() { return &shared_; }

  // PushSink: any thread, no blocking.
  void on_event(ViewEvent event) override;
  void on_gap() override;
  void on_scheduler(uint64_t epoch, const std::string& name) override;
  void on_reconnect() override { membership_.want_join(); }

 private:
  void pick();
  void allocate();
  void decide(Decision* starts, Decision* evictions, Decision* reasons);
  void apply(const std::vector<ViewEvent>& events);
  void replan();
  void watch_the_active_one();

  const PipelineOptions options_;
  const Publisher::Clock now_ms_;
  const LogFn log_;
  SharedView shared_;
  Membership membership_;
  Fifo<RoundRequest> jbuf_;
  Fifo<Decision> decisions_;
  Publisher publisher_;
  Estimator estimator_;

  JobId overdue_job_ = 0;  // picker's: what the active scheduler should have started
  int64_t overdue_since_ms_ = 0;
  int64_t quiet_since_ms_ = 0;   // allocator's
  int64_t last_reasons_ms_ = 0;  // allocator's

  std::mutex mutex_;  // of what follows
  std::condition_variable inbox_filled_;
  std::vector<ViewEvent> inbox_;
  bool dirty_ = false;
  bool stop_ = false;
  std::atomic<uint64_t> rounds_picked_{0};
  std::atomic<bool> reasons_due_{false};  // some were held back; look again soon
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_PIPELINE_PIPELINE_H_
