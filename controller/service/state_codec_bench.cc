// How long a large state takes to save and load, and how large it is.
// bazel run //controller/service:state_codec_bench -- [pending jobs] [ended jobs]
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "controller/service/state_codec.h"

namespace {

using Clock = std::chrono::steady_clock;

double since_ms(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double heap_mb() { return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd) / 1e6; }

xce::Command submission(uint64_t n) {
  xce::Command command;
  command.who.role = xce::Role::kUser;
  command.who.user = "user" + std::to_string(n % 100);
  command.who.uid = 1000 + static_cast<uint32_t>(n % 100);
  xce::JobSpec spec;
  spec.name = "job-" + std::to_string(n);
  spec.work_dir = "/home/" + command.who.user;
  spec.submit_key = "key-" + std::to_string(n);
  auto body = std::make_shared<xce::JobBody>();
  body->args = {"/bin/true"};
  body->env = {"HOME=" + spec.work_dir, "PATH=/usr/local/bin:/usr/bin:/bin"};
  spec.body = body;
  command.op = spec;
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t pending = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000000;
  const uint64_t ended = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100000;
  xce::state::State state;
  xce::Index index = 0;
  const double before_mb = heap_mb();
  for (uint64_t n = 0; n < pending + ended;) {
    xce::Entry entry;
    entry.time_ms = 1000000;
    for (int i = 0; i < 500 && n < pending + ended; ++i) entry.commands.push_back(submission(n++));
    state.apply(++index, entry);
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
  std::string bytes;
  bytes.reserve((pending + ended) * 700);
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
