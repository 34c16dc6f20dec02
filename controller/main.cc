// xce_controller: one of the controllers of an XCE cluster. Exit codes: 0 stopped as asked, 1 could
// not start or go on, 2 bad command line.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <random>
#include <string>

#include "controller/keeper.h"
#include "controller/options.h"
#include "controller/restore.h"
#include "controller/service/daemon.h"
#include "libxce/base/log.h"
#include "libxce/base/settings_file.h"
#include "spdlog/spdlog.h"

namespace {

constexpr int kBadUsage = 2;

uint64_t random_u64() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Connections take file descriptors: as many as the system lets us have.
void raise_descriptor_limit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int complain(const std::string& what) {
  std::fprintf(stderr, "xce_controller: %s\nTry 'xce_controller --help'.\n", what.c_str());
  return kBadUsage;
}

}  // namespace

int main(int argc, char** argv) {
  xce::Flags flags;
  std::string log_level = "info", log_format = "auto";
  CLI::App app(
      "The controller of an XCE cluster: keeps the queue of jobs. Run one, or three of which any "
      "two carry on.\n"
      "  one:    xce_controller --single --data-dir DIR\n"
      "  three:  xce_controller --id 1 --peers 1=hostA:9990,2=hostB:9990,3=hostC:9990 --data-dir "
      "DIR\n"
      "  a new one more:  xce_controller --id 4 --join --peers 1=hostA:9990,2=hostB:9990 --listen "
      "hostD:9990 --data-dir DIR",
      "xce_controller");
  app.set_version_flag("--version", std::string("xce_controller ") + xce::service::kVersion);
  app.add_flag("--single", flags.single, "The only controller of its cluster");
  app.add_flag("--join", flags.join,
               "A new controller of a cluster that runs: begins empty and waits for 'xce cluster "
               "add'; --peers then names controllers of that cluster");
  app.add_option("--id", flags.id, "This node's id, as in --peers (with --single: 1)");
  app.add_option("--peers", flags.peers, "All controllers, this one included: id=host:port,...");
  app.add_option("--listen", flags.listen,
                 "host:port to listen on; port 0 picks one (default: own entry of --peers, else "
                 "127.0.0.1:9990)");
  app.add_option("--advertise", flags.advertise,
                 "host:port that others are told (default: own entry of --peers)");
  app.add_option("--data-dir", flags.data_dir, "Where the log is kept, on a disk of its own node")
      ->capture_default_str();
  app.add_option("--dial", flags.dial,
                 "id=host:port: reach that node there instead (for tests; may be given again)");
  app.add_option("--heartbeat-ms", flags.heartbeat_ms, "Time between the primary's signs of life")
      ->capture_default_str();
  app.add_option("--election-timeout-ms", flags.election_timeout_ms,
                 "Silence of the primary until another one is elected")
      ->capture_default_str();
  app.add_option("--host-grace-ms", flags.host_grace_ms,
                 "Silence of a worker until its host counts as unreachable")
      ->capture_default_str();
  app.add_option("--snapshot-log-bytes", flags.snapshot_log_bytes,
                 "Log since the last snapshot until the next one is taken; 0: never")
      ->capture_default_str();
  app.add_option("--snapshot-trailing", flags.snapshot_trailing,
                 "Log entries before a snapshot that stay for standbys that are behind")
      ->capture_default_str();
  app.add_option("--history-max-jobs", flags.history_max_jobs,
                 "Ended jobs whose id is so far below the newest are dropped from the history; 0: "
                 "none are")
      ->capture_default_str();
  app.add_option(
      "--metrics-listen", flags.metrics_listen,
      "host:port for /metrics (Prometheus), /livez, /readyz and /leader over HTTP; port 0 "
      "picks one (default: not served; 127.0.0.1:9991 is the usual place)");
  app.add_option("--tls-ca", flags.tls.ca,
                 "PEM file of the authority that signs everybody's certificates; with it, "
                 "--tls-cert and --tls-key every connection is TLS with certificates on both sides")
      ->envname("XCE_TLS_CA");
  app.add_option("--tls-cert", flags.tls.cert, "PEM file of this controller's certificate")
      ->envname("XCE_TLS_CERT");
  app.add_option("--tls-key", flags.tls.key, "PEM file of its key")->envname("XCE_TLS_KEY");
  xce::Restore restore;
  app.add_option("--restore", restore.file,
                 "Makes the (empty) --data-dir from this backup ('xce cluster backup'), and ends; "
                 "then start without this option");
  app.add_flag("--restore-pending", restore.keep_pending,
               "With --restore: jobs that waited go on waiting instead of being held; only where "
               "none can have run since the backup");
  app.add_option("--lease-ms", flags.lease_ms,
                 "Jobs with --requeue end after so long without a word between their host and the "
                 "primary, and are then started elsewhere; 0: they wait for their host")
      ->capture_default_str();
  app.add_option("--port-file", flags.port_file, "File that gets the port number once it listens");
  app.add_option("--log-level", log_level, "trace, debug, info, warn, error or off")
      ->capture_default_str();
  app.add_option("--log-format", log_format,
                 "text, json (an object a line), or auto: text on a terminal, else json")
      ->capture_default_str();
  xce::use_settings_file(&app, "controller", xce::Masters::kAreForOthers);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return complain(error.what());
  }
  const std::string wrong = xce::log::init("xce_controller", log_level, log_format);
  if (!wrong.empty()) return complain(wrong);
  auto options = xce::make_options(flags);
  if (!options.ok()) return complain(std::string(options.status().message()));
  options->consensus.seed = random_u64();
  options->service.first_query_id = random_u64() >> 1;
  options->service.operator_uid = geteuid();
  signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  if (!restore.file.empty()) {
    const auto restored = xce::restore(restore, options->consensus);
    if (!restored.ok()) {
      spdlog::error("{}", std::string(restored.status().message()));
      return 1;
    }
    std::printf("%s\n", restored->c_str());
    return 0;
  }
  signal(SIGXFSZ, SIG_IGN);  // a write over a size limit is an error to report, not a reason to die

  if (!xce::start_keeper())
    spdlog::warn(
        "no process to end connections when this one dies; a failover may take longer by the "
        "time that the kernel needs to free its memory");
  xce::service::Daemon daemon(*std::move(options));
  const absl::Status status = daemon.start();
  if (!status.ok()) {
    spdlog::error("{}", std::string(status.message()));
    return 1;
  }
  daemon.run();
  return 0;
}
