// Tells the primary when waiting jobs may start, from time to time.
//
// One thread of its own. The view is locked only while it is copied; the work takes at most a
// twentieth of the time. Only what changed noticeably is sent; after a new connection or in a new
// epoch everything, since the primary that has it may be gone.
#ifndef XCE_SCHEDULER_PIPELINE_ESTIMATOR_H_
#define XCE_SCHEDULER_PIPELINE_ESTIMATOR_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "scheduler/pipeline/controller_port.h"
#include "scheduler/pipeline/decision.h"
#include "scheduler/pipeline/membership.h"
#include "scheduler/policy/estimate.h"

namespace xce::sched {

struct EstimatorOptions {
  int every_ms = 2000;         // at least, between two estimates
  int rest = 20;               // times what the last one took
  int64_t ignore_ms = 5000;    // changes up to this much are not told,
  double ignore_share = 0.05;  // nor up to this share of the time until the start
  size_t items = 20'000;       // a message
  EstimateLimits limits;
};

class Estimator {
 public:
  using Clock = std::function<int64_t()>;  // milliseconds since the epoch

  // All must outlive it.
  Estimator(ControllerPort* port, const Membership* membership, SharedView* shared,
            const EstimatorOptions& options, Clock now_ms, LogFn log);

  // Works until stop(). Call on one thread.
  void run();
  void stop();  // any thread

 private:
  bool rest(int64_t ms);  // false: stopped
  void estimate(uint64_t epoch);
  void tell(uint64_t epoch, const std::vector<StartEstimate>& starts, int64_t now_ms);

  ControllerPort* const port_;
  const Membership* const membership_;
  SharedView* const shared_;
  const EstimatorOptions options_;
  const Clock now_ms_;
  const LogFn log_;

  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  uint64_t told_epoch_ = 0, told_generation_ = 0;
  std::unordered_map<JobId, int64_t> told_;
};

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_PIPELINE_ESTIMATOR_H_
