// ./dev demo: a whole XCE in a temporary directory runs real job scripts while its primaries are
// killed and paused under them. Prints a timeline and a closing table; exits non-zero when anything
// was lost or done twice.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "e2e/cluster/cluster.h"
#include "e2e/demo/ledger.h"

namespace xce::e2e {
namespace {

std::atomic<bool> interrupted{false};

// Plain lines anywhere; on a terminal a progress bar below them.
class Timeline {
 public:
  Timeline() : terminal_(isatty(1) != 0) {}

  void say(const std::string& line) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (terminal_) printf("\r\033[K");
    printf("%s %s\n", stamp().c_str(), line.c_str());
    fflush(stdout);
  }
  void progress(size_t ended, size_t running, size_t all) {
    std::lock_guard<std::mutex> lock(mutex_);
    constexpr size_t kWidth = 40;
    if (terminal_) {
      const size_t filled = all == 0 ? 0 : ended * kWidth / all;
      printf("\r\033[K[%s%s] %zu of %zu jobs ended, %zu running", std::string(filled, '#').c_str(),
             std::string(kWidth - filled, '.').c_str(), ended, all, running);
    } else if (all > 0 && (ended * 10 / all != last_tenth_ || ended == all)) {
      if (ended * 10 / all == last_tenth_) return;
      last_tenth_ = ended * 10 / all;
      printf("%s progress: %zu of %zu jobs ended, %zu running\n", stamp().c_str(), ended, all,
             running);
    }
    fflush(stdout);
  }
  void end_progress() {
    if (terminal_) printf("\n");
  }

 private:
  std::string stamp() const {
    return absl::StrFormat("%6.2f s ",
                           std::chrono::duration<double>(Clock::now() - begin_).count());
  }
  const bool terminal_;
  const Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;
  size_t last_tenth_ = 0;
};

std::string find_example(const std::string& name) {
  for (const char* env : {"XCE_EXAMPLES"})
    if (const char* dir = getenv(env)) return absl::StrCat(dir, "/", name);
  std::string up;
  for (int i = 0; i < 6; ++i, up += "../")
    if (access((up + "examples/" + name).c_str(), R_OK) == 0) return up + "examples/" + name;
  return "";
}

struct Example {
  const char* file;
  const char* outcome;  // what it must end in
  int array_tasks;
  int time_limit_s;
};
constexpr Example kExamples[] = {
    {"compile.sh", "COMPLETED", 0, 0},     {"wordcount.sh", "COMPLETED", 0, 0},
    {"array_task.sh", "COMPLETED", 10, 0}, {"fails.sh", "FAILED", 0, 0},
    {"long.sh", "KILLED", 0, 0},           {"overtime.sh", "TIMEOUT", 0, 1},
};

// A script with a line added after its first, so that each run signs the ledger by itself.
std::string signed_script(const std::string& path, const Ledger& ledger) {
  std::string text = read_file(path);
  const size_t line = text.find('\n');
  if (line == std::string::npos) return text;
  return text.substr(0, line + 1) + ledger.signature() + "\n" + text.substr(line + 1);
}

class Demo {
 public:
  Demo(Cluster& cluster, Timeline& timeline, int seconds)
      : cluster_(cluster),
        timeline_(timeline),
        seconds_(seconds),
        ledger_(cluster.dir() + "/ledger") {}

  bool run();

 private:
  bool submit_example(Client& client, const Example& example);
  void submitter(int number);
  void pacer();
  bool fail_over();
  int64_t outage(const std::string& what, int node);
  bool drain();
  void table(const Verdict& verdict) const;

