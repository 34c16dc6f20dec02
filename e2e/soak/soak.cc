// ./dev soak: several clients work while a fault strikes every few seconds: kill, pause and restart
// of every role in turn, also two at once. At the end the books must balance: acknowledged = ended,
// each once, nothing left behind, memory and descriptors flat. Prints a table; keeps the evidence
// when something is wrong. Bounded by --minutes.

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <functional>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "e2e/cluster/cluster.h"
#include "e2e/demo/ledger.h"

namespace xce::e2e {
namespace {

std::atomic<bool> interrupted{false};

struct Footprint {
  long memory_kb = 0;
  int descriptors = 0;
};

Footprint footprint(pid_t pid) {
  Footprint out;
  const std::string status = read_file(absl::StrCat("/proc/", pid, "/status"));
  const size_t at = status.find("VmRSS:");
  if (at != std::string::npos) out.memory_kb = std::atol(status.c_str() + at + 6);
  if (DIR* dir = opendir(absl::StrCat("/proc/", pid, "/fd").c_str())) {
    while (readdir(dir) != nullptr) ++out.descriptors;
    closedir(dir);
  }
  return out;
}

class Soak {
 public:
  Soak(Cluster& cluster, double minutes, uint64_t seed)
      : cluster_(cluster), minutes_(minutes), random_(seed), ledger_(cluster.dir() + "/ledger") {}

  bool run();

 private:
  void submitter(int number);
  void strike();
  void pause_for(milliseconds time) {
    wait_until([&] { return interrupted || Clock::now() >= end_; }, time);
  }
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool settle();
  void count(const char* fault) { ++faults_[fault]; }

