// See outbox.h.
#include "worker/agent/outbox.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "worker/shepherd/process_tree.h"
#include "worker/shepherd/record.h"

namespace xce::worker {
namespace {

constexpr off_t kReserveBytes = 4 << 20;

std::string encode_report(const Report& report) {
  Record r;
  r.add("t", "report");
  r.add_unsigned("seq", report.outbox_seq);
  r.add_unsigned("kind", static_cast<uint64_t>(report.kind));
  r.add_unsigned("job", report.job);
  r.add_unsigned("attempt", report.attempt);
  r.add("exit_code", static_cast<int64_t>(report.exit_code));
  r.add_unsigned("exit_signal", report.exit_signal);
  r.add_unsigned("outcome", static_cast<uint64_t>(report.outcome));
  r.add_unsigned("cpu_ms", report.usage.cpu_ms);
  r.add_unsigned("peak_memory_kb", report.usage.peak_memory_kb);
  r.add_unsigned("wall_ms", report.usage.wall_ms);
  r.add("message", report.message);
  r.add("time_ms", report.time_ms);
  r.add("stdout_file", report.stdout_file);
  r.add("stderr_file", report.stderr_file);
  return r.encode();
}

Report decode_report(const Record& r) {
  Report report;
  report.outbox_seq = r.unsigned_number("seq");
  report.kind = static_cast<NotifyKind>(r.unsigned_number("kind"));
  report.job = r.unsigned_number("job");
  report.attempt = static_cast<uint32_t>(r.unsigned_number("attempt"));
  report.exit_code = static_cast<int32_t>(r.number("exit_code"));
  report.exit_signal = static_cast<uint32_t>(r.unsigned_number("exit_signal"));
  report.outcome = static_cast<JobState>(r.unsigned_number("outcome"));
  report.usage.cpu_ms = r.unsigned_number("cpu_ms");
  report.usage.peak_memory_kb = r.unsigned_number("peak_memory_kb");
  report.usage.wall_ms = r.unsigned_number("wall_ms");
  report.message = r.text("message");
  report.time_ms = r.number("time_ms");
  report.stdout_file = r.text("stdout_file");
  report.stderr_file = r.text("stderr_file");
  return report;
}

std::string encode_launch(Key key, const Outbox::LaunchState& state) {
  Record r;
  r.add("t", "launch");
  r.add_unsigned("job", key.job);
  r.add_unsigned("attempt", key.attempt);
  r.add("boot_id", state.boot_id);
  r.add_unsigned("start_reported", state.start_reported ? 1 : 0);
  r.add_unsigned("suspend_reported", state.suspend_reported ? 1 : 0);
  return r.encode();
}

std::string encode_position(const char* type, uint64_t next_seq, uint64_t confirmed) {
  Record r;
  r.add("t", type);
  r.add_unsigned("next_seq", next_seq);
  r.add_unsigned("confirmed", confirmed);
  return r.encode();
}

absl::Status write_all(int fd, const std::string& bytes, const std::string& path) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return absl::UnavailableError(
          absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status sync_directory_of(const std::string& path) {
  const std::string dir = path.substr(0, path.rfind('/'));
  const int fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return absl::UnavailableError(absl::StrCat("cannot open ", dir, ": ", std::strerror(errno)));
  const bool ok = fsync(fd) == 0;
  const int error = errno;
  close(fd);
  return ok ? absl::OkStatus()
            : absl::UnavailableError(absl::StrCat("cannot sync ", dir, ": ", std::strerror(error)));
}

}  // namespace

bool is_final(const Report& report) {
  return report.kind == NotifyKind::kFinish || report.kind == NotifyKind::kFail;
}

absl::StatusOr<std::unique_ptr<Outbox>> Outbox::open(const std::string& path,
                                                     size_t compact_bytes) {
  std::unique_ptr<Outbox> outbox(new Outbox(path, compact_bytes));
  const absl::Status loaded = outbox->load();
  if (!loaded.ok()) return loaded;
  return outbox;
}

Outbox::~Outbox() {
  if (fd_ >= 0) close(fd_);
}

absl::Status Outbox::load() {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd_ < 0)
    return absl::UnavailableError(absl::StrCat("cannot open ", path_, ": ", std::strerror(errno)));
  const std::string bytes = read_small_file(path_);
  std::vector<Record> records;
  const size_t whole = decode_records(bytes, &records);
  // After a torn write nothing valid follows; a valid record behind garbage is damage that a cut
  // would make worse.
  for (size_t at = bytes.find("XCR1", whole + 1); at != std::string::npos;
       at = bytes.find("XCR1", at + 1)) {
    std::vector<Record> later;
    if (decode_records(std::string_view(bytes).substr(at), &later) > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(path_, " is damaged at byte ", whole,
                       ": move this file away and start again; what became of its jobs and was "
                       "not reported yet is lost"));
    }
  }
  if (whole != bytes.size() && ftruncate(fd_, static_cast<off_t>(whole)) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot cut the torn end off ", path_, ": ", std::strerror(errno)));
  }
  file_bytes_ = whole;
  {
    absl::MutexLock lock(&mutex_);
    for (const Record& r : records) {
      const std::string_view type = r.text("t");
      if (type == "report") {
        Report report = decode_report(r);
        note_report(report);
        next_seq_ = report.outbox_seq + 1;
        reports_.push_back(std::move(report));
      } else if (type == "launch") {
        launches_[Key{r.unsigned_number("job"),
                      static_cast<uint32_t>(r.unsigned_number("attempt"))}] =
            LaunchState{std::string(r.text("boot_id")), r.number("start_reported") != 0,
                        r.number("suspend_reported") != 0};
      } else {  // base, confirmed
        next_seq_ = std::max(next_seq_, r.unsigned_number("next_seq"));
        confirmed_ = r.unsigned_number("confirmed");
        while (!reports_.empty() && reports_.front().outbox_seq <= confirmed_) reports_.pop_front();
      }
    }
    durable_seq_ = next_seq_ - 1;
  }
  return sync_directory_of(path_);
}

