#include "controller/sim/world.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace xce::sim {

void World::at(uint64_t time, std::function<void()> run) {
  events_.push_back({std::max(time, now_), ++order_, std::move(run)});
  std::push_heap(events_.begin(), events_.end());
}

void World::run_until(uint64_t time) {
  while (!is_wrong() && !events_.empty() && events_.front().time <= time) {
    std::pop_heap(events_.begin(), events_.end());
    const Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.time;
    ++ran_;
    event.run();
  }
  if (!is_wrong()) now_ = std::max(now_, time);
}

void World::tell(std::string_view line) {
  mark(now_);
  for (const char c : line) mark(static_cast<unsigned char>(c));
  if (print_)
    std::printf("%10.3f ms  %.*s\n", static_cast<double>(now_) / 1e6, static_cast<int>(line.size()),
                line.data());
}

void World::wrong(std::string what) {
  if (is_wrong()) return;
  tell("WRONG: " + what);
  wrong_ = std::move(what);
}

}  // namespace xce::sim
