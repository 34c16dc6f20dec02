// The cluster's simulation: many seeds, or one with its trace. `./dev sim --seeds N [--seed S]`.
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "controller/sim/simulation.h"

namespace {

uint64_t running = 0;  // the seed

// The code under test may abort: then too the seed must be known.
void on_abort(int) {
  char text[64];
  const int n = std::snprintf(text, sizeof text, "seed %" PRIu64 " aborted\n", running);
  (void)!::write(2, text, static_cast<size_t>(n));
  ::signal(SIGABRT, SIG_DFL);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Simulates a cluster of controllers with faults, from seeds: the same seed is the same run."};
  uint64_t seeds = 1, seed = 1;
  bool trace = false, keep_going = false;
  app.add_option("--seeds", seeds, "how many runs, each with the next seed");
  app.add_option("--seed", seed, "the first seed");
  app.add_flag("--trace", trace, "print what happens (for one seed)");
  app.add_flag("--keep-going", keep_going, "go on after a seed that fails");
  CLI11_PARSE(app, argc, argv);

  if (trace) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("sim", std::make_shared<spdlog::sinks::stdout_sink_st>()));
    spdlog::set_pattern("               %l: %v");
  } else {
    spdlog::set_level(spdlog::level::off);
  }
  ::signal(SIGABRT, on_abort);
  const auto begin = std::chrono::steady_clock::now();
  uint64_t failed = 0, events = 0, writes = 0, answered = 0, changes = 0, ran = 0;
  double simulated = 0, slowest = 0;
  uint64_t slowest_seed = 0;
  for (running = seed; running < seed + seeds; ++running) {
    const xce::sim::RunReport report = xce::sim::simulate(running, trace);
    ++ran;
    events += report.events;
    writes += report.writes;
    answered += report.reads_and_writes;
    changes += report.member_changes;
    simulated += report.simulated_s;
    if (report.healed_ms > slowest) {
      slowest = report.healed_ms;
      slowest_seed = running;
    }
    if (trace)
      std::printf("hash %016" PRIx64 ", %" PRIu64 " events, %" PRIu64 " terms\n", report.hash,
                  report.events, report.terms);
    if (report.wrong.empty()) continue;
    ++failed;
    std::printf("seed %" PRIu64 ": %s\n  again: ./dev sim --seeds 1 --seed %" PRIu64 " --trace\n",
                running, report.wrong.c_str(), running);
    std::fflush(stdout);
    if (!keep_going) break;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%" PRIu64 " seeds, %" PRIu64
              " failed; %.0f s simulated in %.1f s (%.1f seeds/s); %" PRIu64 " events, %" PRIu64
              " writes, %" PRIu64 " calls answered, %" PRIu64
              " changes of members; slowest healing %.0f ms (seed %" PRIu64 ")\n",
              ran, failed, simulated, took.count(), static_cast<double>(ran) / took.count(), events,
              writes, answered, changes, slowest, slowest_seed);
  return failed == 0 ? 0 : 1;
}
