// ./dev bench: XCE's figures beside this machine's limits and, where they are installed, beside
// etcd and Slurm; all in one run, as ratios, since absolute figures drift on shared machines. Three
// controllers on this machine. Bounded in count and time.
#include "bench/bench.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace xce::bench {

double since_us(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void note(const std::string& what) { fprintf(stderr, "bench: %s ...\n", what.c_str()); }

std::string ms(double us) { return absl::StrFormat(us < 10000 ? "%.2f ms" : "%.0f ms", us / 1000); }

Beside* beside() {
  static Beside found;
  return &found;
}

Run::Run(Settings s)
    : settings(std::move(s)),
      report(absl::StrCat("Three controllers on this machine, ",
                          settings.tls ? "TLS between all" : "without TLS")) {}

void Run::failed(const std::string& what) {
  ++errors;
  fprintf(stderr, "bench: %s\n", what.c_str());
}

std::unique_ptr<Cluster> Run::cluster(ClusterOptions options) {
  options.tls = settings.tls;
  auto started = Cluster::start(options);
  if (started.ok()) return std::move(*started);
  failed(started.status().ToString());
  return nullptr;
}

std::unique_ptr<Client> Run::client(Cluster* cluster, int deadline_ms) {
  return std::make_unique<Client>(cluster->masters(), deadline_ms, cluster->user_certificate());
}

int64_t Run::submit_held(Client* client, int number) {
  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  const char* args[] = {"/bin/true"};
  const std::string name = absl::StrCat("bench-", number);
  spec.args = args;
  spec.nargs = 1;
  spec.name = name.c_str();
  spec.work_dir = "/tmp";
  spec.hold = true;
  const int64_t id = client->submit(spec);
  if (id < 0) failed("a submission failed");
  return id;
}

bool wait_whole(Client* client, milliseconds limit) {
  return wait_until(
      [&] {
        xce_cluster_status_t* status = nullptr;
        if (xcecli_clusterstatus(client->ctx(), &status) < 0) return false;
        bool good = status->nnodes > 0 && std::string(status->role) == "leader" && status->ready;
        for (size_t i = 0; i < status->nnodes; ++i) {
          const xce_node_t& node = status->nodes[i];
          good = good && (node.id == status->node_id ||
                          (node.connected && node.match_index + 100 >= status->last_index));
        }
        xce_free_cluster_status(status);
        if (!good) xcecli_hello(client->ctx(), nullptr);  // on to the primary
        return good;
      },
      limit);
}

}  // namespace xce::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures XCE beside this machine's limits, etcd and Slurm."};
  xce::bench::Settings settings;
  bool quick = false, full = false;
  std::string json;
  std::vector<std::string> only;
  app.add_flag("--quick", quick, "fewer repetitions");
  app.add_flag("--full", full, "more repetitions, and a million pending jobs");
  app.add_flag("--tls", settings.tls, "TLS on every link");
  app.add_option("--json", json, "write the rows as JSON to this file, too");
  app.add_option("--only", only,
                 "these rows: durable-write submissions kill stop term transfer running end-to-end "
                 "memory listing kill-big etcd slurm")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  using xce::bench::Size;
  settings.size = quick ? Size::kQuick : full ? Size::kFull : Size::kNormal;
  settings.only.insert(only.begin(), only.end());

  xce::bench::Run run(settings);
  for (auto* part : {xce::bench::durable_writes, xce::bench::etcd_beside, xce::bench::slurm_beside,
                     xce::bench::failovers, xce::bench::whole_jobs, xce::bench::many_jobs})
    part(&run);
  xce::e2e::kill_descendants();
  if (run.report.empty()) {
    fprintf(stderr, "bench: nothing was measured; --help names the rows\n");
    return 2;
  }
  fputs(run.report.table().c_str(), stdout);
  if (run.errors > 0)
    printf("\n%d calls failed: the figures are not to be trusted\n", run.errors.load());
  if (!json.empty()) {
    const absl::Status status = run.report.write_json(json);
    if (!status.ok()) {
      fprintf(stderr, "bench: %s\n", std::string(status.message()).c_str());
      return 1;
    }
  }
  return run.errors == 0 ? 0 : 1;
}