void Outbox::note_report(const Report& report) {
  const Key key{report.job, report.attempt};
  if (is_final(report)) {
    launches_.erase(key);
    return;
  }
  auto it = launches_.find(key);
  if (it == launches_.end()) return;
  it->second.start_reported = true;
  if (report.kind == NotifyKind::kStop) it->second.suspend_reported = true;
  if (report.kind == NotifyKind::kResumed) it->second.suspend_reported = false;
}

void Outbox::add_launch(Key key, const std::string& boot_id) {
  absl::MutexLock lock(&mutex_);
  const LaunchState state{boot_id};
  launches_[key] = state;
  buffer_ += encode_launch(key, state);
  needs_sync_ = true;
}

void Outbox::add_report(Report report) {
  absl::MutexLock lock(&mutex_);
  report.outbox_seq = next_seq_++;
  note_report(report);
  buffer_ += encode_report(report);
  needs_sync_ = true;
  reports_.push_back(std::move(report));
}

void Outbox::keep_reserve() {
  if (access(reserve().c_str(), F_OK) == 0) return;
  const int fd = ::open(reserve().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const bool ok = posix_fallocate(fd, 0, kReserveBytes) == 0;
  close(fd);
  if (!ok) unlink(reserve().c_str());
}

absl::Status Outbox::commit() {
  absl::Status status = write_buffer();
  if (!status.ok() && unlink(reserve().c_str()) == 0) status = write_buffer();
  return status;
}

absl::Status Outbox::write_buffer() {
  if (!broken_ && buffer_.empty()) return absl::OkStatus();
  if (broken_ || file_bytes_ + buffer_.size() > compact_bytes_) return rewrite();
  absl::Status status = write_all(fd_, buffer_, path_);
  if (status.ok() && needs_sync_ && fdatasync(fd_) != 0) {
    status =
        absl::UnavailableError(absl::StrCat("cannot sync ", path_, ": ", std::strerror(errno)));
  }
  if (!status.ok()) {
    broken_ = true;  // what of it is on disk is unknown, and a second fdatasync would not tell:
                     // write a fresh file
    return status;
  }
  file_bytes_ += buffer_.size();
  buffer_.clear();
  needs_sync_ = false;
  absl::MutexLock lock(&mutex_);
  durable_seq_ = next_seq_ - 1;
  return absl::OkStatus();
}

std::string Outbox::whole_state() const {
  std::string bytes = encode_position(
      "base", reports_.empty() ? next_seq_ : reports_.front().outbox_seq, confirmed_);
  for (const auto& [key, state] : launches_) bytes += encode_launch(key, state);
  for (const Report& report : reports_) bytes += encode_report(report);
  return bytes;
}

absl::Status Outbox::rewrite() {
  std::string bytes;
  {
    absl::MutexLock lock(&mutex_);
    bytes = whole_state();
  }
  const std::string fresh = path_ + ".new";
  unlink(fresh.c_str());
  const int fd = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0)
    return absl::UnavailableError(absl::StrCat("cannot write ", fresh, ": ", std::strerror(errno)));
  absl::Status status = write_all(fd, bytes, fresh);
  if (status.ok() && fsync(fd) != 0)
    status =
        absl::UnavailableError(absl::StrCat("cannot sync ", fresh, ": ", std::strerror(errno)));
  if (status.ok() && rename(fresh.c_str(), path_.c_str()) != 0) {
    status =
        absl::UnavailableError(absl::StrCat("cannot rename ", fresh, ": ", std::strerror(errno)));
  }
  if (!status.ok()) {
    close(fd);
    unlink(fresh.c_str());
    return status;
  }
  close(fd_);
  fd_ = fd;
  file_bytes_ = bytes.size();
  status = sync_directory_of(path_);
  broken_ = !status.ok();
  if (broken_) return status;
  buffer_.clear();
  needs_sync_ = false;
  absl::MutexLock lock(&mutex_);
  durable_seq_ = next_seq_ - 1;
  return absl::OkStatus();
}

