// See host_health.h.
#include "worker/agent/host_health.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace xce::worker {
namespace {

uint64_t free_mb_at(const std::string& path) {
  struct statvfs fs;
  if (statvfs(path.c_str(), &fs) != 0) return 0;
  if (fs.f_files != 0 && fs.f_favail == 0) return 0;  // no file can be made
  const uint64_t blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail;
  return blocks * fs.f_frsize / (1024 * 1024);
}

}  // namespace

HostHealth::HostHealth(std::string data_dir, Options options)
    : data_dir_(std::move(data_dir)), options_(std::move(options)) {}

void HostHealth::look(int64_t now_ms) {
  const uint64_t free_mb = options_.free_mb ? options_.free_mb(data_dir_) : free_mb_at(data_dir_);
  const uint64_t needed = options_.min_free_mb + (full_ ? options_.min_free_mb / 4 : 0);
  full_ = free_mb < needed;
  if (now_ms >= failure_until_ms_) failure_.clear();
  if (full_)
    fault_ = absl::StrCat("its data directory ", data_dir_, " has less than ", options_.min_free_mb,
                          " MiB free: free space there");
  else
    fault_ = failure_;
}

void HostHealth::failed(std::string why, int64_t now_ms) {
  failure_ = std::move(why);
  failure_until_ms_ = now_ms + options_.retry_ms;
  if (!full_) fault_ = failure_;
}

}  // namespace xce::worker
