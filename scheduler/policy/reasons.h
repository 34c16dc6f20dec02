// Why each waiting job does not run, in plain words. PURE.
//
// Bounded however many jobs wait: the first thousand in line are told exactly; the others are told
// once that they are far behind. Words whose kind stays the same (numbers change) are repeated
// rarely, since each costs a replicated write.
#ifndef XCE_SCHEDULER_POLICY_REASONS_H_
#define XCE_SCHEDULER_POLICY_REASONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "libxce/model/command.h"
#include "scheduler/policy/view.h"

namespace xce::sched {

struct Reason {
  ReasonKind kind = ReasonKind::kNone;
  std::string words;
  bool unknown = false;  // of kNever: because nothing is known of the other job
};

struct ReasonLimits {
  size_t max_items = 256;      // what one command may carry
  size_t max_jobs = 1000;      // ready jobs told in detail
  int64_t repeat_ms = 10'000;  // between words of the same kind for one job
  int64_t settle_ms = 2'000;   // a job far behind is told only when it has waited this long
  bool end_hopeless = true;    // jobs whose dependencies can never be met are ended
};

// Why no job of this class can start now, or kNone when one could. `first_in_line` is the job for
// which hosts are kept (0: none).
Reason explain_class(const View& view, const ClassKey& key, JobId first_in_line);
// For the first job in line: when it starts at the latest, as "; next in line, starts by 10:32 UTC
// at the latest", or "" when jobs without a time limit are in its way.
std::string latest_start_words(const View& view, const ClassKey& key, int64_t now_ms);
// A time rounded up to a minute: "10:32 UTC", with the date when it is not within a day from now.
std::string utc_words(int64_t time_ms, int64_t now_ms);
// Why a held, blocked or refused job waits.
Reason explain_unready(const View& view, const JobRecord& job);

// Reasons that changed since they were last told, marked in the view as told. Call after run_round.
// `more` (may be null) says that max_items cut the list short.
std::vector<PendReason> collect_reasons(View* view, int64_t now_ms, const ReasonLimits& limits,
                                        bool* more);

}  // namespace xce::sched

#endif  // XCE_SCHEDULER_POLICY_REASONS_H_