std::vector<Key> Outbox::confirm(uint64_t seq) {
  std::vector<Key> finals;
  absl::MutexLock lock(&mutex_);
  // A report that is not on disk yet cannot have been applied: never drop it on the word of a
  // confused controller.
  seq = std::min(seq, durable_seq_);
  if (seq <= confirmed_) return finals;
  confirmed_ = seq;
  while (!reports_.empty() && reports_.front().outbox_seq <= seq) {
    const Report& report = reports_.front();
    if (is_final(report)) finals.push_back(Key{report.job, report.attempt});
    reports_.pop_front();
  }
  buffer_ += encode_position("confirmed", next_seq_, confirmed_);
  return finals;
}

void Outbox::rebase(uint64_t applied) {
  absl::MutexLock lock(&mutex_);
  const uint64_t first = reports_.empty() ? next_seq_ : reports_.front().outbox_seq;
  if (first == applied + 1) return;
  confirmed_ = applied;
  next_seq_ = applied + 1;
  for (Report& report : reports_) report.outbox_seq = next_seq_++;
  broken_ = true;  // the file must say so too
  durable_seq_ = confirmed_;
}

std::vector<Report> Outbox::pending(uint64_t after, size_t max) const {
  std::vector<Report> out;
  absl::MutexLock lock(&mutex_);
  if (reports_.empty()) return out;
  const uint64_t first = reports_.front().outbox_seq;
  for (size_t i = after >= first ? after - first + 1 : 0; i < reports_.size() && out.size() < max;
       ++i) {
    if (reports_[i].outbox_seq > durable_seq_) break;
    out.push_back(reports_[i]);
  }
  return out;
}

uint64_t Outbox::confirmed() const {
  absl::MutexLock lock(&mutex_);
  return confirmed_;
}

uint64_t Outbox::last_seq() const {
  absl::MutexLock lock(&mutex_);
  return next_seq_ - 1;
}

std::map<Key, Outbox::LaunchState> Outbox::launches() const {
  absl::MutexLock lock(&mutex_);
  return launches_;
}

std::vector<Report> Outbox::unconfirmed_finals() const {
  std::vector<Report> out;
  absl::MutexLock lock(&mutex_);
  for (const Report& report : reports_) {
    if (is_final(report)) out.push_back(report);
  }
  return out;
}

}  // namespace xce::worker
