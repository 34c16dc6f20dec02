// xce_scheduler: joins the cluster, decides which waiting job starts where, and publishes its
// decisions.
//
// Threads: main publishes; a picker and an allocator (pipeline/); one waits for signals; libxce has
// its own.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <xce/client.h>
#include <xce/cluster.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "libxce/base/log.h"
#include "libxce/base/settings_file.h"
#include "libxce/base/trail.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/pipeline/reach.h"
#include "scheduler/pipeline/xce_port.h"
#include "scheduler/sim/command.h"

namespace {

constexpr char kVersion[] = "0.1.0";
constexpr int kUnreachableAfterS = 10;

struct Flags {
  std::string peers = std::string(XCE_DEFAULT_HOST) + ":" + std::to_string(XCE_DEFAULT_PORT);
  std::string name;
  std::string log_level = "info";
  std::string log_format = "auto";
  std::string tls_ca, tls_cert, tls_key;
  int start_timeout_s = 0;
  bool exit_if_unreachable = false;
  std::string backfill = "easy";
  int64_t fair_share_half_life_s = 0;
  std::string dead_dependencies = "end";
  xce::sched::SimFlags sim;
  xce::sched::GenerateOptions generate;
};

int64_t wall_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

void log_line(xce::sched::LogLevel level, const std::string& line) {
  using xce::sched::LogLevel;
  switch (level) {
    case LogLevel::kDebug: spdlog::debug("{}", line); break;
    case LogLevel::kInfo: spdlog::info("{}", line); break;
    case LogLevel::kWarn: spdlog::warn("{}", line); break;
    case LogLevel::kError: spdlog::error("{}", line); break;
  }
}

void log_of_library(xce_log_level_t level, const char* line, void*) {
  using xce::sched::LogLevel;
  log_line(level == XCE_LOG_DEBUG  ? LogLevel::kDebug
           : level == XCE_LOG_INFO ? LogLevel::kInfo
           : level == XCE_LOG_WARN ? LogLevel::kWarn
                                   : LogLevel::kError,
           std::string("libxce: ") + line);
}

std::string host_name() {
  char name[XCE_MAXHOSTNAME_LEN] = "scheduler";
  gethostname(name, sizeof name - 1);
  return name;
}

// One candidate or many, the same way (A1.5). False, with a message on standard error, when the
// list is unusable.
bool make_config(const Flags& flags, xce_client_config_t* config) {
  char error[256] = "";
  xce_cluster_config_t cluster;
  if (xce_parse_peers(flags.peers.c_str(), &cluster, error, sizeof error) < 0 ||
      xce_cluster_config_validate(&cluster, error, sizeof error) < 0) {
    fprintf(stderr, "xce_scheduler: --peers %s: %s\n", flags.peers.c_str(), error);
    return false;
  }
  xce_client_config_init(config);
  if (xce_cluster_config_to_client_config(&cluster, config) < 0) return false;
  config->role = HostRole_scheduler;
  snprintf(config->name, sizeof config->name, "%s", flags.name.c_str());
  if (xce_client_config_set_tls(config, flags.tls_ca.c_str(), flags.tls_cert.c_str(),
                                flags.tls_key.c_str()) < 0) {
    fprintf(stderr, "xce_scheduler: a path among --tls-ca, --tls-cert, --tls-key is too long\n");
    return false;
  }
  for (int i = 0; i < config->nmasters; ++i) {
    spdlog::info("{}", xce::candidate_line(i, config->nmasters, config->masters[i],
                                           config->master_ports[i]));
  }
  // As the worker does: an answer that never comes holds up all decisions for this long at most.
  config->call_deadline_ms = 10000;
  return true;
}

// Waits for SIGTERM or SIGINT, and for the first join to succeed in time.
class Watch {
 public:
  Watch(const Flags& flags, xce::sched::Pipeline* pipeline, xce::sched::XcePort* port,
        const sigset_t& signals)
      : flags_(flags), pipeline_(pipeline), port_(port), signals_(signals), thread_([this] {
          run();
        }) {}
  ~Watch() {
    done_ = true;
    thread_.join();
  }
  bool gave_up() const { return gave_up_; }

