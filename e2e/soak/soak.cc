// ./dev soak: clients of every kind work while a fault strikes every few seconds, each role in turn
// (plan.h). At the end the books must balance: acknowledged = finished + pending + running, each
// job ran once, nothing is left behind, memory, descriptors and threads stayed flat, and a reader
// of the stream of changes knows it all. Prints a table; keeps the evidence when something is
// wrong. Bounded by --minutes and --faults.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "e2e/cluster/cluster.h"
#include "e2e/demo/ledger.h"
#include "e2e/soak/footprint.h"
#include "e2e/soak/load.h"
#include "e2e/soak/plan.h"
#include "e2e/soak/stream.h"
#include "libxce/model/types.h"

namespace xce::e2e {
namespace {

std::atomic<bool> interrupted{false};

struct Settings {
  double minutes = 5;
  uint64_t seed = 1;
  size_t faults = 100000;
  bool tls = false;
};

constexpr milliseconds kPrimaryLimit{30000}, kSettleLimit{180000}, kTermLimit{15000};
constexpr milliseconds kCatchUpLimit{30000}, kSampleEvery{1000};

class Soak {
 public:
  Soak(Cluster& cluster, const Settings& settings);
  bool run();

 private:
  struct Daemon {
    std::string name;
    Process* process;
    std::function<absl::Status()> start;
    int node;  // among the links
  };

