// The history's rows on disk, in a RocksDB of its own: ended jobs by id, and up to which entry of
// the log they are all there. Both are written in one batch, so that a crash leaves the rows of
// whole entries; what was lost is written again when the log is replayed.
//
// I/O, blocking. Thread safe; one thread writes.
#ifndef XCE_CONTROLLER_HISTORY_STORE_H_
#define XCE_CONTROLLER_HISTORY_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/history/archive.h"

namespace rocksdb {
class DB;
}  // namespace rocksdb

namespace xce::history {

struct Row {
  Index departed = 0;  // with this entry
  std::shared_ptr<const Job> job;
};

class Store {
 public:
  // Opens the directory, or makes it. max_jobs: rows are dropped once their id is so far below the
  // highest; 0: never. Errors name the directory and the way out.
  static absl::StatusOr<std::unique_ptr<Store>> open(const std::string& directory,
                                                     uint64_t max_jobs);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Writes the rows of whole entries, the last of them `upto`. Not yet safe from a loss of power.
  absl::Status write(const std::vector<Row>& rows, Index upto);
  // Makes safe what was written.
  absl::Status sync();
  // The rows of every entry up to this one are there (apart from dropped ones).
  Index written() const { return written_.load(); }

  // One page of what matches; visits a bounded number of rows.
  absl::StatusOr<Page> find(const Query& query) const;

  // Writes a file with the rows that departed after the entry `after`, for import_from() of another
  // node. Cancelled: `stop` was set.
  absl::Status export_to(const std::string& path, Index after, const std::atomic<bool>& stop) const;
  // Takes what export_to() wrote, all or nothing, and syncs it; the file is used up. DataLoss: it
  // is damaged.
  absl::Status import_from(const std::string& path);

 private:
  Store(std::string directory, uint64_t max_jobs);
  absl::Status failed(const char* what, const std::string& why) const;
  absl::Status load();
  absl::Status drop_oldest(JobId highest);
  absl::StatusOr<Page> find_ids(const Query& query) const;

  const std::string directory_;
  const uint64_t max_jobs_;
  std::unique_ptr<rocksdb::DB> db_;
  std::mutex write_mutex_;  // of write() and import_from(): written_ never goes back
  std::atomic<Index> written_{0};
  JobId highest_ = 0;  // id of a row; guarded by write_mutex_
  JobId dropped_ = 0;  // rows up to this id are gone; guarded by write_mutex_
};

}  // namespace xce::history

#endif  // XCE_CONTROLLER_HISTORY_STORE_H_