  Cluster& cluster_;
  const double minutes_;
  std::mt19937_64 random_;
  Ledger ledger_;
  Clock::time_point end_;
  std::map<std::string, int> faults_;
};

void Soak::submitter(int number) {
  Client client(cluster_.masters(), 120000);
  std::mt19937_64 random(static_cast<uint64_t>(number) + 1);
  const std::string work = cluster_.dir() + "/work";
  while (!interrupted && Clock::now() < end_) {
    const bool fails = random() % 10 == 0;
    const std::string command =
        ledger_.signature() +
        absl::StrFormat("; sleep 0.%02d; exit %d", static_cast<int>(random() % 40), fails ? 7 : 0);
    const int64_t id = client.submit(command, absl::StrCat("soak-", number), work);
    if (id < 0) {
      ledger_.failed_call();
    } else {
      ledger_.acknowledged(static_cast<uint64_t>(id), 1, fails ? "FAILED" : "COMPLETED");
    }
    wait_until([&] { return interrupted || Clock::now() >= end_; },
               milliseconds(20 + random() % 60));
  }
}

// One fault, and its end.
void Soak::strike() {
  const int primary = cluster_.wait_primary(-1, milliseconds(20000));
  const int other = (primary + 1 + static_cast<int>(pick(2))) % 3;
  if (primary < 0) return ledger_.failed_call();
  const auto restart = [&](Process& process, const std::function<absl::Status()>& start,
                           bool gently) {
    if (gently) {
      process.terminate();
    } else {
      process.kill9();
    }
    pause_for(milliseconds(pick(1500)));
    if (!start().ok()) ledger_.failed_call();
  };
  switch (pick(10)) {
    case 0:
    case 1:
      count("primary killed");
      return restart(
          cluster_.controller(primary), [&] { return cluster_.start_controller(primary); }, false);
    case 2:
      count("primary stopped by SIGTERM");
      return restart(
          cluster_.controller(primary), [&] { return cluster_.start_controller(primary); }, true);
    case 3:
      count("primary paused");
      cluster_.controller(primary).signal(SIGSTOP);
      pause_for(milliseconds(500 + pick(2000)));
      return cluster_.controller(primary).signal(SIGCONT);
    case 4:
      count("standby killed");
      return restart(
          cluster_.controller(other), [&] { return cluster_.start_controller(other); }, false);
    case 5:
      count("standby paused");
      cluster_.controller(other).signal(SIGSTOP);
      pause_for(milliseconds(500 + pick(2000)));
      return cluster_.controller(other).signal(SIGCONT);
    case 6: {
      count("worker killed");
      const int i = static_cast<int>(pick(2));
      return restart(
          cluster_.worker(i), [&] { return cluster_.start_worker(i); }, false);
    }
    case 7:
      count("scheduler killed");
      return restart(
          cluster_.scheduler(0), [&] { return cluster_.start_scheduler(0); }, false);
    case 8: {
      count("all controllers killed");
      for (int i = 0; i < 3; ++i) cluster_.controller(i).kill9();
      for (int i = 0; i < 3; ++i)
        if (!cluster_.start_controller(i).ok()) ledger_.failed_call();
      return;
    }
    default: {
      count("primary and worker killed");
      cluster_.worker(0).kill9();
      restart(
          cluster_.controller(primary), [&] { return cluster_.start_controller(primary); }, false);
      if (!cluster_.start_worker(0).ok()) ledger_.failed_call();
    }
  }
}

// Waits until every job has ended.
bool Soak::settle() {
  Client client(cluster_.masters(), 30000);
  return wait_until(
      [&] {
        int status = 0;
        const auto jobs = client.jobs(&status);
        if (status != 0) return interrupted.load();
        for (const auto& [id, job] : jobs)
          if (job.state < XCE_JOB_COMPLETED) return interrupted.load();
        return true;
      },
      milliseconds(180000));
}

bool Soak::run() {
  const auto begin = Clock::now();
  end_ = begin + milliseconds(static_cast<int64_t>(minutes_ * 60000));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([this, i] { submitter(i); });
  while (!interrupted && Clock::now() < end_) {
    pause_for(milliseconds(1500 + pick(2000)));
    if (Clock::now() < end_) strike();
    printf("%5.0f s: %zu jobs acknowledged\n",
           std::chrono::duration<double>(Clock::now() - begin).count(), ledger_.count());
    fflush(stdout);
  }
  for (std::thread& thread : threads) thread.join();
  const bool settled = settle();
  if (interrupted) return false;
  Client client(cluster_.masters());
  const Verdict verdict = ledger_.compare(client.jobs());
  std::vector<std::string> outcomes, faults;
  for (const auto& [name, n] : verdict.outcomes) outcomes.push_back(absl::StrCat(n, " ", name));
  for (const auto& [name, n] : faults_) faults.push_back(absl::StrCat(n, " x ", name));
  printf("\n  faults               %s\n  acknowledged         %zu\n  by outcome           %s\n",
         absl::StrJoin(faults, ", ").c_str(), verdict.acknowledged,
         absl::StrJoin(outcomes, ", ").c_str());
  printf(
      "  wrong outcome %d, lost %d, never acknowledged %d, ids twice %d, ran twice %d, never ran "
      "%d, failed calls %d\n",
      verdict.wrong_outcome, verdict.lost, verdict.unexpected, verdict.given_twice,
      verdict.ran_twice, verdict.never_ran, verdict.failed_calls);
  printf("  longest gap between acknowledged writes %.0f ms\n", verdict.longest_gap_ms);
  bool flat = true;
  for (int i = 0; i < 3; ++i) {
    const Footprint now = footprint(cluster_.controller(i).pid());
    printf("  controller %d: %ld MB, %d descriptors\n", i + 1, now.memory_kb / 1024,
           now.descriptors);
    flat = flat && now.descriptors < 300;
  }
  // No orphan: with every job ended, nothing but daemons is left.
  size_t orphans = 0;
  wait_until(
      [&] {
        orphans = 0;
        for (const std::string& line : living_descendants())
          orphans +=
              absl::StrContains(line, "sleep 0.") || absl::StrContains(line, "xce_shepherd --job");
        return orphans == 0;
      },
      milliseconds(10000));
  printf("  job processes left behind %zu\n", orphans);
  const bool good = verdict.good() && settled && flat && orphans == 0;
  printf("%s\n", good ? "The books balance." : "THE BOOKS DO NOT BALANCE.");
  return good;
}

}  // namespace

int soak_main(int argc, char** argv) {
  CLI::App app{
      "Breaks a whole cluster every few seconds while clients work, then checks the books."};
  double minutes = 5;
  uint64_t seed = 1;
  app.add_option("--minutes", minutes, "how long to break things")->check(CLI::Range(0.1, 600.0));
  app.add_option("--seed", seed, "of the order of faults");
  CLI11_PARSE(app, argc, argv);
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  ClusterOptions options;
  options.workers = 2;
  options.schedulers = 1;
  options.worker_cpus = 8;
  auto cluster = Cluster::start(options);
  if (!cluster.ok()) {
    fprintf(stderr, "soak: %s\n", cluster.status().ToString().c_str());
    kill_descendants();
    return 1;
  }
  printf("soak: seed %llu, %.1f minutes, %s\n", static_cast<unsigned long long>(seed), minutes,
         (*cluster)->dir().c_str());
  const bool good = Soak(**cluster, minutes, seed).run();
  if (!good && !interrupted) {
    const std::string kept = make_temp_dir("xce-soak-failed");
    const std::string command = absl::StrCat("cp -r ", (*cluster)->dir(), "/logs ",
                                             (*cluster)->dir(), "/ledger ", kept, " 2>/dev/null");
    if (system(command.c_str()) == 0)
      fprintf(stderr, "soak: logs and ledger are kept in %s\n", kept.c_str());
  }
  cluster->reset();
  if (interrupted) return 130;
  return good ? 0 : 1;
}

}  // namespace xce::e2e

int main(int argc, char** argv) { return xce::e2e::soak_main(argc, argv); }