  Daemon controller(int i);
  Daemon worker(int i);
  Daemon scheduler(int i);
  std::vector<Daemon> all();
  std::vector<Daemon> victims(const Fault& fault, int primary);
  void strike(const Fault& fault);
  void stop_and_start(const std::vector<Daemon>& who, const Fault& fault);
  void look_after();  // samples; whoever has ended by itself is a finding, and started again
  void pause_for(int ms);
  bool over() const { return interrupted || Clock::now() >= end_; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  void wrong(const std::string& what);
  std::map<uint64_t, JobRow> jobs(Client* client);

  void break_things();
  void settle();
  void check_books(const std::map<uint64_t, JobRow>& jobs);
  void check_stream(const std::map<uint64_t, JobRow>& jobs);
  void check_flat();
  void check_orphans();

  Cluster& cluster_;
  const Settings settings_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point end_, sampled_{};
  Ledger ledger_;
  Load load_;
  Client reader_;
  StreamReader stream_;
  Flatness flatness_;
  std::map<std::string, int> struck_;
  std::vector<std::string> wrong_;
};

LoadOptions load_options(Cluster* cluster, uint64_t seed) {
  LoadOptions options;
  options.masters = cluster->masters();
  options.work_dir = cluster->dir() + "/work";
  options.api_address = cluster->api_address();
  options.token = cluster->api_token();
  options.tls = cluster->user_certificate();
  options.seed = seed;
  options.think_ms = 120;
  options.requeue = true;
  return options;
}

Soak::Soak(Cluster& cluster, const Settings& settings)
    : cluster_(cluster),
      settings_(settings),
      end_(begin_ + milliseconds(static_cast<int64_t>(settings.minutes * 60000))),
      ledger_(cluster.dir() + "/ledger"),
      load_(load_options(&cluster, settings.seed), &ledger_),
      reader_(cluster.masters(), 60000, cluster.user_certificate()),
      stream_(Http(cluster.api_address(), cluster.api_token()), cluster.dir() + "/streams",
              [this] { return jobs(&reader_); }) {}

void Soak::wrong(const std::string& what) {
  printf("%6.1f s  WRONG: %s\n", seconds(), what.c_str());
  fflush(stdout);
  wrong_.push_back(what);
}

// Every job; asks until it is told.
std::map<uint64_t, JobRow> Soak::jobs(Client* client) {
  std::map<uint64_t, JobRow> rows;
  int status = -1;
  wait_until(
      [&] {
        rows = client->jobs_and_history(&status);
        return status >= 0 || interrupted;
      },
      kSettleLimit);
  return rows;
}

// ---- faults -------------------------------------------------------------------------------------

Soak::Daemon Soak::controller(int i) {
  return {absl::StrCat("controller ", i + 1), &cluster_.controller(i),
          [this, i] { return cluster_.start_controller(i); }, i};
}

Soak::Daemon Soak::worker(int i) {
  return {absl::StrCat("worker ", i + 1), &cluster_.worker(i),
          [this, i] { return cluster_.start_worker(i); }, Cluster::worker_node(i)};
}

Soak::Daemon Soak::scheduler(int i) {
  return {absl::StrCat("scheduler ", i + 1), &cluster_.scheduler(i),
          [this, i] { return cluster_.start_scheduler(i); }, Cluster::scheduler_node(i)};
}

std::vector<Soak::Daemon> Soak::all() {
  std::vector<Daemon> out;
  for (int i = 0; i < cluster_.controllers(); ++i) out.push_back(controller(i));
  for (int i = 0; i < cluster_.schedulers(); ++i) out.push_back(scheduler(i));
  for (int i = 0; i < cluster_.workers(); ++i) out.push_back(worker(i));
  out.push_back({"apiserver", &cluster_.apiserver(), [this] { return cluster_.start_apiserver(); },
                 Cluster::apiserver_node()});
  return out;
}

std::vector<Soak::Daemon> Soak::victims(const Fault& fault, int primary) {
  const auto which = static_cast<int>(fault.which);
  const int active = std::max(cluster_.active_scheduler(), 0);
  switch (fault.victim) {
    case Victim::kPrimary: return {controller(primary)};
    case Victim::kStandby: return {controller((primary + 1 + which % 2) % 3)};
    case Victim::kAllControllers: return {controller(0), controller(1), controller(2)};
    case Victim::kActiveScheduler: return {scheduler(active)};
    case Victim::kStandbyScheduler: return {scheduler(1 - active)};
    case Victim::kWorker: return {worker(which % cluster_.workers())};
    case Victim::kApiserver: return {all().back()};
    case Victim::kPrimaryAndWorker:
      return {controller(primary), worker(which % cluster_.workers())};
  }
  return {};
}

void Soak::stop_and_start(const std::vector<Daemon>& who, const Fault& fault) {
  for (const Daemon& daemon : who)
    if (fault.harm == Harm::kTerminate) daemon.process->signal(SIGTERM);
  for (const Daemon& daemon : who) {
    if (fault.harm == Harm::kKill) {
      daemon.process->kill9();
      continue;
    }
    const int code = daemon.process->wait(kTermLimit);
    daemon.process->kill9();
    if (code != 0)
      wrong(absl::StrCat(daemon.name, code < 0 ? " did not end" : " ended with code ",
                         code < 0 ? "" : absl::StrCat(code), " on SIGTERM"));
  }
  pause_for(fault.lasts_ms);
  for (const Daemon& daemon : who)
    if (const absl::Status started = daemon.start(); !started.ok())
      wrong(absl::StrCat(daemon.name, " cannot be started: ", started.ToString()));
}

// One fault, and its end.
void Soak::strike(const Fault& fault) {
  const int primary = cluster_.wait_primary(-1, kPrimaryLimit);
  if (primary < 0) return wrong(absl::StrCat("no primary within ", kPrimaryLimit.count(), " ms"));
  const std::vector<Daemon> who = victims(fault, primary);
  const std::string names = absl::StrJoin(
      who, ", ", [](std::string* out, const Daemon& daemon) { out->append(daemon.name); });
  printf("%6.1f s  %s (%s), %zu jobs acknowledged\n", seconds(), describe(fault).c_str(),
         names.c_str(), ledger_.count());
  fflush(stdout);
  ++struck_[name_of(fault.victim)];
  ++struck_[name_of(fault.harm)];
  const std::map<Harm, LinkMode> modes = {{Harm::kFreeze, LinkMode::kFrozen},
                                          {Harm::kMute, LinkMode::kMute},
                                          {Harm::kDeaf, LinkMode::kDeaf},
                                          {Harm::kCut, LinkMode::kCut}};
  const auto mode = modes.find(fault.harm);
  if (mode != modes.end()) {
    for (const Daemon& daemon : who) cluster_.links().set_node(daemon.node, mode->second);
    pause_for(fault.lasts_ms);
    return cluster_.links().heal();
  }
  if (fault.harm != Harm::kPause) return stop_and_start(who, fault);
  for (const Daemon& daemon : who) daemon.process->signal(SIGSTOP);
  pause_for(fault.lasts_ms);
  for (const Daemon& daemon : who) daemon.process->signal(SIGCONT);
}

void Soak::look_after() {
  if (Clock::now() < sampled_ + kSampleEvery) return;
  sampled_ = Clock::now();
  for (const Daemon& daemon : all()) {
    const pid_t pid = daemon.process->pid();
    if (pid <= 0) continue;  // killed just now
    if (!daemon.process->alive()) {
      wrong(absl::StrCat(daemon.name, " ended by itself with code ",
                         daemon.process->wait(milliseconds(0))));
      if (!daemon.start().ok()) wrong(daemon.name + " cannot be started");
    } else if (const auto now = footprint(pid)) {
      flatness_.sample(daemon.name, pid, seconds(), *now, ledger_.count());
    }
  }
}

void Soak::pause_for(int ms) {
  const auto until = Clock::now() + milliseconds(ms);
  wait_until(
      [&] {
        look_after();
        return interrupted || Clock::now() >= until;
      },
      milliseconds(ms + 1000));
}

void Soak::break_things() {
  for (const Fault& fault : make_plan(settings_.seed, settings_.faults)) {
    pause_for(fault.calm_ms);
    if (over()) return;
    strike(fault);
  }
  while (!over()) pause_for(100);
}

// ---- the end ------------------------------------------------------------------------------------

void Soak::settle() {
  std::string left;
  const bool ended = wait_until(
      [&] {
        look_after();
        left.clear();
        for (const auto& [id, job] : jobs(&reader_))
          if (job.state < XCE_JOB_COMPLETED)
            absl::StrAppend(&left, "\n  job ", id, " of ", job.name, " is ",
                            xce::name_of(static_cast<JobState>(job.state)), " on '", job.host,
                            "', attempt ", job.attempt, ": ", job.reason);
        return interrupted || left.empty();
      },
      kSettleLimit);
  if (!ended) wrong("jobs that have not ended:" + left.substr(0, 4000));
}

void Soak::check_books(const std::map<uint64_t, JobRow>& jobs) {
  printf("\n  %-10s %12s %9s %8s %8s %8s %18s\n", "client", "acknowledged", "finished", "pending",
         "running", "repeats", "longest request");
  for (const ClientBalance& of : load_.balance(jobs)) {
    printf("  %-10s %12zu %9zu %8zu %8zu %8zu %15.0f ms\n", of.name.c_str(), of.books.acknowledged,
           of.finished, of.pending, of.running, of.books.repeats, of.books.longest_ms);
    if (!of.even()) wrong(absl::StrCat("the books of ", of.name, " are not even"));
  }
  const Verdict verdict = ledger_.compare(jobs);
  std::vector<std::string> outcomes;
  for (const auto& [name, n] : verdict.outcomes) outcomes.push_back(absl::StrCat(n, " ", name));
  printf("  by outcome: %s; started again after their host was lost: %d\n",
         absl::StrJoin(outcomes, ", ").c_str(), verdict.attempts_again);
  printf(
      "  lost %d, never acknowledged %d, ids given twice %d, ran twice %d, completed and never ran "
      "%d, wrong outcome %d, failed calls %d\n",
      verdict.lost, verdict.unexpected, verdict.given_twice, verdict.ran_twice, verdict.never_ran,
      verdict.wrong_outcome, verdict.failed_calls);
  printf("  longest gap between two acknowledged writes: %.0f ms\n", verdict.longest_gap_ms);
  if (!verdict.good()) wrong("the books: see above");
  for (const std::string& finding : verdict.findings) wrong(finding);
  for (const std::string& failure : load_.failures()) wrong(failure);
}

void Soak::check_stream(const std::map<uint64_t, JobRow>& jobs) {
  std::vector<std::string> missing = stream_.wait_for(jobs, kCatchUpLimit);
  const StreamCounts counts = stream_.counts();
  printf(
      "  stream: %zu events, %zu connections, %zu resumed, %zu gone (410), %zu gaps, %zu "
      "listings\n",
      counts.events, counts.connections, counts.resumes, counts.gone, counts.gaps, counts.listings);
  if (missing.empty()) return;
  const size_t all = missing.size();
  if (all > 5) missing.resize(5);
  wrong(absl::StrCat("the stream's reader does not know how ", all,
                     " jobs ended: ", absl::StrJoin(missing, ", ")));
}

void Soak::check_flat() {
  const FlatBounds bounds;
  printf("\n  %-13s %6s %25s %13s %9s\n", "daemon", "starts", "memory, warm to end", "descriptors",
         "threads");
  for (const Flatness::Row& row : flatness_.rows()) {
    printf("  %-13s %6d %11.1f to %6.1f MiB %+13lld %+9lld%s\n", row.daemon.c_str(), row.lives,
           static_cast<double>(row.warm.memory_kb) / 1024,
           static_cast<double>(row.end.memory_kb) / 1024,
           static_cast<long long>(row.most_descriptors), static_cast<long long>(row.most_threads),
           row.judged == 0 ? "  (no life was long enough to tell)" : "");
    if (!row.wrong.empty()) wrong(absl::StrCat(row.daemon, ": ", row.wrong));
  }
  printf(
      "  growth within a life, of the longest; allowed: %lld MiB and %lld KiB a job, %lld "
      "descriptors, %lld threads\n",
      static_cast<long long>(bounds.memory_kb / 1024),
      static_cast<long long>(bounds.memory_kb_per_job), static_cast<long long>(bounds.descriptors),
      static_cast<long long>(bounds.threads));
}

// With every job ended, nothing but daemons is left.
void Soak::check_orphans() {
  std::vector<std::string> left;
  wait_until(
      [&] {
        left.clear();
        for (const std::string& line : living_descendants()) {
          bool daemon = absl::StrContains(line, "xce_shepherd launcher");
          for (const char* name :
               {"xce_controller", "xce_keeper", "xce_scheduler", "xcecd", "xce_apiserver"})
            daemon = daemon || absl::StrContains(line, name);
          if (!daemon) left.push_back(line);
        }
        return left.empty();
      },
      milliseconds(10000));
  printf("  job processes left behind: %zu\n", left.size());
  for (const std::string& line : left) wrong("left behind: " + line);
}

bool Soak::run() {
  stream_.start();
  load_.start();
  break_things();
  load_.stop();
  if (interrupted) return false;
  settle();
  const std::map<uint64_t, JobRow> all_jobs = jobs(&reader_);
  check_books(all_jobs);
  check_stream(all_jobs);
  stream_.stop();
  check_orphans();
  check_flat();
  std::vector<std::string> faults;
  for (const auto& [name, n] : struck_) faults.push_back(absl::StrCat(n, " x ", name));
  printf("  faults: %s\n", absl::StrJoin(faults, ", ").c_str());
  if (interrupted) return false;
  printf("%s\n", wrong_.empty() ? "The books balance." : "SOMETHING IS WRONG:");
  for (const std::string& what : wrong_) printf("  %s\n", what.c_str());
  fflush(stdout);
  return wrong_.empty();
}

// Everything that the daemons left on disk stays; under Bazel, where that is removed, their logs.
void keep_evidence(Cluster* cluster, const Settings& settings) {
  std::string place = cluster->dir();
  cluster->keep_dir();
  if (const char* outputs = getenv("TEST_UNDECLARED_OUTPUTS_DIR")) {
    run("/bin/cp", {"-r", place + "/logs", place + "/ledger", outputs});
    place = outputs;
  }
  fprintf(stderr, "soak: logs, data directories and the jobs' ledger are kept in %s\n",
          place.c_str());
  fprintf(stderr, "soak: the same faults again: ./dev soak --seed %llu --minutes %g%s\n",
          static_cast<unsigned long long>(settings.seed), settings.minutes,
          settings.tls ? " --tls" : "");
}

}  // namespace

int soak_main(int argc, char** argv) {
  CLI::App app{
      "Breaks a whole cluster every few seconds while clients work, then checks the books."};
  Settings settings;
  app.add_option("--minutes", settings.minutes, "how long to break things")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "of the plan of faults: the same seed, the same plan")
      ->capture_default_str();
  app.add_option("--faults", settings.faults, "at most so many")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_flag("--tls", settings.tls, "everything speaks TLS, REST requests carry tokens");
  CLI11_PARSE(app, argc, argv);
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  ClusterOptions options;
  options.workers = 2;
  options.schedulers = 2;
  options.apiserver = true;
  options.tls = settings.tls;
  options.worker_cpus = 8;
  options.links = true;
  options.daemon_links = true;
  // Leases short enough to run out now and then, logs short enough to be left behind.
  options.controller_args = {"--lease-ms",           "4000",    "--host-grace-ms",     "1500",
                             "--snapshot-log-bytes", "2097152", "--snapshot-trailing", "512"};
  options.worker_args = {"--hello-interval-ms", "300"};
  auto cluster = Cluster::start(options);
  if (!cluster.ok()) {
    fprintf(stderr, "soak: %s\n", cluster.status().ToString().c_str());
    kill_descendants();
    return 1;
  }
  printf("soak: seed %llu, %g minutes, %s\n", static_cast<unsigned long long>(settings.seed),
         settings.minutes, (*cluster)->dir().c_str());
  const bool good = Soak(**cluster, settings).run();
  if (!good && !interrupted) keep_evidence(cluster->get(), settings);
  cluster->reset();
  if (interrupted) return 130;
  return good ? 0 : 1;
}

}  // namespace xce::e2e

int main(int argc, char** argv) { return xce::e2e::soak_main(argc, argv); }
