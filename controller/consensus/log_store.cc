#include "controller/consensus/log_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libxce/base/crash_point.h"

namespace xce::consensus {
namespace {

constexpr char kMarkName[] = "mark";

std::string segment_name(uint64_t number) {
  char name[48];
  std::snprintf(name, sizeof name, "segment-%012" PRIu64 ".log", number);
  return name;
}

// Numbers of the segments in a directory, ascending.
absl::StatusOr<std::vector<uint64_t>> list_segments(FileSystem* fs, const std::string& directory) {
  std::vector<std::string> names;
  const int rv = fs->list(directory, &names);
  if (rv < 0) return file_error(rv, "list", directory);
  std::vector<uint64_t> numbers;
  for (const std::string& name : names) {
    uint64_t number = 0;
    if (std::sscanf(name.c_str(), "segment-%" SCNu64 ".log", &number) == 1 && number > 0 &&
        name == segment_name(number))
      numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

LogStore::LogStore(FileSystem* fs, std::string directory, uint64_t salt, size_t segment_bytes)
    : fs_(fs), directory_(std::move(directory)), salt_(salt), segment_bytes_(segment_bytes) {}

LogStore::~LogStore() {
  if (maker_.joinable()) maker_.join();
  if (made_fd_.ok() && *made_fd_ >= 0) fs_->close(*made_fd_);
  if (fd_ >= 0) fs_->close(fd_);
  if (mark_fd_ >= 0) fs_->close(mark_fd_);
}

std::string LogStore::segment_path(uint64_t number) const {
  return directory_ + "/" + segment_name(number);
}

absl::StatusOr<std::unique_ptr<LogStore>> LogStore::open(FileSystem* fs,
                                                         const std::string& directory,
                                                         uint64_t salt, size_t segment_bytes) {
  const int rv = fs->mkdir(directory, 0700);
  if (rv < 0) return file_error(rv, "create", directory);
  std::unique_ptr<LogStore> store(new LogStore(fs, directory, salt, segment_bytes));
  absl::Status status = store->load();
  if (!status.ok()) return status;
  return store;
}

absl::StatusOr<uint64_t> LogStore::existing_salt(FileSystem* fs, const std::string& directory) {
  const int rv = fs->mkdir(directory, 0700);
  if (rv < 0) return file_error(rv, "create", directory);
  const auto numbers = list_segments(fs, directory);
  if (!numbers.ok()) return numbers.status();
  for (const uint64_t number : *numbers) {
    const std::string path = directory + "/" + segment_name(number);
    const int fd = fs->open(path, O_RDONLY, 0);
    if (fd < 0) return file_error(fd, "open", path);
    std::string sector(kSector, '\0');
    const int64_t n = fs->pread(fd, sector.data(), sector.size(), 0);
    fs->close(fd);
    if (n < 0) return file_error(static_cast<int>(n), "read", path);
    if (const auto salt = read_salt(sector)) return *salt;
  }
  return uint64_t{0};
}

absl::Status LogStore::remove(FileSystem* fs, const std::string& directory) {
  const auto numbers = list_segments(fs, directory);
  if (!numbers.ok()) return numbers.status();
  for (const uint64_t number : *numbers) {
    const std::string path = directory + "/" + segment_name(number);
    const int rv = fs->unlink(path);
    if (rv < 0) return file_error(rv, "remove", path);
  }
  fs->unlink(directory + "/" + kMarkName);
  return sync_directory(fs, directory);
}

absl::Status LogStore::load() {
  const auto numbers = list_segments(fs_, directory_);
  if (!numbers.ok()) return numbers.status();
  LogReplay replay(
      salt_,
      absl::StrCat("Do not delete it: what this node acknowledged may be in it. Move ", directory_,
                   " and its parent's other files aside, then let the other controllers rebuild "
                   "this node with `xce cluster replace`, or restore a backup."));
  uint64_t expected = numbers->empty() ? 0 : numbers->front();
  for (const uint64_t number : *numbers) {
    const std::string path = segment_path(number);
    if (number != expected)
      return absl::DataLossError(absl::StrCat(
          segment_path(expected),
          " is missing, but later segments are there. Put it back, or move the "
          "data directory aside and bring this node back with `xce cluster replace`."));
    expected++;
    const auto bytes = read_file(fs_, path);
    if (!bytes.ok()) return bytes.status();
    absl::Status status = replay.add(number, path, *bytes);
    if (!status.ok()) return status;
    highest_segment_ = number;
  }
  const std::string mark_path = directory_ + "/" + kMarkName;
  mark_fd_ = fs_->open(mark_path, O_RDWR | O_CREAT, 0600);
  if (mark_fd_ < 0) return file_error(mark_fd_, "open", mark_path);
  std::string mark(kMarkSize, '\0');
  const int64_t n = fs_->pread(mark_fd_, mark.data(), mark.size(), 0);
  if (n < 0) return file_error(static_cast<int>(n), "read", mark_path);
  absl::Status status = replay.finish(decode_mark(salt_, mark));
  if (!status.ok()) return status;
  contents_ = std::move(replay.contents());
  highest_index_ = replay.highest_index();
  tail_ = replay.tail();
  if (replay.torn()) {
    had_torn_tail_ = true;
    status = clear_torn(replay.torn_segment(),
                        replay.torn_segment() == tail_.segment ? tail_.offset : 0);
    if (!status.ok()) return status;
  }
  if (tail_.segment != 0) {
    const std::string path = segment_path(tail_.segment);
    fd_ = fs_->open(path, O_RDWR | O_DSYNC, 0);
    if (fd_ < 0) return file_error(fd_, "open", path);
  }
  return absl::OkStatus();
}

// Puts zeros over what a torn write left, so that no later recovery can take it for a record.
absl::Status LogStore::clear_torn(uint64_t segment, size_t from) {
  const std::string path = segment_path(segment);
  const int fd = fs_->open(path, O_RDWR, 0);
  if (fd < 0) return file_error(fd, "open", path);
  const std::string zeros(segment_bytes_ - std::min(segment_bytes_, from), '\0');
  absl::Status status = write_fully(fs_, fd, zeros, from, path);
  if (status.ok()) {
    const int rv = fs_->fdatasync(fd);
    if (rv < 0) status = file_error(rv, "sync", path);
  }
  fs_->close(fd);
  return status;
}

// Makes a segment full of zeros, or takes one that an earlier run made and did not use. Returns its
// descriptor.
absl::StatusOr<int> LogStore::make_segment(uint64_t number) {
  const std::string path = segment_path(number);
  const int fd = fs_->open(path, O_RDWR | O_CREAT | O_DSYNC, 0600);
  if (fd < 0) return file_error(fd, "create", path);
  // In pieces, each on disk before the next: one big sync would hold up the appends beside it.
  const std::string zeros(std::min(segment_bytes_, size_t{512} << 10), '\0');
  for (size_t at = 0; at < segment_bytes_; at += zeros.size()) {
    absl::Status status =
        write_fully(fs_, fd, std::string_view(zeros).substr(0, segment_bytes_ - at), at, path);
    if (!status.ok()) {
      fs_->close(fd);
      return status;
    }
  }
  absl::Status status = sync_directory(fs_, directory_);
  if (!status.ok()) {
    fs_->close(fd);
    return status;
  }
  return fd;
}

void LogStore::prepare_in_background(uint64_t number) {
  if (making_ != 0 || !fs_->threads()) return;
  if (maker_.joinable()) maker_.join();
  making_ = number;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    made_ = false;
  }
  maker_ = std::thread([this, number] {
    absl::StatusOr<int> fd = make_segment(number);
    const std::lock_guard<std::mutex> lock(mutex_);
    made_fd_ = std::move(fd);
    made_ = true;
  });
}

absl::Status LogStore::next_segment() {
  const uint64_t number = tail_.segment + 1;
  absl::StatusOr<int> fd = -1;
  if (making_ == number) {
    maker_.join();
    making_ = 0;
    std::swap(fd, made_fd_);
    made_fd_ = -1;
    // It may have failed for want of space that has been freed since: try once more before giving
    // up.
    if (!fd.ok()) fd = make_segment(number);
  } else {
    fd = make_segment(number);
  }
  if (!fd.ok()) return fd.status();
  if (fd_ >= 0) fs_->close(fd_);
  fd_ = *fd;
  tail_.segment = number;
  tail_.offset = 0;
  highest_segment_ = std::max(highest_segment_, number);
  header_due_ = true;
  crash_point("log.segment_begun");
  return absl::OkStatus();
}

absl::Status LogStore::append(std::string_view items, uint64_t highest_index) {
  const size_t size = record_size(items.size());
  if (size + kSector > segment_bytes_)
    return absl::InternalError(
        absl::StrCat("a log record of ", size, " bytes does not fit into a segment"));
  if (tail_.segment == 0 || tail_.offset + size > segment_bytes_) {
    absl::Status status = next_segment();
    if (!status.ok()) return status;
  }
  std::string bytes;
  LogTail after = tail_;
  if (header_due_) {
    bytes = encode_segment_header(salt_, tail_.segment, tail_);
    bytes += encode_record(salt_, items, &after);
  } else {
    bytes = encode_record(salt_, items, &after);
  }
  crash_point("log.before_write");
  absl::Status status = write_fully(fs_, fd_, bytes, tail_.offset, segment_path(tail_.segment));
  if (!status.ok()) return status;
  crash_point("log.after_write");
  header_due_ = false;
  after.offset = tail_.offset + bytes.size();
  tail_ = after;
  uint64_t& highest = highest_index_[tail_.segment];
  highest = std::max(highest, highest_index);
  write_mark();
  prepare_in_background(tail_.segment + 1);
  return absl::OkStatus();
}

absl::Status LogStore::remove_through(uint64_t index) {
  bool removed = false;
  while (!highest_index_.empty() && highest_index_.begin()->first < tail_.segment &&
         highest_index_.begin()->second <= index) {
    const std::string path = segment_path(highest_index_.begin()->first);
    const int rv = fs_->unlink(path);
    if (rv < 0 && rv != -ENOENT) return file_error(rv, "remove", path);
    highest_index_.erase(highest_index_.begin());
    removed = true;
    crash_point("log.segment_removed");
  }
  return removed ? sync_directory(fs_, directory_) : absl::OkStatus();
}

void LogStore::write_mark() {
  // Not synced, and its failure is nobody's business: it can only make recovery stricter.
  const std::string mark = encode_mark(salt_, tail_.next_seq - 1);
  (void)fs_->pwrite(mark_fd_, mark.data(), mark.size(), 0);
}

}  // namespace xce::consensus
