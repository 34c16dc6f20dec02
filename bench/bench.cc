// ./dev bench: XCE's figures beside this machine's limits, in one run, as ratios. Three controllers
// on this machine, without TLS (loopback). Bounded in count and time. --json for programs.

#include <signal.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/limits.h"
#include "e2e/cluster/cluster.h"

namespace xce::bench {
namespace {

using e2e::Client;
using e2e::Clock;
using e2e::Cluster;
using e2e::ClusterOptions;
using e2e::milliseconds;
using e2e::wait_until;

double since_us(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

struct Row {
  std::string what, value, beside, ratio, target;
  bool met;
};

class Bench {
 public:
  Bench(bool quick, bool json) : quick_(quick), json_(json) {}

  int run() {
    ClusterOptions options;
    auto started = Cluster::start(options);
    if (!started.ok()) return fail(started.status().ToString());
    cluster_ = std::move(*started);
    note("limits");
    spawn_ = spawns(quick_ ? 200 : 1000);
    round_trip_ = round_trips(quick_ ? 2000 : 20000);
    idle_write();
    many_clients();
    failover();
    cluster_.reset();

    options.workers = 1;
    options.schedulers = 1;
    options.worker_cpus = 64;
    started = Cluster::start(options);
    if (!started.ok()) return fail(started.status().ToString());
    cluster_ = std::move(*started);
    submit_to_running();
    end_to_end();
    cluster_.reset();
    print();
    return errors_ == 0 ? 0 : 1;
  }

 private:
  int fail(const std::string& why) {
    fprintf(stderr, "bench: %s\n", why.c_str());
    e2e::kill_descendants();
    return 1;
  }
  void note(const char* what) const { fprintf(stderr, "bench: %s ...\n", what); }
  void add(const std::string& what, const std::string& value, const std::string& beside,
           const std::string& ratio, const std::string& target, bool met) {
    rows_.push_back({what, value, beside, ratio, target, met});
  }
  int64_t submit_held(Client& client, int i) {
    xce_job_spec_t spec;
    xce_job_spec_init(&spec);
    const char* args[] = {"/bin/true"};
    const std::string name = absl::StrCat("bench-", i);
    spec.args = args;
    spec.nargs = 1;
    spec.name = name.c_str();
    spec.work_dir = "/tmp";
    spec.hold = true;
    const int64_t id = client.submit(spec);
    if (id < 0) {
      ++errors_;
      fprintf(stderr, "bench: submission failed: %s\n", xce_errname(static_cast<int>(id)));
    }
    return id;
  }

  void idle_write() {
    note("one durable write, idle");
    Client client(cluster_->masters());
    // In turn with the limit, so that a disk whose speed drifts is equally fair to both.
    Samples samples;
    DsyncFile disk(cluster_->dir());
    for (int i = 0; i < (quick_ ? 300 : 1500); ++i) {
      const auto begin = Clock::now();
      submit_held(client, i);
      samples.add(since_us(begin));
      dsync_.add(disk.write_block());
    }
    const double ours = samples.quantile(0.5), limit = dsync_.quantile(0.5);
    add("one durable write, idle (p50)", absl::StrFormat("%.0f us", ours),
        absl::StrFormat("4 KiB O_DSYNC %.0f us", limit), absl::StrFormat("%.2f x", ours / limit),
        "<= 4 x", ours <= 4 * limit);
  }

  void many_clients() {
    note("64 clients");
    constexpr int kClients = 64;
    const int each = quick_ ? 100 : 500;
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.push_back(std::make_unique<Client>(cluster_->masters()));
      submit_held(*clients.back(), i);
    }
    std::vector<std::thread> threads;
    const auto begin = Clock::now();
    for (auto& client : clients)
      threads.emplace_back([this, &client, each] {
        for (int i = 0; i < each; ++i) submit_held(*client, i);
      });
    for (std::thread& thread : threads) thread.join();
    const double rate = kClients * each / since_us(begin) * 1e6;
    const double limit = 1e6 / dsync_.quantile(0.5);
    add("durable submissions, 64 clients", absl::StrFormat("%.0f /s", rate),
        absl::StrFormat("4 KiB O_DSYNC %.0f /s", limit), absl::StrFormat("%.2f x", rate / limit),
        ">= 3000 /s", rate >= 3000);
  }

  void failover() {
    note("kill -9 of the primary");
    const int kills = quick_ ? 5 : 30;
    Samples samples;
    Client client(cluster_->masters());
    for (int k = 0; k < kills; ++k) {
      const int node = cluster_->wait_primary(-1, milliseconds(20000));
      if (node < 0) {
        ++errors_;
        break;
      }
      for (int i = 0; i < 20; ++i) submit_held(client, i);
      const auto begin = Clock::now();
      kill(cluster_->controller(node).pid(), SIGKILL);
      // Writes go on; the first one whose answer needs the new primary is the one that takes long.
      double longest = 0;
      for (int i = 0; i < 40; ++i) {
        const auto call = Clock::now();
        submit_held(client, i);
        longest = std::max(longest, since_us(call));
        if (since_us(begin) > 300000) break;
      }
      samples.add(longest);
      cluster_->controller(node).kill9();
      if (!cluster_->start_controller(node).ok()) ++errors_;
      wait_until([&] { return all_connected(client); }, milliseconds(20000));
    }
    const double p50 = samples.quantile(0.5) / 1000;
    add(absl::StrFormat("kill -9 to the next acknowledged write (p50 of %d)", kills),
        absl::StrFormat("%.1f ms", p50),
        absl::StrFormat("loopback round trip %.0f us", round_trip_.quantile(0.5)),
        absl::StrFormat("p99 %.0f ms", samples.quantile(0.99) / 1000), "<= 150 ms", p50 <= 150);
  }

  static bool all_connected(Client& client) {
    xce_cluster_status_t* status = nullptr;
    if (xcecli_clusterstatus(client.ctx(), &status) < 0) return false;
    bool good = status->nnodes > 0;
    for (size_t i = 0; i < status->nnodes; ++i) {
      const xce_node_t& node = status->nodes[i];
      good = good && (node.id == status->node_id ||
                      (node.connected && node.match_index + 100 >= status->last_index));
    }
    xce_free_cluster_status(status);
    return good;
  }

  void submit_to_running() {
    note("submit -> running");
    Client client(cluster_->masters());
    Samples samples;
    const std::string work = cluster_->dir() + "/work";
    for (int i = 0; i < (quick_ ? 20 : 100); ++i) {
      const std::string file = absl::StrCat(work, "/started", i);
      const std::string command = "date +%s%N > " + file + ".tmp; mv " + file + ".tmp " + file;
      const auto wall = std::chrono::system_clock::now();
      if (client.submit(command, "latency", work) < 0) {
        ++errors_;
        continue;
      }
      if (!wait_until([&] { return access(file.c_str(), F_OK) == 0; }, milliseconds(10000))) {
        ++errors_;
        continue;
      }
      const double started_ns = std::stod(e2e::read_file(file));
      const double sent_ns =
          std::chrono::duration<double, std::nano>(wall.time_since_epoch()).count();
      samples.add((started_ns - sent_ns) / 1000);
    }
    const double p50 = samples.quantile(0.5) / 1000;
    add("submit -> running, idle (p50)", absl::StrFormat("%.1f ms", p50),
        absl::StrFormat("fork+exec+wait %.2f ms", spawn_.quantile(0.5) / 1000),
        absl::StrFormat("%.1f x", p50 * 1000 / spawn_.quantile(0.5)), "<= 30 ms", p50 <= 30);
  }

  void end_to_end() {
    note("end to end");
    const int count = quick_ ? 200 : 1000;
    Client client(cluster_->masters());
    const auto begin = Clock::now();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = t; i < count; i += 4) {
          xce_job_spec_t spec;
          xce_job_spec_init(&spec);
          const char* args[] = {"/bin/true"};
          spec.args = args;
          spec.nargs = 1;
          spec.name = "true";
          spec.work_dir = "/tmp";
          spec.stdout_path = "/dev/null";
          if (client.submit(spec) < 0) ++errors_;
        }
      });
    for (std::thread& thread : threads) thread.join();
    const bool ended = wait_until(
        [&] {
          xce_cluster_status_t* status = nullptr;
          if (xcecli_clusterstatus(client.ctx(), &status) < 0) return false;
          const bool done = status->jobs_pending + status->jobs_running == 0;
          xce_free_cluster_status(status);
          return done;
        },
        milliseconds(120000));
    if (!ended) ++errors_;
    const double rate = count / since_us(begin) * 1e6;
    const double limit = 1e6 / spawn_.quantile(0.5);
    add(absl::StrFormat("end to end, one worker, %d x true", count),
        absl::StrFormat("%.0f jobs/s", rate), absl::StrFormat("fork+exec+wait %.0f /s", limit),
        absl::StrFormat("%.2f x", rate / limit), "(later: >= 0.6 x)", true);
  }

  void print() const {
    if (json_) {
      printf("[");
      for (size_t i = 0; i < rows_.size(); ++i)
        printf(
            "%s{\"what\":\"%s\",\"value\":\"%s\",\"beside\":\"%s\",\"ratio\":\"%s\",\"target\":\"%"
            "s\",\"met\":%s}",
            i ? "," : "", rows_[i].what.c_str(), rows_[i].value.c_str(), rows_[i].beside.c_str(),
            rows_[i].ratio.c_str(), rows_[i].target.c_str(), rows_[i].met ? "true" : "false");
      printf("]\n");
      return;
    }
    printf("%-50s %-16s %-30s %-12s %-18s\n", "three controllers on this machine, no TLS", "XCE",
           "beside", "ratio", "target");
    for (const Row& row : rows_)
      printf("%-50s %-16s %-30s %-12s %-18s %s\n", row.what.c_str(), row.value.c_str(),
             row.beside.c_str(), row.ratio.c_str(), row.target.c_str(), row.met ? "met" : "MISSED");
    if (errors_ > 0) printf("%d calls failed: the figures are not to be trusted\n", errors_.load());
  }

  const bool quick_, json_;
  std::unique_ptr<Cluster> cluster_;
  Samples dsync_, spawn_, round_trip_;
  std::vector<Row> rows_;
  std::atomic<int> errors_{0};
};

}  // namespace
}  // namespace xce::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures XCE beside this machine's limits."};
  bool quick = false, json = false;
  app.add_flag("--quick", quick, "fewer repetitions");
  app.add_flag("--json", json, "one JSON array instead of a table");
  CLI11_PARSE(app, argc, argv);
  return xce::bench::Bench(quick, json).run();
}