  Cluster& cluster_;
  Timeline& timeline_;
  const int seconds_;
  Ledger ledger_;
  std::atomic<bool> stop_{false};
  std::vector<std::string> elections_;
};

bool Demo::submit_example(Client& client, const Example& example) {
  const std::string path = find_example(example.file);
  if (path.empty()) {
    timeline_.say(
        absl::StrCat("cannot find examples/", example.file, ": run from the project's folder"));
    ledger_.failed_call();
    return false;
  }
  const std::string script = signed_script(path, ledger_);
  const std::string work = cluster_.dir() + "/work";
  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  spec.name = example.file;
  spec.script = script.data();
  spec.script_len = script.size();
  spec.work_dir = work.c_str();
  spec.time_limit_s = example.time_limit_s;
  const std::string path_env =
      absl::StrCat("PATH=", getenv("PATH") != nullptr ? getenv("PATH") : "/usr/bin:/bin");
  const char* env[] = {path_env.c_str()};
  spec.env = env;
  spec.nenv = 1;
  std::vector<uint32_t> tasks;
  for (int i = 0; i < example.array_tasks; ++i) tasks.push_back(i);
  spec.array = tasks.data();
  spec.narray = tasks.size();
  uint32_t count = 0;
  const int64_t id = client.submit(spec, &count);
  if (id < 0) {
    xce_error_t error;
    xcecli_last_error(&error);
    timeline_.say(absl::StrCat("submission failed: ", xce_errname(static_cast<int>(id)), ": ",
                               error.message));
    ledger_.failed_call();
    return false;
  }
  ledger_.acknowledged(id, std::max(count, 1u), example.outcome);
  if (std::string(example.outcome) == "KILLED") {
    const uint64_t ids[] = {static_cast<uint64_t>(id)};
    // Let it run for a moment, as a person would, then kill it.
    wait_until([&] { return client.jobs()[id].state >= XCE_JOB_RUNNING || stop_ || interrupted; },
               milliseconds(15000));
    const int rc = xcecli_jobctrl(client.ctx(), ids, 1, XCE_JOBCTRL_KILL, 0, false);
    if (rc < 0 && !interrupted) {
      timeline_.say(absl::StrCat("kill of job ", id, " failed: ", xce_errname(rc)));
      ledger_.failed_call();
    }
  }
  return true;
}

// A person at a prompt: one script after the other.
void Demo::submitter(int number) {
  Client client(cluster_.masters(), 60000);
  for (size_t i = number; !stop_ && !interrupted; ++i) {
    submit_example(client, kExamples[i % std::size(kExamples)]);
    wait_until([&] { return stop_ || interrupted; }, milliseconds(700));
  }
}

// A steady stream of small jobs, to measure the pause that callers see.
void Demo::pacer() {
  Client client(cluster_.masters(), 60000);
  const std::string command = ledger_.signature();
  while (!stop_ && !interrupted) {
    const int64_t id = client.submit(command, "tick", cluster_.dir() + "/work");
    if (id < 0) {
      timeline_.say(absl::StrCat("submission failed: ", xce_errname(static_cast<int>(id))));
      ledger_.failed_call();
    } else {
      ledger_.acknowledged(id, 1, "COMPLETED");
    }
    wait_until([&] { return stop_ || interrupted; }, milliseconds(20));
  }
}

// Waits for another primary than `node`; the time since `begin`, by the clock of this process, in
// milliseconds.
int64_t Demo::outage(const std::string& what, int node) {
  const auto begin = Clock::now();
  const int next = cluster_.wait_primary(node, milliseconds(20000));
  const int64_t took = std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count();
  if (next < 0) {
    timeline_.say("no new primary within 20 s");
    ledger_.failed_call();
    return -1;
  }
  timeline_.say(absl::StrCat("controller ", next + 1, " is primary, seen ", took, " ms later"));
  elections_.push_back(absl::StrCat(what, " ", took, " ms"));
  return took;
}

bool Demo::fail_over() {
  const auto pause = [&](int ms) {
    return !wait_until([&] { return interrupted.load(); }, milliseconds(ms));
  };
  if (!pause(seconds_ * 250)) return false;
  const int first = cluster_.wait_primary(-1, milliseconds(20000));
  if (first < 0) return false;
  timeline_.say(
      absl::StrCat("kill -9 controller ", first + 1, ", the primary, in the middle of submitting"));
  cluster_.controller(first).kill9();
  if (outage("kill -9", first) < 0 || !pause(seconds_ * 150)) return false;
  timeline_.say(absl::StrCat("controller ", first + 1, " restarts"));
  if (!cluster_.start_controller(first).ok() || !pause(seconds_ * 100)) return false;
  const int second = cluster_.wait_primary(-1, milliseconds(20000));
  if (second < 0) return false;
  timeline_.say(absl::StrCat("SIGSTOP controller ", second + 1,
                             ", the primary: its sockets stay open, it answers nothing"));
  cluster_.controller(second).signal(SIGSTOP);
  if (outage("SIGSTOP", second) < 0 || !pause(seconds_ * 150)) return false;
  timeline_.say(absl::StrCat("controller ", second + 1, " wakes up (SIGCONT), then restarts"));
  cluster_.controller(second).signal(SIGCONT);
  if (!pause(seconds_ * 50)) return false;
  cluster_.controller(second).terminate();
  if (!cluster_.start_controller(second).ok()) return false;
  return pause(seconds_ * 200);
}

bool Demo::drain() {
  Client client(cluster_.masters(), 30000);
  return wait_until(
      [&] {
        if (interrupted) return true;
        int status = 0;
        const auto jobs = client.jobs(&status);
        if (status != 0) return false;
        size_t ended = 0, running = 0;
        for (const auto& [id, job] : jobs) {
          ended += job.state >= XCE_JOB_COMPLETED;
          running += job.state == XCE_JOB_RUNNING || job.state == XCE_JOB_STARTING;
        }
        timeline_.progress(ended, running, jobs.size());
        return ended == jobs.size();
      },
      milliseconds(120000));
}

void Demo::table(const Verdict& verdict) const {
  std::vector<std::string> outcomes;
  for (const auto& [name, count] : verdict.outcomes)
    outcomes.push_back(absl::StrCat(count, " ", name));
  const auto row = [](const char* what, const std::string& value) {
    printf("  %-44s %s\n", what, value.c_str());
  };
  printf("\n");
  row("jobs acknowledged", absl::StrCat(verdict.acknowledged));
  row("finished, by outcome", absl::StrJoin(outcomes, ", "));
  row("ended otherwise than the script must", absl::StrCat(verdict.wrong_outcome));
  row("lost", absl::StrCat(verdict.lost));
  row("done twice (ids given twice, runs twice)",
      absl::StrCat(verdict.given_twice + verdict.ran_twice));
  row("in the cluster but never acknowledged", absl::StrCat(verdict.unexpected));
  row("calls that failed", absl::StrCat(verdict.failed_calls));
  row("longest gap between acknowledged writes",
      absl::StrFormat("%.0f ms", verdict.longest_gap_ms));
  row("new primary seen after", absl::StrJoin(elections_, ", "));
  printf("\n");
}

bool Demo::run() {
  timeline_.say(
      "three clients submit scripts of examples/; a fourth submits a small job every 20 ms");
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([this, i] { submitter(i * 2); });
  threads.emplace_back([this] { pacer(); });
  std::atomic<bool> watching{true};
  std::thread watcher([&] {
    Client client(cluster_.masters(), 5000);
    while (watching && !interrupted) {
      int status = 0;
      const auto jobs = client.jobs(&status);
      size_t ended = 0, running = 0;
      for (const auto& [id, job] : jobs) {
        ended += job.state >= XCE_JOB_COMPLETED;
        running += job.state == XCE_JOB_RUNNING;
      }
      if (status == 0) timeline_.progress(ended, running, jobs.size());
      wait_until([&] { return !watching || interrupted; }, milliseconds(300));
    }
  });
  const bool went = fail_over();
  stop_ = true;
  for (std::thread& thread : threads) thread.join();
  watching = false;
  watcher.join();
  if (interrupted) return false;
  timeline_.say(absl::StrCat("submitting is over: ", ledger_.count(),
                             " jobs acknowledged; waiting for them to end"));
  const bool ended = drain();
  timeline_.end_progress();
  if (interrupted) return false;
  Client client(cluster_.masters());
  const Verdict verdict = ledger_.compare(client.jobs());
  table(verdict);
  if (!ended) printf("some jobs had not ended after 120 s\n");
  if (!went) printf("the failovers did not all happen\n");
  const bool good = verdict.good() && ended && went;
  printf("%s\n", good ? "Nothing was lost and nothing was done twice."
                      : "THE PROMISE WAS BROKEN: see the table.");
  return good;
}

void show_use(const Cluster& cluster) {
  const std::string xce = find_program("cli/xce");
  printf(
      "\nThe cluster stays up until Ctrl-C. In another terminal:\n\n  export XCE_MASTERS=%s\n  "
      "alias xce=%s\n"
      "  xce submit examples/wordcount.sh\n  xce jobs\n  xce cluster status\n  curl "
      "http://%s/api/v1/jobs\n\nLogs: %s/logs\n",
      cluster.masters().c_str(), xce.c_str(), cluster.api_address().c_str(), cluster.dir().c_str());
  fflush(stdout);
  while (!interrupted) pause();
}

}  // namespace

