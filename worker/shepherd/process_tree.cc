// See process_tree.h.
#include "worker/shepherd/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>

namespace xce::worker {
namespace {

struct Stat {
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';
  uint64_t start_ticks = 0;
};

// /proc/<pid>/stat: "pid (comm) state ppid pgrp session ..."; comm may hold anything, so parse from
// the last ')'.
std::optional<Stat> read_stat(pid_t pid) {
  const std::string text = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  const size_t close = text.rfind(')');
  if (close == std::string::npos) return std::nullopt;
  std::istringstream in(text.substr(close + 1));
  Stat stat;
  long group = 0;
  in >> stat.state >> stat.parent >> group >> stat.session;
  std::string skipped;
  for (int field = 7; field <= 21; ++field) in >> skipped;
  in >> stat.start_ticks;
  return in ? std::optional<Stat>(stat) : std::nullopt;
}

std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  DIR* dir = opendir("/proc");
  if (dir == nullptr) return pids;
  while (dirent* entry = readdir(dir)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid > 0) pids.push_back(pid);
  }
  closedir(dir);
  return pids;
}

// Direct children by the kernel's own list, over all threads; false when this kernel has none.
bool children(pid_t pid, std::vector<pid_t>* out) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  DIR* dir = opendir(tasks.c_str());
  if (dir == nullptr) return true;  // it is gone
  bool known = true;
  while (dirent* entry = readdir(dir)) {
    if (entry->d_name[0] == '.') continue;
    const std::string path = tasks + "/" + entry->d_name + "/children";
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      known = known && access((tasks + "/" + entry->d_name).c_str(), F_OK) != 0;
      continue;
    }
    close(fd);
    std::istringstream in(read_small_file(path));
    for (pid_t child; in >> child;) out->push_back(child);
  }
  closedir(dir);
  return known;
}

std::vector<pid_t> descendants_by_scan(pid_t root) {
  std::multimap<pid_t, pid_t> by_parent;
  for (pid_t pid : all_pids()) {
    if (auto stat = read_stat(pid)) by_parent.emplace(stat->parent, pid);
  }
  std::vector<pid_t> found, queue{root};
  while (!queue.empty()) {
    auto [begin, end] = by_parent.equal_range(queue.back());
    queue.pop_back();
    for (auto it = begin; it != end; ++it) {
      found.push_back(it->second);
      queue.push_back(it->second);
    }
  }
  return found;
}

}  // namespace

std::string read_small_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(fd);
  return text;
}

std::vector<pid_t> descendants(pid_t root) {
  std::vector<pid_t> found, queue{root};
  while (!queue.empty()) {
    std::vector<pid_t> next;
    const pid_t pid = queue.back();
    queue.pop_back();
    if (!children(pid, &next)) return descendants_by_scan(root);
    found.insert(found.end(), next.begin(), next.end());
    queue.insert(queue.end(), next.begin(), next.end());
  }
  return found;
}

TreeUsage usage_of(const std::vector<pid_t>& pids) {
  static const uint64_t page_kb = static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
  TreeUsage usage;
  for (pid_t pid : pids) {
    uint64_t size = 0, resident = 0;
    std::istringstream in(read_small_file("/proc/" + std::to_string(pid) + "/statm"));
    if (!(in >> size >> resident)) continue;
    usage.memory_kb += resident * page_kb;
    ++usage.processes;
  }
  return usage;
}

uint64_t shared_memory_kb(const std::vector<pid_t>& pids) {
  uint64_t sum = 0;
  for (pid_t pid : pids) {
    const std::string text = read_small_file("/proc/" + std::to_string(pid) + "/smaps_rollup");
    const size_t at = text.find("\nPss:");
    // A kernel or a process that does not tell: what is resident.
    sum += at == std::string::npos ? usage_of({pid}).memory_kb
                                   : std::strtoull(text.c_str() + at + 5, nullptr, 10);
  }
  return sum;
}

std::vector<MarkedProcess> marked_processes(const std::string& data_dir) {
  const std::string mark = std::string(1, '\0') + kMarkVariable + "=" + data_dir + "/jobs/";
  std::vector<MarkedProcess> found;
  for (pid_t pid : all_pids()) {
    if (pid == getpid()) continue;
    const std::string environment =
        std::string(1, '\0') + read_small_file("/proc/" + std::to_string(pid) + "/environ");
    const size_t at = environment.find(mark);
    if (at == std::string::npos) continue;
    const std::string name = environment.substr(at + mark.size());
    if (start_ticks(pid) != 0) found.push_back({pid, name.substr(0, name.find('\0'))});
  }
  return found;
}

pid_t shepherd_above(pid_t pid, const std::string& data_dir) {
  // Its command line is its launcher's: xce_shepherd launcher FD DATA.
  const std::string end = std::string(1, '\0') + data_dir + std::string(1, '\0');
  for (int depth = 0; depth < 1000; ++depth) {
    const auto stat = read_stat(pid);
    if (!stat || stat->parent <= 1) return 0;
    pid = stat->parent;
    const std::string line = read_small_file("/proc/" + std::to_string(pid) + "/cmdline");
    const size_t verb = line.find(std::string("\0launcher\0", 10));
    if (verb == std::string::npos || line.size() < end.size() ||
        line.compare(line.size() - end.size(), end.size(), end) != 0)
      continue;
    // A launcher itself has no job; a shepherd calls itself after its own.
    const std::string name = read_small_file("/proc/" + std::to_string(pid) + "/comm");
    return name.compare(0, 8, "xce-job-") == 0 ? pid : 0;
  }
  return 0;
}

std::vector<pid_t> session_members(pid_t session) {
  std::vector<pid_t> found;
  for (pid_t pid : all_pids()) {
    auto stat = read_stat(pid);
    if (stat && stat->session == session && stat->state != 'Z') found.push_back(pid);
  }
  return found;
}

uint64_t start_ticks(pid_t pid) {
  auto stat = read_stat(pid);
  return stat && stat->state != 'Z' && stat->state != 'X' ? stat->start_ticks : 0;
}

std::string boot_id() {
  std::string id = read_small_file("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

}  // namespace xce::worker
