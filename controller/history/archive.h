// What the service asks of the history: the seam between the two. history.h implements it; tests
// with a map. Thread: the consensus thread, which none of the calls may block.
#ifndef XCE_CONTROLLER_HISTORY_ARCHIVE_H_
#define XCE_CONTROLLER_HISTORY_ARCHIVE_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "libxce/model/command.h"

namespace xce::history {

struct Query {
  JobFilter filter;            // as for jobList; limit counts for nothing here
  size_t max_jobs = 1000;      // a page
  size_t max_bytes = 3 << 20;  // a page, about; one job at least
  JobId stop_at = 0;           // beyond this id the answer is of no use; 0: it always is
};

struct Page {
  std::vector<Job> jobs;  // in the filter's order
  JobId next_after_id =
      0;  // nothing is known of the ids behind this one; 0: that was the last page
};

// How many bytes a job takes in a page or in memory, about. Pages of the state count as those of
// the history do: an answer may hold rows of both.
size_t bytes_of(const Job& job);

class Archive {
 public:
  virtual ~Archive() = default;
  // Keeps the jobs that departed with the entry at `index`; indexes rise. An index that was added
  // before (a log that is replayed) changes nothing.
  virtual void add(Index index, std::vector<Job> jobs) = 0;
  // Calls `done` in a later turn of the loop with the kept jobs that match, everything included
  // that was added before this call. Errors: the disk.
  virtual void find(Query query, std::function<void(absl::StatusOr<Page>)> done) = 0;
};

}  // namespace xce::history

#endif  // XCE_CONTROLLER_HISTORY_ARCHIVE_H_
