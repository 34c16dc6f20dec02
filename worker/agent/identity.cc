// See identity.h.
#include "worker/agent/identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "worker/shepherd/process_tree.h"

namespace xce::worker {
namespace {

absl::Status failed(const std::string& what) {
  return absl::UnavailableError(absl::StrCat("cannot write ", what, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<uint64_t> worker_id(const std::string& data_dir, const std::string& given) {
  if (!given.empty()) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const unsigned char c : given) hash = (hash ^ c) * 0x100000001b3;
    return hash == 0 ? 1 : hash;
  }
  const std::string path = absl::StrCat(data_dir, "/", kWorkerIdFile), fresh = path + ".new";
  std::string text = read_small_file(path);
  absl::StripAsciiWhitespace(&text);
  uint64_t id = 0;
  if (absl::SimpleHexAtoi(text, &id) && id != 0) return id;
  if (!text.empty())
    return absl::FailedPreconditionError(absl::StrCat(
        path, " does not hold a worker's number: put it back, or remove it and then free this ",
        "host's name with 'xce host remove'"));
  std::random_device random;
  do id = (uint64_t{random()} << 32) | random();
  while (id == 0);
  const std::string line = absl::StrCat(absl::Hex(id, absl::kZeroPad16), "\n");
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return failed(fresh);
  const bool ok = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
                  fsync(fd) == 0 && rename(fresh.c_str(), path.c_str()) == 0;
  close(fd);
  if (!ok) return failed(path);
  const int dir = open(data_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir >= 0) {
    fsync(dir);
    close(dir);
  }
  return id;
}

}  // namespace xce::worker
