#include "e2e/cluster/system_faults.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "e2e/cluster/process.h"

namespace xce::e2e {

SystemFaults::SystemFaults(std::string path) : path_(std::move(path)) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  library_ = find_program("e2e/cluster/libsystem_faults.so");
#endif
  fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  set_clock_ms(0);
  set_write_delay_ms(0);
  set_write_error(0);
}

SystemFaults::~SystemFaults() {
  if (fd_ >= 0) close(fd_);
}

absl::Status SystemFaults::status() const {
  if (fd_ < 0) return absl::UnavailableError(absl::StrCat("cannot make ", path_));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (library_.empty()) return absl::NotFoundError("e2e/cluster/libsystem_faults.so is not built");
#endif
  return absl::OkStatus();
}

std::vector<std::string> SystemFaults::environment() const {
  if (library_.empty()) return {};
  return {absl::StrCat("LD_PRELOAD=", library_), absl::StrCat("XCE_SYSTEM_FAULTS=", path_)};
}

void SystemFaults::write(int which, int64_t value) {
  if (pwrite(fd_, &value, sizeof value, which * static_cast<off_t>(sizeof value)) < 0)
    perror(path_.c_str());
}

}  // namespace xce::e2e
