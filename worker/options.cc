// See options.h.
#include "worker/options.h"

#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libxce/base/settings_file.h"

namespace xce::worker {
namespace {

constexpr char kVersion[] = "xcecd 0.1.0";
constexpr char kAbout[] =
    "The XCE worker: runs jobs on this host.\n"
    "Run by root and with TLS, it runs each job as the user who submitted it; otherwise all run as "
    "the user who runs this worker, since without TLS nobody knows who submitted them. Each has a "
    "small shepherd process, so that jobs go on while the worker is stopped, killed or upgraded. "
    "SIGTERM "
    "stops the worker, not the jobs.";

}  // namespace

absl::StatusOr<std::vector<Gres>> parse_gres(const std::string& text) {
  std::vector<Gres> out;
  for (const std::string& entry :
       std::vector<std::string>(absl::StrSplit(text, ',', absl::SkipEmpty()))) {
    const size_t colon = entry.find(':');
    Gres gres{entry.substr(0, colon), 1};
    const bool counted =
        colon == std::string::npos || absl::SimpleAtoi(entry.substr(colon + 1), &gres.count);
    if (gres.name.empty() || !counted) {
      return absl::InvalidArgumentError(
          absl::StrCat("--gres: '", entry, "' is not name:count, for example gpu:2"));
    }
    out.push_back(gres);
  }
  return out;
}

std::string own_host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

uint32_t own_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
  const long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? static_cast<uint32_t>(n) : 1;
}

uint64_t own_memory_mb() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0
             ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) / (1024 * 1024)
             : 1024;
}

std::string foreign_entry(const std::vector<std::string>& entries) {
  const auto is_one_of = [](const std::string& name, std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::string foreign;
  for (const std::string& entry : entries) {
    if (is_one_of(entry, {"cluster_id", "jobs", "outbox", "worker_id"})) return "";
    if (!is_one_of(entry, {"lock", "lost+found", "events", "spare", "lease"})) foreign = entry;
  }
  return foreign;
}

std::string find_shepherd() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) return "";
  const std::string exe(path, static_cast<size_t>(n));
  const std::string dir = exe.substr(0, exe.rfind('/'));
  for (const char* place :
       {"/xce_shepherd", "/shepherd/xce_shepherd", "/../libexec/xce/xce_shepherd"}) {
    if (access((dir + place).c_str(), X_OK) == 0) return dir + place;
  }
  return "";
}

ParsedOptions parse_options(int argc, char** argv) {
  ParsedOptions parsed;
  Options& o = parsed.options;
  std::string gres;
  CLI::App app(kAbout, "xcecd");
  app.set_version_flag("--version", kVersion);
  app.add_option("--peers", o.peers,
                 "controller candidates, [name=]host:port[,...]; default localhost:9990")
      ->envname("XCE_MASTERS");
  app.add_option("--name", o.name, "name of this host in the cluster; default: its host name");
  app.add_option("--tls-ca", o.tls_ca,
                 "PEM file of the authority that signs the cluster's certificates; "
                 "with --tls-cert and --tls-key: TLS to the controllers")
      ->envname("XCE_TLS_CA");
  app.add_option("--tls-cert", o.tls_cert, "PEM file of this host's certificate")
      ->envname("XCE_TLS_CERT");
  app.add_option("--tls-key", o.tls_key, "PEM file of its key")->envname("XCE_TLS_KEY");
  app.add_option("--data-dir", o.data_dir, "where job directories and the outbox lie")
      ->capture_default_str();
  app.add_option("--cpus", o.cpus, "processors to offer; default: all that this process may use");
  app.add_option("--memory-mb", o.memory_mb, "memory to offer, in MiB; default: all");
  app.add_option("--gres", gres, "generic resources to offer, for example gpu:2,license:10");
  app.add_option("--hello-interval-ms", o.hello_interval_ms,
                 "time between two hellos to the controller")
      ->check(CLI::Range(10, 3600 * 1000))
      ->capture_default_str();
  app.add_option(
         "--call-deadline-ms", o.call_deadline_ms,
         "longest time of one call to the controllers before it is logged as failed and made again")
      ->check(CLI::Range(100, 3600 * 1000))
      ->capture_default_str();
  app.add_flag("--exit-if-unreachable", o.exit_if_unreachable,
               "exit with status 1 when no controller can be reached at start");
  app.add_option("--shepherd", o.shepherd, "path of xce_shepherd; default: beside this program");
  app.add_option(
      "--cgroup", o.cgroup,
      "a control group directory in which to make groups for jobs; default: found by itself");
  app.add_flag("--limit-cpus", o.limit_cpus,
               "hold each job to the processors that it asked for (needs control groups)");
  app.add_option("--max-processes", o.max_processes,
                 "processes that a job may have at once; 0: any")
      ->capture_default_str();
  app.add_option("--min-free-mb", o.min_free_mb,
                 "with less room in the data directory, in MiB, the host drains itself")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--worker-id", o.worker_id,
                 "what this worker is known by, when its data directory does not outlive a restart "
                 "of the machine: its serial number, for example")
      ->envname("XCE_WORKER_ID");
  app.add_option("--log-level", o.log_level, "trace, debug, info, warn, error or off")
      ->capture_default_str();
  app.add_option("--log-format", o.log_format,
                 "text, json (an object a line), or auto: text on a terminal, else json")
      ->capture_default_str();
  use_settings_file(&app, "worker", Masters::kArePeers);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int status = app.exit(e);
    if (status != 0) std::cerr << "xcecd --help lists the flags\n";
    parsed.exit_status = status == 0 ? 0 : 2;
    return parsed;
  }
  const auto resources = parse_gres(gres);
  if (!resources.ok()) {
    std::cerr << std::string(resources.status().message()) << "\n";
    parsed.exit_status = 2;
    return parsed;
  }
  o.gres = *resources;
  if (o.peers.empty()) o.peers = "localhost:9990";
  if (o.name.empty()) o.name = own_host_name();
  if (const auto odd = std::find_if(o.name.begin(), o.name.end(),
                                    [](unsigned char c) { return c <= ' ' || c == 0x7f; });
      odd != o.name.end()) {
    std::cerr << "--name: a host's name has no spaces or control characters\n";
    parsed.exit_status = 2;
    return parsed;
  }
  if (o.cpus == 0) o.cpus = own_cpus();
  if (o.memory_mb == 0) o.memory_mb = own_memory_mb();
  if (o.shepherd.empty()) o.shepherd = find_shepherd();
  parsed.run = true;
  return parsed;
}

}  // namespace xce::worker
