#include "e2e/soak/footprint.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "e2e/cluster/process.h"

namespace xce::e2e {
namespace {

int64_t field(const std::string& status, const std::string& name) {
  const size_t at = status.find("\n" + name + ":");
  return at == std::string::npos ? 0 : std::atoll(status.c_str() + at + name.size() + 2);
}

template <class Pick>
Footprint each(const Footprint& a, const Footprint& b, Pick pick) {
  return {pick(a.memory_kb, b.memory_kb), pick(a.descriptors, b.descriptors),
          pick(a.threads, b.threads)};
}

Footprint most(const Footprint& a, const Footprint& b) {
  return each(a, b, [](int64_t x, int64_t y) { return std::max(x, y); });
}

Footprint least(const Footprint& a, const Footprint& b) {
  return each(a, b, [](int64_t x, int64_t y) { return std::min(x, y); });
}

}  // namespace

std::optional<Footprint> footprint(pid_t pid) {
  Footprint out;
  const std::string status = read_file(absl::StrCat("/proc/", pid, "/status"));
  out.memory_kb = field(status, "VmRSS");
  out.threads = field(status, "Threads");
  DIR* dir = opendir(absl::StrCat("/proc/", pid, "/fd").c_str());
  if (dir == nullptr || out.memory_kb == 0) {
    if (dir != nullptr) closedir(dir);
    return std::nullopt;
  }
  while (readdir(dir) != nullptr) ++out.descriptors;
  closedir(dir);
  out.descriptors -= 2;  // "." and ".."
  return out;
}

void Flatness::sample(const std::string& daemon, pid_t pid, double time_s, const Footprint& now,
                      size_t jobs) {
  std::vector<Life>& lives = lives_[daemon];
  if (lives.empty() || lives.back().pid != pid) {
    lives.emplace_back();
    lives.back().pid = pid;
    lives.back().begin_s = time_s;
  }
  Life& life = lives.back();
  if (time_s < life.begin_s + kWarmS) return;
  if (life.warm_samples < kWindow) {
    life.warm = most(life.warm, now);
    life.warm_s = time_s;
    life.jobs_warm = jobs;
    ++life.warm_samples;
    return;
  }
  life.last.push_back(now);
  if (life.last.size() > kWindow) life.last.pop_front();
  life.last_s = time_s;
  life.jobs_last = jobs;
}

void Flatness::judge(const Life& life, Row* row) const {
  if (life.last.size() < kWindow || life.last_s - life.warm_s < kLeastS) return;
  Footprint end = life.last.front();
  for (const Footprint& each : life.last) end = least(end, each);
  if (row->judged == 0 ||
      end.memory_kb - life.warm.memory_kb > row->end.memory_kb - row->warm.memory_kb) {
    row->warm = life.warm;
    row->end = end;
  }
  ++row->judged;
  const auto grew = [&](const char* what, int64_t from, int64_t to, int64_t bound) {
    if (to - from > bound)
      absl::StrAppend(&row->wrong, row->wrong.empty() ? "" : "; ", what, " grew from ", from,
                      " to ", to, " in ", static_cast<int>(life.last_s - life.warm_s),
                      " s, more than ", bound, " (pid ", life.pid, ")");
    return to - from;
  };
  const auto jobs = static_cast<int64_t>(life.jobs_last - life.jobs_warm);
  grew("memory (KiB)", life.warm.memory_kb, end.memory_kb,
       bounds_.memory_kb + jobs * bounds_.memory_kb_per_job);
  row->most_descriptors =
      std::max(row->most_descriptors,
               grew("descriptors", life.warm.descriptors, end.descriptors, bounds_.descriptors));
  row->most_threads =
      std::max(row->most_threads, grew("threads", life.warm.threads, end.threads, bounds_.threads));
}

std::vector<Flatness::Row> Flatness::rows() const {
  std::vector<Row> out;
  for (const auto& [daemon, lives] : lives_) {
    Row row;
    row.daemon = daemon;
    row.lives = static_cast<int>(lives.size());
    for (const Life& life : lives) judge(life, &row);
    out.push_back(row);
  }
  return out;
}

}  // namespace xce::e2e
