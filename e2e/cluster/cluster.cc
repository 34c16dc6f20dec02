#include "e2e/cluster/cluster.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "e2e/cluster/run.h"
#include "libxce/net/pki.h"

namespace xce::e2e {
namespace {

constexpr milliseconds kStartLimit{20000};
constexpr int kProbeDeadlineMs = 400;
constexpr char kTester[] = "tester";
constexpr char kTokenSecret[] = "known to this test only, and longer than 32 bytes\n";

absl::Status missing(const std::string& program) {
  return absl::NotFoundError(absl::StrCat("program ", program, " is not built: run ./dev build"));
}

std::string scheduler_name(int i) { return absl::StrCat("sched", i + 1); }

}  // namespace

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::start(const ClusterOptions& options) {
  become_subreaper();
  std::unique_ptr<Cluster> cluster(new Cluster);
  cluster->options_ = options;
  cluster->dir_ = options.dir.empty() ? make_temp_dir("xce") : options.dir;
  for (const char* sub : {"logs", "work"})
    std::filesystem::create_directories(cluster->dir_ + "/" + sub);
  if (options.tls) {
    const absl::Status status = net::pki_init(cluster->dir_ + "/pki");
    if (!status.ok() && !absl::IsAlreadyExists(status)) return status;
  }
  for (int i = 0; i < options.controllers; ++i) {
    uint16_t port = free_port();
    while (std::count(cluster->ports_.begin(), cluster->ports_.end(), port) > 0) port = free_port();
    cluster->ports_.push_back(port);
    cluster->disks_.push_back(0);
    cluster->controllers_.push_back(std::make_unique<Process>());
  }
  for (int i = 0; i < options.workers; ++i)
    cluster->workers_.push_back(std::make_unique<Process>());
  for (int i = 0; i < options.schedulers; ++i)
    cluster->schedulers_.push_back(std::make_unique<Process>());
  cluster->apiserver_ = std::make_unique<Process>();
  if (absl::Status status = cluster->make_links(); !status.ok()) return status;
  if (absl::Status status = cluster->make_faults(); !status.ok()) return status;

  for (int i = 0; i < options.controllers; ++i) {
    absl::Status status = cluster->start_controller(i);
    if (!status.ok()) return status;
  }
  if (cluster->wait_primary(-1, kStartLimit) < 0)
    return absl::DeadlineExceededError("no primary came up\n" + cluster->log_tails());
  for (int i = 0; i < options.schedulers; ++i) {
    absl::Status status = cluster->start_scheduler(i);
    if (!status.ok()) return status;
  }
  for (int i = 0; i < options.workers; ++i) {
    absl::Status status = cluster->start_worker(i);
    if (!status.ok()) return status;
  }
  if (options.apiserver) {
    absl::Status status = cluster->start_apiserver();
    if (!status.ok()) return status;
  }
  if (options.workers > 0 && !cluster->wait_hosts(options.workers, kStartLimit))
    return absl::DeadlineExceededError("the workers did not join\n" + cluster->log_tails());
  return cluster;
}

absl::Status Cluster::make_links() {
  const int nodes = controllers();
  dials_.resize(nodes);
  if (!options_.links && !options_.worker_links && !options_.daemon_links) return absl::OkStatus();
  links_ = std::make_unique<Proxy>();
  for (int i = 0; options_.worker_links && i < options_.workers; ++i) {
    std::vector<std::string> peers;
    for (int to = 0; to < nodes; ++to) {
      const uint16_t port = links_->add_link(worker_node(i), to, ports_[to]);
      if (port == 0) return absl::UnavailableError("no port for a link of a worker");
      peers.push_back(absl::StrCat("127.0.0.1:", port));
    }
    candidates_[worker_node(i)] = absl::StrJoin(peers, ",");
  }
  for (int from = 0; options_.links && from < nodes; ++from)
    for (int to = 0; to < nodes; ++to) {
      if (from == to) continue;
      const uint16_t port = links_->add_link(from, to, ports_[to]);
      if (port == 0) return absl::UnavailableError("no port for a link between controllers");
      dials_[from].push_back("--dial");
      dials_[from].push_back(absl::StrCat(to + 1, "=127.0.0.1:", port));
    }
  return options_.daemon_links ? make_daemon_links() : absl::OkStatus();
}

absl::Status Cluster::make_daemon_links() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return absl::OkStatus();  // it would have to be the first preloaded library
#endif
  links_library_ = find_program("e2e/cluster/liblinks.so");
  if (links_library_.empty()) return missing("e2e/cluster/liblinks.so");
  std::vector<int> daemons = {apiserver_node()};
  for (int i = 0; i < options_.workers; ++i) daemons.push_back(worker_node(i));
  for (int i = 0; i < options_.schedulers; ++i) daemons.push_back(scheduler_node(i));
  for (const int from : daemons) {
    std::vector<std::string> ways;
    for (int to = 0; to < controllers(); ++to) {
      const uint16_t port = links_->add_link(from, to, ports_[to]);
      if (port == 0) return absl::UnavailableError("no port for a link of a daemon");
      ways.push_back(absl::StrCat(ports_[to], "=", port));
    }
    link_env_[from] = {absl::StrCat("LD_PRELOAD=", links_library_),
                       absl::StrCat("XCE_TEST_LINKS=", absl::StrJoin(ways, ","))};
  }
  return absl::OkStatus();
}