 private:
  void run() {
    const auto began = std::chrono::steady_clock::now();
    bool told = false;
    while (!done_) {
      const timespec wait = {0, 50'000'000};
      const int signal = sigtimedwait(&signals_, nullptr, &wait);
      if (signal > 0) {
        spdlog::info("{}: stopping", strsignal(signal));
        return stop();
      }
      if (!told && pipeline_->ready()) {
        told = true;
        spdlog::info("xce_scheduler ready, joined through {}", port_->current_master());
      }
      const auto waited = std::chrono::steady_clock::now() - began;
      if (!told && flags_.start_timeout_s > 0 &&
          waited > std::chrono::seconds(flags_.start_timeout_s)) {
        spdlog::error(
            "could not join the cluster within {} s; controllers tried: {}. Is one running there?",
            flags_.start_timeout_s, flags_.peers);
        gave_up_ = true;
        return stop();
      }
    }
  }
  void stop() {
    pipeline_->stop();
    port_->stop();
  }

  const Flags& flags_;
  xce::sched::Pipeline* const pipeline_;
  xce::sched::XcePort* const port_;
  const sigset_t signals_;
  std::atomic<bool> done_{false};
  std::atomic<bool> gave_up_{false};
  std::thread thread_;
};

int run(const Flags& flags) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread: only Watch takes them
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a write over a size limit is an error to report, not a reason to die

  xce_client_config_t config;
  if (!make_config(flags, &config)) return 2;
  xce_set_log_callback(&log_of_library, nullptr);
  xce::sched::XcePort port;
  xce::sched::PipelineOptions options;
  options.round.backfill = *xce::sched::parse_policy(flags.backfill);
  options.fair_share_half_life_ms = flags.fair_share_half_life_s * 1000;
  if (options.fair_share_half_life_ms > 0) options.publisher.past_jobs = 20'000;
  options.reasons.end_hopeless = flags.dead_dependencies == "end";
  xce::sched::Pipeline pipeline(&port, options, &wall_ms, &log_line);
  int rc = port.open(config, &pipeline);
  if (rc < 0) {
    spdlog::error("cannot start: {}", port.last_error());
    return 1;
  }
  bool gave_up;
  {
    Watch watch(flags, &pipeline, &port, signals);  // from here on signals are heard
    const xce::sched::ReachCalls calls = {[&port](int ms) { return port.reach(ms); },
                                          [&port] { return port.last_trail(); }};
    rc = xce::sched::reach_cluster(calls, &log_line);
    if (rc < 0 && rc != -ECANCELED)
      spdlog::warn("the first hello failed, going on trying: {}", port.last_error());
    pipeline.run();
    gave_up = watch.gave_up();
  }
  port.close();
  spdlog::info("stopped: {}", pipeline.stats());
  return gave_up ? 1 : 0;
}

