// xcecd: the worker daemon. Wires the parts together and owns the process: lock of the data
// directory, signals, threads.
//
//   connector ──observe, confirm──► supervisor (main thread) ──► shepherds, one a job
//       ▲                               │ outbox
//   controllers ◄──notify── reporter ◄──┘
#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "libxce/base/log.h"
#include "worker/agent/connector.h"
#include "worker/agent/identity.h"
#include "worker/agent/log_reader.h"
#include "worker/agent/outbox.h"
#include "worker/agent/reporter.h"
#include "worker/agent/supervisor.h"
#include "worker/agent/xce_link.h"
#include "worker/options.h"
#include "worker/shepherd/job_cgroup.h"
#include "worker/shepherd/process_tree.h"

namespace xce::worker {
namespace {

void forward_libxce_log(xce_log_level_t level, const char* line, void*) {
  switch (level) {
    case XCE_LOG_DEBUG: spdlog::debug("libxce: {}", line); break;
    case XCE_LOG_INFO: spdlog::info("libxce: {}", line); break;
    case XCE_LOG_WARN: spdlog::warn("libxce: {}", line); break;
    case XCE_LOG_ERROR: spdlog::error("libxce: {}", line); break;
  }
}

bool make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    if (mkdir(path.substr(0, slash).c_str(), 0755) != 0 && errno != EEXIST) return false;
    if (slash == std::string::npos) return true;
  }
}

std::vector<std::string> entries_of(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error))
    names.push_back(entry.path().filename().string());
  return names;
}

// Holds DATA/lock for as long as this process lives. The lock goes with the process, however that
// ends.
bool lock_data_dir(const std::string& dir) {
  if (!make_directories(dir)) {
    spdlog::error("cannot make the data directory {}: {}; give another --data-dir", dir,
                  std::strerror(errno));
    return false;
  }
  if (const std::string foreign = foreign_entry(entries_of(dir)); !foreign.empty()) {
    spdlog::error(
        "{} holds {} and nothing of a worker's: give a directory of its own with --data-dir", dir,
        foreign);
    return false;
  }
  const std::string path = dir + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    spdlog::error("cannot open {}: {}; give another --data-dir", path, std::strerror(errno));
    return false;
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    std::string pid = read_small_file(path);
    spdlog::error(
        "another xcecd (process {}) uses the data directory {}; stop that one first, or give this "
        "one another "
        "--data-dir and --name",
        pid.empty() ? "?" : pid, dir);
    return false;
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(fd, 0) != 0 || write(fd, pid.data(), pid.size()) < 0)
    spdlog::warn("cannot write {}", path);
  return true;  // fd stays open
}

HostAttrs host_attrs(const Options& options, uint64_t worker) {
  HostAttrs host;
  host.worker_id = worker;
  host.name = options.name;
  host.version = "0.1.0";
  host.address = own_host_name();
  host.boot_id = boot_id();
  host.cpus = options.cpus;
  host.memory_mb = options.memory_mb;
  host.gres = options.gres;
  return host;
}

std::string absolute(const std::string& path) {
  if (!path.empty() && path.front() == '/') return path;
  char cwd[4096];
  return getcwd(cwd, sizeof cwd) == nullptr ? path : std::string(cwd) + "/" + path;
}

// Waits for SIGTERM or SIGINT on a thread of its own; all other threads have them blocked.
class SignalThread {
 public:
  SignalThread(const sigset_t& signals, Supervisor* supervisor)
      : thread_([signals, supervisor] {
          int signal = 0;
          sigwait(&signals, &signal);
          if (signal != SIGUSR2)
            spdlog::info("{}: the worker stops, its jobs go on", strsignal(signal));
          supervisor->stop();
        }) {}
  ~SignalThread() {
    pthread_kill(thread_.native_handle(), SIGUSR2);
    thread_.join();
  }

 private:
  std::thread thread_;
};