std::string Cluster::candidates(int node) const {
  const auto own = candidates_.find(node);
  return own == candidates_.end() ? masters() : own->second;
}

absl::Status Cluster::make_faults() {
  for (int node = 0; options_.faults && node < controllers(); ++node) {
    faults_.push_back(std::make_unique<SystemFaults>(absl::StrCat(dir_, "/faults", node + 1)));
    if (absl::Status status = faults_.back()->status(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

Cluster::~Cluster() {
  stop();
  if (!options_.keep_dir && options_.dir.empty()) remove_tree(dir_);
}

void Cluster::stop() {
  if (stopped_) return;
  stopped_ = true;
  probe_.reset();
  apiserver_->kill9();
  for (auto* group : {&schedulers_, &workers_, &controllers_})
    for (auto& process : *group) process->kill9();
  kill_descendants();
}

int Cluster::add_controller() {
  uint16_t port = free_port();
  while (std::count(ports_.begin(), ports_.end(), port) > 0) port = free_port();
  ports_.push_back(port);
  disks_.push_back(0);
  dials_.emplace_back();
  controllers_.push_back(std::make_unique<Process>());
  return controllers() - 1;
}

void Cluster::lose_disk(int node) { ++disks_[node]; }

void Cluster::use_masters(std::vector<int> nodes) {
  masters_ = std::move(nodes);
  probe_.reset();
}

std::string Cluster::data_dir(int node) const {
  return absl::StrCat(dir_, "/c", node + 1,
                      disks_[node] > 0 ? absl::StrCat("-", disks_[node]) : "");
}

std::string Cluster::address(int node) const {
  return absl::StrCat(options_.network != nullptr ? options_.network->address(node) : "127.0.0.1",
                      ":", ports_[node]);
}
std::string Cluster::api_address() const { return absl::StrCat("127.0.0.1:", api_port_); }

std::string Cluster::masters() const {
  std::vector<std::string> out;
  for (int i = 0; masters_.empty() && i < options_.controllers; ++i) out.push_back(address(i));
  for (const int node : masters_) out.push_back(address(node));
  return absl::StrJoin(out, ",");
}

ClientTls Cluster::certificate(const std::string& role, const std::string& name) {
  if (!options_.tls) return {};
  const std::string dir = dir_ + "/pki";
  const std::string stem = absl::StrCat(dir, "/", role, "-", name);
  if (!std::filesystem::exists(stem + ".crt")) {
    net::CertIdentity identity;
    for (const Role each :
         {Role::kUser, Role::kWorker, Role::kScheduler, Role::kApiserver, Role::kController})
      if (role == name_of(each)) identity.role = each;
    identity.name = name;
    identity.has_ids = identity.role == Role::kUser;
    identity.uid = geteuid();
    identity.gid = getegid();
    const auto files = net::pki_issue(dir, identity);
    if (!files.ok()) fprintf(stderr, "%s\n", files.status().ToString().c_str());
  }
  return {dir + "/ca.crt", stem + ".crt", stem + ".key"};
}

ClientTls Cluster::user_certificate() { return certificate("user", kTester); }

std::string Cluster::api_token() const {
  if (!options_.tls) return "";
  const Finished made =
      run("apiserver/xce_apiserver", {"token", "--key", dir_ + "/pki/token.key", "--user", kTester,
                                      "--role", geteuid() == 0 ? "admin" : "user", "--uid",
                                      absl::StrCat(geteuid()), "--gid", absl::StrCat(getegid())});
  if (made.code != 0) fprintf(stderr, "%s\n", made.err.c_str());
  return std::string(absl::StripAsciiWhitespace(made.out));
}

std::vector<std::string> Cluster::tls_flags(const std::string& role, const std::string& name) {
  if (!options_.tls) return {};
  const ClientTls files = certificate(role, name);
  return {"--tls-ca", files.ca, "--tls-cert", files.cert, "--tls-key", files.key};
}

void Cluster::put_on_host(int host, std::vector<std::string>* argv) const {
  if (options_.network == nullptr) return;
  const std::vector<std::string> enter = options_.network->on_host(host);
  argv->insert(argv->begin(), enter.begin(), enter.end());
}

absl::Status Cluster::start_controller(int node) {
  const std::string program = find_program("controller/xce_controller");
  if (program.empty()) return missing("controller/xce_controller");
  std::vector<std::string> peers;
  for (int i = 0; i < options_.controllers; ++i)
    peers.push_back(absl::StrCat(i + 1, "=", address(i)));
  std::vector<std::string> argv = {program,        "--id",         absl::StrCat(node + 1),
                                   "--listen",     address(node),  "--data-dir",
                                   data_dir(node), "--log-format", "text"};
  if (node >= options_.controllers) {
    argv.insert(argv.end(), {"--join", "--peers", absl::StrJoin(peers, ",")});
  } else if (options_.controllers == 1) {
    argv.push_back("--single");
    // Whoever is told where the controller is must not get round the first worker's link.
    if (options_.worker_links && options_.workers > 0)
      argv.insert(argv.end(), {"--advertise", candidates(worker_node(0))});
  } else {
    argv.insert(argv.end(), {"--peers", absl::StrJoin(peers, ",")});
  }
  argv.insert(argv.end(), dials_[node].begin(), dials_[node].end());
  const std::vector<std::string> tls = tls_flags("controller", absl::StrCat(node + 1));
  argv.insert(argv.end(), tls.begin(), tls.end());
  argv.insert(argv.end(), options_.controller_args.begin(), options_.controller_args.end());
  std::vector<std::string> env = node >= static_cast<int>(faults_.size())
                                     ? std::vector<std::string>()
                                     : faults_[node]->environment();
  env.insert(env.end(), env_[node].begin(), env_[node].end());
  argv.insert(argv.begin(), launchers_[node].begin(), launchers_[node].end());
  put_on_host(node, &argv);
  return controllers_[node]->start(argv, absl::StrCat(dir_, "/logs/controller", node + 1, ".log"),
                                   env);
}

absl::Status Cluster::start_worker(int i) {
  const std::string program = find_program("worker/xcecd");
  if (program.empty()) return missing("worker/xcecd");
  std::vector<std::string> argv = {program,
                                   "--peers",
                                   candidates(worker_node(i)),
                                   "--name",
                                   absl::StrCat("host", i + 1),
                                   "--data-dir",
                                   absl::StrCat(dir_, "/w", i + 1),
                                   "--cpus",
                                   absl::StrCat(options_.worker_cpus),
                                   "--memory-mb",
                                   absl::StrCat(options_.worker_memory_mb),
                                   "--log-format",
                                   "text"};
  const std::vector<std::string> tls = tls_flags("worker", absl::StrCat("host", i + 1));
  argv.insert(argv.end(), tls.begin(), tls.end());
  argv.insert(argv.end(), options_.worker_args.begin(), options_.worker_args.end());
  put_on_host(worker_host(i), &argv);
  return workers_[i]->start(argv, absl::StrCat(dir_, "/logs/worker", i + 1, ".log"),
                            link_env_[worker_node(i)]);
}

absl::Status Cluster::start_scheduler(int i) {
  const std::string program = find_program("scheduler/xce_scheduler");
  if (program.empty()) return missing("scheduler/xce_scheduler");
  std::vector<std::string> argv = {program,  "--peers",         candidates(scheduler_node(i)),
                                   "--name", scheduler_name(i), "--log-format",
                                   "text"};
  const std::vector<std::string> tls = tls_flags("scheduler", scheduler_name(i));
  argv.insert(argv.end(), tls.begin(), tls.end());
  return schedulers_[i]->start(argv, absl::StrCat(dir_, "/logs/scheduler", i + 1, ".log"),
                               link_env_[scheduler_node(i)]);
}

absl::Status Cluster::start_apiserver() {
  const std::string program = find_program("apiserver/xce_apiserver");
  if (program.empty()) return missing("apiserver/xce_apiserver");
  if (api_port_ == 0) api_port_ = free_port();
  std::vector<std::string> argv = {
      program, "--listen", api_address(), "--peers", candidates(apiserver_node()), "--name", "api"};
  const std::vector<std::string> tls = tls_flags("apiserver", "api");
  argv.insert(argv.end(), tls.begin(), tls.end());
  if (options_.tls) {
    const std::string key = dir_ + "/pki/token.key";
    std::ofstream(key) << kTokenSecret;
    std::filesystem::permissions(key, std::filesystem::perms::owner_read);
    argv.insert(argv.end(), {"--auth-key", key});
  }
  argv.insert(argv.end(), options_.apiserver_args.begin(), options_.apiserver_args.end());
  return apiserver_->start(argv, dir_ + "/logs/apiserver.log", link_env_[apiserver_node()]);
}

int Cluster::primary() {
  if (probe_ == nullptr)
    probe_ = std::make_unique<Client>(masters(), kProbeDeadlineMs, user_certificate());
  xce_cluster_status_t* status = nullptr;
  if (xcecli_clusterstatus(probe_->ctx(), &status) < 0) return -1;
  const bool leads = std::string(status->role) == "leader" && status->ready;
  const int node = static_cast<int>(status->node_id) - 1;
  xce_free_cluster_status(status);
  // Any controller tells its status; hello leads the connection on to the primary.
  if (!leads) xcecli_hello(probe_->ctx(), nullptr);
  return leads ? node : -1;
}

int Cluster::active_scheduler() {
  if (primary() < 0) return -1;
  xce_cluster_status_t* status = nullptr;
  if (xcecli_clusterstatus(probe_->ctx(), &status) < 0) return -1;
  const std::string name = status->scheduler == nullptr ? "" : status->scheduler;
  xce_free_cluster_status(status);
  for (int i = 0; i < schedulers(); ++i)
    if (name == scheduler_name(i)) return i;
  return -1;
}

int Cluster::wait_primary(int not_this, milliseconds limit) {
  int found = -1;
  wait_until(
      [&] {
        found = primary();
        return found >= 0 && found != not_this;
      },
      limit);
  return found == not_this ? -1 : found;
}

bool Cluster::wait_hosts(int count, milliseconds limit) {
  Client client(masters(), 2000, user_certificate());
  return wait_until(
      [&] {
        xce_host_t* hosts = nullptr;
        size_t n = 0;
        if (xcecli_workerlist(client.ctx(), &hosts, &n) < 0) return false;
        int up = 0;
        for (size_t i = 0; i < n; ++i) up += hosts[i].state == XCE_HOST_UP;
        xce_free_hosts(hosts, n);
        return up >= count;
      },
      limit);
}

std::string Cluster::log(const std::string& daemon) const {
  return read_file(absl::StrCat(dir_, "/logs/", daemon, ".log"));
}

std::string Cluster::log_tails(size_t lines) const {
  std::string out;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir_ + "/logs"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    std::vector<std::string> all = absl::StrSplit(read_file(file), '\n', absl::SkipEmpty());
    const size_t from = all.size() > lines ? all.size() - lines : 0;
    absl::StrAppend(&out, "--- ", file, "\n", absl::StrJoin(all.begin() + from, all.end(), "\n"),
                    "\n");
  }
  return out;
}

}  // namespace xce::e2e
