// See memory_cgroup.h.
#include "worker/shepherd/memory_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "worker/shepherd/process_tree.h"

namespace xce::worker {
namespace {

bool write_file(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return ok;
}

// A directory serves when a group made in it has a memory limit to set.
bool usable(const std::string& parent) {
  const std::string probe = parent + "/probe." + std::to_string(getpid());
  if (mkdir(probe.c_str(), 0755) != 0) return false;
  const bool ok = access((probe + "/memory.max").c_str(), W_OK) == 0 ||
                  access((probe + "/memory.limit_in_bytes").c_str(), W_OK) == 0;
  rmdir(probe.c_str());
  return ok;
}

}  // namespace

std::string find_memory_cgroup(const std::string& given) {
  if (!given.empty()) return usable(given) ? given : "";
  std::istringstream in(read_small_file("/proc/self/cgroup"));
  for (std::string line; std::getline(in, line);) {
    const size_t at = line.find(":memory:");
    if (at == std::string::npos) continue;
    const std::string own = "/sys/fs/cgroup/memory" + line.substr(at + 8);
    const std::string parent = own + (own.back() == '/' ? "" : "/") + "xce";
    mkdir(parent.c_str(), 0755);
    if (usable(parent)) return parent;
  }
  return "";
}

MemoryCgroup::MemoryCgroup(const std::string& parent, const std::string& name, uint64_t limit_mb) {
  if (parent.empty() || limit_mb == 0) return;
  const std::string dir = parent + "/" + name;
  if (mkdir(dir.c_str(), 0755) != 0) return;
  const std::string bytes = std::to_string(limit_mb * 1024 * 1024);
  if (!write_file(dir + "/memory.max", bytes) &&
      !write_file(dir + "/memory.limit_in_bytes", bytes)) {
    rmdir(dir.c_str());
    return;
  }
  // No swapping past the limit, where the kernel counts swap.
  if (!write_file(dir + "/memory.swap.max", "0"))
    write_file(dir + "/memory.memsw.limit_in_bytes", bytes);
  dir_ = dir;
  procs_file_ = dir + "/cgroup.procs";
}

MemoryCgroup::~MemoryCgroup() {
  if (valid()) rmdir(dir_.c_str());
}

bool MemoryCgroup::killed_for_memory() const {
  if (!valid()) return false;
  for (const char* file : {"/memory.events", "/memory.oom_control"}) {
    std::istringstream in(read_small_file(dir_ + file));
    std::string word;
    uint64_t count = 0;
    while (in >> word >> count) {
      if (word == "oom_kill") return count > 0;
    }
  }
  return false;
}

}  // namespace xce::worker