int run(Options options) {
  options.data_dir = absolute(options.data_dir);
  if (!lock_data_dir(options.data_dir)) return 1;
  if (options.shepherd.empty()) {
    spdlog::error("xce_shepherd was not found beside this program; give its path with --shepherd");
    return 1;
  }
  sigset_t signals;
  sigemptyset(&signals);
  for (int sig : {SIGTERM, SIGINT, SIGUSR2}) sigaddset(&signals, sig);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a write over a size limit is an error to report, not a reason to die
  // An identity that nobody has proven never becomes a uid: docs/security.md.
  const bool as_users = geteuid() == 0 && !options.tls_cert.empty();
  if (as_users)
    spdlog::info("running as root with TLS: each job runs as the user who submitted it");
  else if (geteuid() == 0)
    spdlog::warn(
        "running as root without TLS: who submitted a job is only what its client says, so every "
        "job runs as root; give --tls-ca, --tls-cert and --tls-key to run each as its user, or run "
        "this worker as another user");

  xce_set_log_callback(&forward_libxce_log, nullptr);
  auto link = XceLink::create({options.peers, options.name, options.call_deadline_ms,
                               options.tls_ca, options.tls_cert, options.tls_key});
  if (!link.ok()) {
    spdlog::error("{}", std::string(link.status().message()));
    return 2;
  }
  auto outbox = Outbox::open(options.data_dir + "/outbox");
  if (!outbox.ok()) {
    spdlog::error("{}", std::string(outbox.status().message()));
    return 1;
  }
  const auto worker = worker_id(options.data_dir, options.worker_id);
  if (!worker.ok()) {
    spdlog::error("{}", std::string(worker.status().message()));
    return 1;
  }
  JobSettings settings;
  settings.cgroups = find_job_cgroups(options.cgroup);
  settings.limit_cpus = options.limit_cpus;
  settings.max_processes = options.max_processes;
  settings.run_as_users = as_users;
  if (settings.cgroups.empty())
    spdlog::info(
        "no control group can be made here: memory and processes of jobs are limited by looking "
        "twice a second{}",
        options.limit_cpus ? ", processors not at all" : "");
  Supervisor::Options for_supervisor;
  for_supervisor.data_dir = options.data_dir;
  for_supervisor.host = options.name;
  for_supervisor.shepherd_binary = absolute(options.shepherd);
  for_supervisor.jobs = settings;
  for_supervisor.health.min_free_mb = options.min_free_mb;
  Supervisor supervisor(for_supervisor, outbox->get());
  const absl::Status started = supervisor.start();
  if (!started.ok()) {
    spdlog::error("{}", std::string(started.message()));
    return 1;
  }

  std::random_device random;
  const uint64_t instance = (uint64_t{random()} << 32) | random();
  std::atomic<int> exit_status{0};
  LogReader logs(link->get(), &supervisor, as_users);
  Connector::Options for_connector;
  for_connector.host = host_attrs(options, *worker);
  for_connector.instance = instance;
  for_connector.hello_interval_ms = options.hello_interval_ms;
  for_connector.exit_if_unreachable = options.exit_if_unreachable;
  for_connector.cluster_id_file = options.data_dir + "/cluster_id";
  Connector connector(for_connector, link->get(), &supervisor, &logs);
  Reporter reporter({instance}, link->get(), outbox->get(), &connector);
  supervisor.set_reports_handler([&] { reporter.wake(); });
  supervisor.set_fault_handler([&] { connector.kick(); });
  connector.set_handlers([&] { reporter.rejoined(); },
                         [&] {
                           exit_status = 1;
                           supervisor.stop();
                         });
  SignalThread signal_thread(signals, &supervisor);
  logs.start();
  reporter.start();
  connector.start();
  supervisor.run();
  connector.stop();  // ends the link's calls, so that the others can stop too
  reporter.stop();
  logs.stop();
  return exit_status;
}

}  // namespace
}  // namespace xce::worker

int main(int argc, char** argv) {
  const xce::worker::ParsedOptions parsed = xce::worker::parse_options(argc, argv);
  if (!parsed.run) return parsed.exit_status;
  const std::string wrong =
      xce::log::init("xcecd", parsed.options.log_level, parsed.options.log_format);
  if (!wrong.empty()) {
    fprintf(stderr, "xcecd: %s\nxcecd --help lists the flags\n", wrong.c_str());
    return 2;
  }
  return xce::worker::run(parsed.options);
}
