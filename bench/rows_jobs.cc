// Jobs that run: from submission to the first instruction, and through to the end.
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/bench.h"

namespace xce::bench {
namespace {

void submit_to_running(Run* run, Cluster* cluster, Samples* spawn) {
  note("submit -> running");
  const auto client = run->client(cluster);
  const std::string work = cluster->dir() + "/started";  // nothing but the jobs' marks are in it
  if (mkdir(work.c_str(), 0700) != 0) return run->failed("cannot make " + work);
  const int watch = inotify_init1(IN_CLOEXEC);
  inotify_add_watch(watch, work.c_str(), IN_CREATE);
  Samples samples;
  for (int i = 0; i < run->settings.pick(30, 150, 300); ++i) {
    const auto begin = Clock::now();
    xce_job_spec_t spec;
    xce_job_spec_init(&spec);
    const std::string command = absl::StrCat(": > ", work, "/", i);
    const char* args[] = {"/bin/sh", "-c", command.c_str()};
    spec.args = args;
    spec.nargs = 3;
    spec.name = "latency";
    spec.work_dir = "/tmp";
    spec.stdout_path = "/dev/null";
    if (client->submit(spec) < 0) {
      run->failed("a submission failed");
      continue;
    }
    char event[512];
    alarm(30);
    if (read(watch, event, sizeof event) <= 0) run->failed("the job did not start");
    alarm(0);
    samples.add(since_us(begin));
    usleep(20000);  // the cluster is to be idle before the next
  }
  close(watch);
  Row row;
  row.id = "running";
  row.what = "submit -> the job's first command, idle (p50)";
  row.value = samples.quantile(0.5) / 1000;
  row.unit = "ms";
  row.detail = absl::StrFormat("p99 %s", ms(samples.quantile(0.99)));
  row.beside = absl::StrFormat("fork+exec+wait, %s", ms(spawn->quantile(0.5)));
  row.ratio = samples.quantile(0.5) / spawn->quantile(0.5);
  row.target = "p50 <= 10 ms";
  row.met = row.value <= 10;
  row.bound =
      "two durable writes (submission, dispatch), the shepherd's record on disk, three execs";
  run->report.add(std::move(row));
}

void end_to_end(Run* run, Cluster* cluster, Samples* spawn) {
  note("end to end");
  const int count = run->settings.pick(500, 2000, 10000);
  const auto client = run->client(cluster);
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto own = run->client(cluster);
      for (int i = t; i < count; i += 4) {
        xce_job_spec_t spec;
        xce_job_spec_init(&spec);
        const char* args[] = {"/bin/true"};
        spec.args = args;
        spec.nargs = 1;
        spec.name = "true";
        spec.work_dir = "/tmp";
        spec.stdout_path = "/dev/null";
        if (own->submit(spec) < 0) run->failed("a submission failed");
      }
    });
  for (std::thread& thread : threads) thread.join();
  const bool ended = wait_until(
      [&] {
        xce_cluster_status_t* status = nullptr;
        if (xcecli_clusterstatus(client->ctx(), &status) < 0) return false;
        const bool done = status->jobs_pending + status->jobs_running == 0;
        xce_free_cluster_status(status);
        return done;
      },
      milliseconds(120000));
  if (!ended) run->failed("jobs did not end");
  const double rate = count / since_us(begin) * 1e6;
  const double limit = 1e6 / spawn->quantile(0.5);
  Row row;
  row.id = "end-to-end";
  row.what = absl::StrCat("end to end, one worker, ", count, " x true");
  row.value = rate;
  row.unit = "jobs/s";
  row.beside = absl::StrFormat("fork+exec+wait one by one, %.0f /s", limit);
  row.ratio = rate / limit;
  row.target = ">= 0.6 x";
  row.met = *row.ratio >= 0.6;
  row.bound =
      "two cores for everything: two forks and two synced records a job beside the three "
      "controllers";
  run->report.add(std::move(row));
}

}  // namespace

void whole_jobs(Run* run) {
  if (!run->settings.wants({"running", "end-to-end"})) return;
  ClusterOptions options;
  options.workers = 1;
  options.schedulers = 1;
  options.worker_cpus = 64;
  const auto cluster = run->cluster(options);
  if (cluster == nullptr) return;
  Samples spawn = spawns(run->settings.pick(300, 1000, 2000));
  if (run->settings.wants({"running"})) submit_to_running(run, cluster.get(), &spawn);
  if (run->settings.wants({"end-to-end"})) end_to_end(run, cluster.get(), &spawn);
}

}  // namespace xce::bench
