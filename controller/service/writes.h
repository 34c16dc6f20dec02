// Writes on their way: collected during a turn of the loop, packed into entries, proposed, matched
// with their results. Thread: the consensus thread. No I/O of its own.
#ifndef XCE_CONTROLLER_SERVICE_WRITES_H_
#define XCE_CONTROLLER_SERVICE_WRITES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "controller/service/replica.h"
#include "controller/service/request.h"
#include "libxce/base/histogram.h"
#include "libxce/model/command.h"

namespace xce::service {

// A guess at how many bytes a command takes in the log, without encoding it; rather too many than
// too few.
size_t guess_bytes(const Op& op);

struct Waiter {     // who waits for a write
  ConnId conn = 0;  // 0: nobody (the primary's own)
  uint64_t seq = 0;
  Ask ask = Ask::kNop;
  uint64_t deadline_ms = 0;
};

class Writes {
 public:
  struct Fate {  // exactly one of: a result; refused before proposing; lost with its entry
    enum Kind : uint8_t { kResult, kTooLate, kBusy, kNotApplied, kUnknown } kind = kUnknown;
    const Result* result = nullptr;
    Index index = 0;
  };
  using Done = std::function<void(const Waiter&, const Fate&)>;
  // The results of the entry that was applied last.
  using Results = std::function<const std::vector<Result>&(Index)>;

  Writes(Replica* replica, Done done, Results results);

  void add(Command command, Waiter waiter);
  // Proposes what was added. wall_ms: the time of the entries.
  void propose(uint64_t now_ms, int64_t wall_ms);
  // Takes back what was added and not proposed: each waiter gets kNotApplied.
  void refuse_added();
  // Nothing is added or under way.
  bool idle() const { return added_.empty() && under_way_ == 0; }
  size_t under_way() const { return under_way_; }  // entries proposed and undecided
  size_t under_way_bytes() const { return under_way_bytes_; }
  const Histogram& commands_an_entry() const { return commands_; }

 private:
  struct Added {
    Command command;
    Waiter waiter;
    size_t bytes;
  };
  void propose_entry(size_t first, size_t last, int64_t wall_ms);
  void done(const std::vector<Waiter>& waiters, const Proposed& proposed);

  Replica* const replica_;
  const Done done_;
  const Results results_;
  std::vector<Added> added_;
  size_t under_way_ = 0;  // entries proposed and undecided
  size_t under_way_bytes_ = 0;
  Histogram commands_{{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4096}};
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_WRITES_H_
