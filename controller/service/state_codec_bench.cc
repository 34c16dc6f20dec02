// How long a large state takes to save and load, and how large it is.
// bazel run //controller/service:state_codec_bench -- [pending jobs] [ended jobs] [small-pages]
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "controller/service/huge_heap.h"
#include "controller/service/state_codec.h"
#include "controller/service/testing/submissions.h"

namespace {

using Clock = std::chrono::steady_clock;

double since_ms(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double heap_mb() { return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd) / 1e6; }

}  // namespace

int main(int argc, char** argv) {
  const uint64_t pending = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000000;
  const uint64_t ended = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10000;
  const bool small_pages = argc > 3;
  xce::service::HugeHeap heap;
  xce::state::State state;
  xce::Index index = 0;
  const double before_mb = heap_mb();
  for (uint64_t n = 0; n < pending + ended; n += 10000) {
    index = xce::service::testing::submit_many(&state, index,
                                               std::min<uint64_t>(10000, pending + ended - n), n);
    if (!small_pages) heap.advise();
  }
  for (uint64_t id = 1; id <= ended; ++id) {
    xce::Entry entry;
    entry.commands.resize(1);
    entry.commands[0].who.role = xce::Role::kApiserver;
    xce::JobControl kill;
    kill.ids = {id};
    entry.commands[0].op = kill;
    state.apply(++index, entry);
  }
  std::printf(
      "state: %llu pending, %llu ended, %.0f bytes of heap a job\n",
      static_cast<unsigned long long>(state.stats().pending),
      static_cast<unsigned long long>(state.stats().finished),
      (heap_mb() - before_mb) * 1e6 / static_cast<double>(std::max<uint64_t>(1, pending + ended)));
  auto begin = Clock::now();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  std::printf("a fork took %.1f ms\n", since_ms(begin));
  ::waitpid(child, nullptr, 0);
  begin = Clock::now();
  std::string bytes;
  bytes.reserve((pending + ended) * 500);
  xce::service::save_state(state, [&](std::string_view more) {
    bytes.append(more);
    return true;
  });
  std::printf("saved in %.0f ms: %.1f MB, %.0f bytes a job\n", since_ms(begin),
              static_cast<double>(bytes.size()) / 1e6,
              static_cast<double>(bytes.size()) /
                  static_cast<double>(std::max<uint64_t>(1, pending + ended)));
  begin = Clock::now();
  size_t at = 0;
  auto loaded = xce::service::load_state([&](char* to, size_t n) {
    n = std::min(n, bytes.size() - at);
    std::memcpy(to, bytes.data() + at, n);
    at += n;
    return n;
  });
  std::printf("loaded in %.0f ms: %s\n", since_ms(begin),
              loaded.ok() ? "ok" : loaded.status().ToString().c_str());
  if (!loaded.ok()) return 1;
  const bool same = (*loaded)->fingerprint() == state.fingerprint();
  std::printf("fingerprints %s\n", same ? "equal" : "DIFFER");
  return same ? 0 : 1;
}