// The simulator's: no cluster is needed.
void add_sim_flags(CLI::App* app, Flags* flags) {
  const char* group = "Simulation";
  flags->sim.policy = {"fcfs", "easy", "conservative"};
  CLI::Option* sim =
      app->add_option("--sim", flags->sim.trace,
                      "run this trace (Standard Workload Format) through the policy, print waits, "
                      "slowdowns and utilization, and exit")
          ->group(group);
  app->add_option("--policy", flags->sim.policy, "policies to compare: fcfs, easy, conservative")
      ->delimiter(',')
      ->check(CLI::IsMember({"fcfs", "easy", "conservative"}))
      ->capture_default_str()
      ->needs(sim)
      ->group(group);
  app->add_option("--cpus", flags->sim.cpus, "processors, instead of what the trace's header says")
      ->check(CLI::Range(1u, 1'000'000'000u))
      ->group(group);
  app->add_flag("--json", flags->sim.json, "print JSON")->needs(sim)->group(group);
  app->add_option("--sim-generate", flags->generate.jobs,
                  "print a made-up trace of so many jobs, and exit")
      ->check(CLI::Range(1, 10'000'000))
      ->excludes(sim)
      ->group(group);
  app->add_option("--seed", flags->generate.seed, "of the made-up trace")
      ->capture_default_str()
      ->group(group);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  flags.name = host_name();
  CLI::App app("XCE's scheduler: decides which waiting job starts where.", "xce_scheduler");
  app.set_version_flag("--version", std::string("xce_scheduler ") + kVersion);
  app.add_option("--peers", flags.peers, "controllers, [name=]host:port[,...]")
      ->envname("XCE_MASTERS")
      ->capture_default_str();
  app.add_option("--name", flags.name, "name of this scheduler in the cluster")
      ->capture_default_str();
  app.add_option("--tls-ca", flags.tls_ca,
                 "PEM file of the authority that signs the cluster's certificates; "
                 "with --tls-cert and --tls-key: TLS to the controllers")
      ->envname("XCE_TLS_CA");
  app.add_option("--tls-cert", flags.tls_cert, "PEM file of this scheduler's certificate")
      ->envname("XCE_TLS_CERT");
  app.add_option("--tls-key", flags.tls_key, "PEM file of its key")->envname("XCE_TLS_KEY");
  app.add_flag("--exit-if-unreachable", flags.exit_if_unreachable,
               "exit with code 1 when no controller could be joined within --start-timeout-s (10 s "
               "unless given), instead of waiting for one");
  app.add_option("--start-timeout-s", flags.start_timeout_s,
                 "give up when not joined by then; 0: wait for ever")
      ->check(CLI::Range(0, 86'400))
      ->capture_default_str();
  app.add_option(
         "--backfill", flags.backfill,
         "what may start while the first job in line waits: none, easy (what does not delay "
         "it), conservative (what delays nobody before it)")
      ->check(CLI::IsMember({"none", "easy", "conservative"}))
      ->capture_default_str();
  app.add_option("--fair-share-half-life-s", flags.fair_share_half_life_s,
                 "among jobs of one priority, users who used less go first; usage halves in this "
                 "time (a week: 604800); 0: first come, first served")
      ->check(CLI::Range(int64_t{0}, int64_t{3'153'600'000}))
      ->capture_default_str();
  app.add_option(
         "--dead-dependencies", flags.dead_dependencies,
         "what becomes of a job that waits for what can never happen (afterok of a job that "
         "failed): end, or wait")
      ->check(CLI::IsMember({"end", "wait"}))
      ->capture_default_str();
  add_sim_flags(&app, &flags);
  app.add_option("--log-level", flags.log_level, "trace, debug, info, warn, error or off")
      ->capture_default_str();
  app.add_option("--log-format", flags.log_format,
                 "text, json (an object a line), or auto: text on a terminal, else json")
      ->capture_default_str();
  xce::use_settings_file(&app, "scheduler", xce::Masters::kArePeers);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    fprintf(stderr, "xce_scheduler: %s\nTry xce_scheduler --help.\n", e.what());
    return 2;
  }
  if (!flags.sim.trace.empty()) {
    flags.sim.fair_share_half_life_s = flags.fair_share_half_life_s;
    return xce::sched::run_sim(flags.sim);
  }
  if (app.count("--sim-generate") > 0) {
    if (flags.sim.cpus > 0) flags.generate.cpus = flags.sim.cpus;
    return xce::sched::run_generate(flags.generate);
  }
  if (flags.exit_if_unreachable && flags.start_timeout_s == 0)
    flags.start_timeout_s = kUnreachableAfterS;
  const std::string wrong = xce::log::init("xce_scheduler", flags.log_level, flags.log_format);
  if (!wrong.empty()) {
    fprintf(stderr, "xce_scheduler: %s\nTry xce_scheduler --help.\n", wrong.c_str());
    return 2;
  }
  return run(flags);
}
