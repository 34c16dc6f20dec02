// When waiting jobs may start, as the active scheduler last said. Not replicated: the primary keeps
// it in memory, and a new one is told anew by its scheduler's join. PURE.
#ifndef XCE_CONTROLLER_SERVICE_ESTIMATES_H_
#define XCE_CONTROLLER_SERVICE_ESTIMATES_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/container/btree_map.h"
#include "controller/service/request.h"
#include "libxce/model/event.h"

namespace xce::service {

class Estimates {
 public:
  static constexpr size_t kMax = 2'000'000;  // about 20 bytes each

  // What a scheduler of an earlier epoch said is forgotten, or ignored when it comes late.
  void take(const EstimateList& list) {
    if (list.epoch < epoch_) return;
    if (list.epoch > epoch_) clear();
    epoch_ = list.epoch;
    for (const Estimate& item : list.items) {
      if (item.start_ms == 0)
        starts_.erase(item.job);
      else if (starts_.size() < kMax || starts_.count(item.job) > 0)
        starts_[item.job] = item.start_ms;
    }
  }
  // Jobs that do not wait any more have none.
  void forget(const std::vector<Event>& events) {
    if (starts_.empty()) return;
    for (const Event& event : events) {
      if (const auto* job = std::get_if<Job>(&event); job && job->state != JobState::kPending)
        starts_.erase(job->id);
      if (const auto* gone = std::get_if<JobRemoved>(&event)) starts_.erase(gone->id);
    }
  }
  void clear() { starts_.clear(); }
  int64_t of(JobId id) const {
    const auto it = starts_.find(id);
    return it == starts_.end() ? 0 : it->second;
  }

 private:
  absl::btree_map<JobId, int64_t> starts_;
  uint64_t epoch_ = 0;
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_ESTIMATES_H_