int demo_main(int argc, char** argv) {
  CLI::App app{"Runs a whole XCE cluster and breaks it while it works."};
  bool keep = false;
  int seconds = 10;
  app.add_flag("--keep", keep, "leave the cluster up at the end and print the commands to use it");
  app.add_option("--seconds", seconds, "how long to submit jobs")->check(CLI::Range(2, 600));
  CLI11_PARSE(app, argc, argv);

  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);

  Timeline timeline;
  ClusterOptions options;
  options.workers = 2;
  options.schedulers = 1;
  options.apiserver = true;
  timeline.say("starting three controllers, a scheduler, two workers and the apiserver");
  auto cluster = Cluster::start(options);
  if (!cluster.ok()) {
    fprintf(stderr, "demo: %s\n", cluster.status().ToString().c_str());
    kill_descendants();
    return 1;
  }
  timeline.say(absl::StrCat("the cluster is up: controllers ", (*cluster)->masters(), ", http://",
                            (*cluster)->api_address(), "/api/v1/jobs"));
  const bool good = Demo(**cluster, timeline, seconds).run();
  if (!good && !interrupted) {
    // Keep the evidence.
    const std::string kept = make_temp_dir("xce-demo-failed");
    const std::string command = absl::StrCat("cp -r ", (*cluster)->dir(), "/logs ",
                                             (*cluster)->dir(), "/ledger ", kept, " 2>/dev/null");
    if (system(command.c_str()) == 0) fprintf(stderr, "demo: logs are kept in %s\n", kept.c_str());
  }
  if (keep && !interrupted) show_use(**cluster);
  timeline.say("stopping everything and removing the temporary directory");
  cluster->reset();
  const bool clean = living_descendants().empty();
  if (!clean) fprintf(stderr, "demo: processes were left behind\n");
  if (interrupted && !keep) return 130;
  return good && clean ? 0 : 1;
}

}  // namespace xce::e2e

int main(int argc, char** argv) { return xce::e2e::demo_main(argc, argv); }
