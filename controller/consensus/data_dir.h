// A controller's data directory: who may use it, whose it is, and to which cluster it belongs.
//
//   lock       held while a controller runs on the directory
//   identity   node id, cluster id, instance id; written once the log's first entry is on disk
//   log/       log_store.h
//   snapshots/ snapshot_file.h
#ifndef XCE_CONTROLLER_CONSENSUS_DATA_DIR_H_
#define XCE_CONTROLLER_CONSENSUS_DATA_DIR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/consensus/file_system.h"
#include "controller/consensus/log_format.h"
#include "controller/consensus/log_store.h"

namespace xce::consensus {

// 64 random bits from the system.
uint64_t random_u64();

// The cluster's id: a hash of the log's first entry, so that nodes with other first entries never
// meet.
uint64_t cluster_id_of(std::string_view first_entry);

class DataDir {
 public:
  // Opens the directory, making it if need be, locks it and opens its log. A new one gets a log
  // with `first_entry` (a configuration, in term 1); without one it gets an empty log, and belongs
  // to no cluster until join(). random: of the instance id. Errors say in words what is wrong and
  // what to do: the directory is another node's, is in use, is damaged, or was half lost.
  static absl::StatusOr<std::unique_ptr<DataDir>> open(
      FileSystem* fs, const std::string& path, uint64_t node, const std::string& first_entry,
      size_t segment_bytes, std::function<uint64_t()> random = random_u64);
  // Makes a directory of a cluster that begins with a state instead of a first entry: `state` puts
  // it into the directory that it is given; then the log begins after `index`. FailedPrecondition:
  // the directory is not empty.
  static absl::Status found_after(FileSystem* fs, const std::string& path, uint64_t node,
                                  uint64_t cluster, uint64_t index, uint64_t term,
                                  size_t segment_bytes,
                                  const std::function<absl::Status(const std::string&)>& state);
  ~DataDir();
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;

  uint64_t cluster() const { return cluster_; }  // 0: not known yet
  // Whether it was made to join a cluster, so that its log may rightly be empty.
  bool joins() const { return joins_; }
  // From now on it belongs to that cluster, durably.
  absl::Status join(uint64_t cluster);
  const InstanceId& instance() const { return instance_; }
  // The log, with its contents loaded; may be moved out.
  std::unique_ptr<LogStore>& log() { return log_; }

 private:
  DataDir(FileSystem* fs, std::string path, std::function<uint64_t()> random)
      : fs_(fs), path_(std::move(path)), random_(std::move(random)) {}
  absl::Status lock();
  absl::Status found(uint64_t node, const std::string& first_entry, size_t segment_bytes);
  absl::Status load(const std::string& identity, uint64_t node, size_t segment_bytes);

  FileSystem* const fs_;
  const std::string path_;
  const std::function<uint64_t()> random_;
  int lock_fd_ = -1;
  uint64_t node_ = 0;
  uint64_t cluster_ = 0;
  bool joins_ = false;
  InstanceId instance_;
  std::unique_ptr<LogStore> log_;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_DATA_DIR_H_
