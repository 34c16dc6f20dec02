#include "controller/consensus/data_dir.h"

#include <fcntl.h>
#include <sys/random.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "controller/consensus/core.h"
#include "libxce/base/crash_point.h"
#include "libxce/base/crc32c.h"

namespace xce::consensus {
namespace {

constexpr char kIdentityName[] = "identity";

std::string hex(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

// The format's number: 1 of a directory that began with the cluster's first entry, 2 of one that
// began empty, to join.
std::string write_identity(uint64_t node, uint64_t cluster, const InstanceId& instance,
                           bool joins) {
  std::string text =
      absl::StrCat("xce-controller ", joins ? 2 : 1, "\nnode ", node, "\ncluster ", hex(cluster),
                   "\ninstance ", hex(instance.hi), " ", hex(instance.lo), "\n");
  return absl::StrCat(text, "crc ", absl::Hex(crc32c(0, text), absl::kZeroPad8), "\n");
}

}  // namespace

uint64_t random_u64() {
  uint64_t value = 0;
  if (::getrandom(&value, sizeof value, 0) != sizeof value)
    std::abort();  // Linux has had it since 3.17
  return value;
}

uint64_t cluster_id_of(std::string_view first_entry) {
  const uint64_t low = crc32c(0, first_entry);
  return uint64_t{crc32c(crc32c(0x58434531, first_entry), first_entry)} << 32 | low;
}

absl::StatusOr<std::unique_ptr<DataDir>> DataDir::open(FileSystem* fs, const std::string& path,
                                                       uint64_t node,
                                                       const std::string& first_entry,
                                                       size_t segment_bytes,
                                                       std::function<uint64_t()> random) {
  const int rv = fs->mkdir(path, 0700);
  if (rv < 0) return file_error(rv, "create", path);
  std::unique_ptr<DataDir> dir(new DataDir(fs, path, std::move(random)));
  absl::Status status = dir->lock();
  if (!status.ok()) return status;
  const auto identity = read_file(fs, path + "/" + kIdentityName);
  if (identity.ok()) {
    status = dir->load(*identity, node, segment_bytes);
  } else if (absl::IsNotFound(identity.status())) {
    status = dir->found(node, first_entry, segment_bytes);
  } else {
    status = identity.status();
  }
  if (!status.ok()) return status;
  return dir;
}

absl::Status DataDir::found_after(FileSystem* fs, const std::string& path, uint64_t node,
                                  uint64_t cluster, uint64_t index, uint64_t term,
                                  size_t segment_bytes,
                                  const std::function<absl::Status(const std::string&)>& state) {
  const int rv = fs->mkdir(path, 0700);
  if (rv < 0) return file_error(rv, "create", path);
  std::vector<std::string> names;
  if (const int listed = fs->list(path, &names); listed < 0)
    return file_error(listed, "list", path);
  for (const std::string& name : names)
    if (name != "lost+found")
      return absl::FailedPreconditionError(
          absl::StrCat(path, " is not empty: it holds ", name,
                       ". A backup is only restored into an empty directory: give another "
                       "--data-dir, or move this one aside."));
  DataDir dir(fs, path, random_u64);
  absl::Status status = dir.lock();
  if (status.ok()) status = state(path + "/snapshots");
  if (!status.ok()) return status;
  const InstanceId instance = {random_u64(), random_u64() | 1};
  auto log = LogStore::open(fs, path + "/log", instance.lo, segment_bytes);
  if (!log.ok()) return log.status();
  std::string items;
  append_term_vote_item(term, 0, &items);
  append_reset_item(index, &items);
  status = (*log)->append(items);
  if (status.ok()) status = sync_directory(fs, path);
  if (!status.ok()) return status;
  return replace_file(fs, path, kIdentityName, write_identity(node, cluster, instance, false));
}

DataDir::~DataDir() {
  log_.reset();
  if (lock_fd_ >= 0) fs_->close(lock_fd_);
}

absl::Status DataDir::lock() {
  const std::string path = path_ + "/lock";
  lock_fd_ = fs_->open(path, O_RDWR | O_CREAT, 0600);
  if (lock_fd_ < 0) return file_error(lock_fd_, "open", path);
  const int rv = fs_->lock(lock_fd_);
  if (rv == -EWOULDBLOCK)
    return absl::FailedPreconditionError(absl::StrCat(
        path_,
        " is in use by another controller that runs on this machine. Stop that one, or give this "
        "one a data directory of its own."));
  if (rv < 0) return file_error(rv, "lock", path);
  return absl::OkStatus();
}

absl::Status DataDir::found(uint64_t node, const std::string& first_entry, size_t segment_bytes) {
  const std::string log_path = path_ + "/log";
  const auto old_salt = LogStore::existing_salt(fs_, log_path);
  if (!old_salt.ok()) return old_salt.status();
  if (*old_salt != 0) {
    // An earlier start got as far as the log's first record, at most. Anything more was
    // acknowledged to somebody.
    auto old = LogStore::open(fs_, log_path, *old_salt, segment_bytes);
    if (!old.ok()) return old.status();
    const LogContents& contents = (*old)->contents();
    if (contents.entries.size() > 1 || contents.term > 1 || contents.first_index > 1)
      return absl::DataLossError(
          absl::StrCat(path_,
                       "/identity is missing, but a log is there. Put the file back from a copy of "
                       "the directory, or move "
                       "the directory aside and bring this node back with `xce cluster replace ",
                       node, "`."));
  }
  if (*old_salt == 0) {
    std::vector<std::string> names;
    if (const int rv = fs_->list(path_, &names); rv < 0) return file_error(rv, "list", path_);
    for (const std::string& name : names) {
      if (name == "lock" || name == "log" || name == "snapshots" || name == "lost+found" ||
          name.compare(0, std::strlen(kIdentityName), kIdentityName) == 0)
        continue;  // an earlier start may have got that far
      return absl::FailedPreconditionError(
          absl::StrCat(path_, " holds ", name,
                       " and nothing of a controller's. Give a directory of its own with "
                       "--data-dir."));
    }
  }
  absl::Status status = LogStore::remove(fs_, log_path);
  if (!status.ok()) return status;
  instance_ = {random_(), random_() | 1};
  auto log = LogStore::open(fs_, log_path, instance_.lo, segment_bytes);
  if (!log.ok()) return log.status();
  std::string items;
  append_term_vote_item(1, 0, &items);
  if (!first_entry.empty()) {
    append_entries_item(1, 1, &items);
    append_entry(1, XCE_ENTRY_CHANGE, first_entry, &items);
  }
  status = (*log)->append(items);
  if (!status.ok()) return status;
  log_ = std::move(*log);
  log_->contents().term = 1;
  if (!first_entry.empty()) {
    log_->contents().first_index = 1;
    log_->contents().entries.push_back({1, XCE_ENTRY_CHANGE, first_entry});
    cluster_ = cluster_id_of(first_entry);
  }
  node_ = node;
  joins_ = first_entry.empty();
  status = sync_directory(fs_, path_);
  if (!status.ok()) return status;
  crash_point("identity.before_write");
  return replace_file(fs_, path_, kIdentityName, write_identity(node, cluster_, instance_, joins_));
}

absl::Status DataDir::join(uint64_t cluster) {
  cluster_ = cluster;
  return replace_file(fs_, path_, kIdentityName,
                      write_identity(node_, cluster_, instance_, joins_));
}

absl::Status DataDir::load(const std::string& identity, uint64_t node, size_t segment_bytes) {
  uint64_t owner = 0;
  int format = 0;
  if (std::sscanf(identity.c_str(),
                  "xce-controller %d\nnode %" SCNu64 "\ncluster %" SCNx64 "\ninstance %" SCNx64
                  " %" SCNx64,
                  &format, &owner, &cluster_, &instance_.hi, &instance_.lo) != 5 ||
      identity != write_identity(owner, cluster_, instance_, format == 2))
    return absl::DataLossError(absl::StrCat(path_,
                                            "/identity is damaged or was edited. Put it back from "
                                            "a copy, or move the directory aside and bring "
                                            "this node back with `xce cluster replace ",
                                            node, "`."));
  if (owner != node)
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " belongs to node ", owner, ", but this controller is node ", node,
                     ". Give it the right directory, or the right node id."));
  node_ = owner;
  joins_ = format == 2;
  auto log = LogStore::open(fs_, path_ + "/log", instance_.lo, segment_bytes);
  if (!log.ok()) return log.status();
  const LogContents& contents = (*log)->contents();
  if (contents.term == 0 || (contents.entries.empty() && contents.first_index == 1 && !joins_))
    return absl::DataLossError(
        absl::StrCat(path_,
                     "/log has been lost. Starting without it could undo what this node "
                     "acknowledged: put it back, or move "
                     "the directory aside and bring this node back with `xce cluster replace ",
                     node, "`."));
  if (contents.first_index == 1 && !contents.entries.empty() &&
      cluster_id_of(contents.entries.front().data) != cluster_)
    return absl::DataLossError(absl::StrCat(path_, "/log is not the log of the cluster that ",
                                            path_, "/identity names. Put the right one back."));
  log_ = std::move(*log);
  return absl::OkStatus();
}

}  // namespace xce::consensus
