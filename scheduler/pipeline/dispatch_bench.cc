// Measures a running cluster from outside: a pretended worker joins, jobs are submitted, and the
// time until the worker is told to start each is taken. With PENDING_JOBS so many more wait, and
// the time from one job's end until the worker is told of the next one is taken. Usage:
// dispatch_bench PEERS [IDLE_JOBS] [BURST_JOBS] [PENDING_JOBS]
#include <xce/client.h>
#include <xce/cluster.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Worker {
  xcecli_ctx_t ctx = nullptr;
  uint64_t instance = 77;
  uint64_t seq = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, Clock::time_point> told;  // first STARTING of each job
  std::deque<std::pair<uint64_t, uint32_t>> todo;
  std::deque<std::pair<uint64_t, uint32_t>> running;  // started and not ended, with finish = false
  bool finish = true;                                 // every job ends at once
  bool stop = false;

  static void on_push(xcecli_ctx_t, const xce_event_t* event, void* self) {
    static_cast<Worker*>(self)->on_event(event);
  }
  void on_event(const xce_event_t* event) {
    if (event->kind != XCE_EVENT_JOB || event->job->state != XCE_JOB_STARTING) return;
    std::lock_guard<std::mutex> lock(mutex);
    if (!told.emplace(event->job->id, Clock::now()).second) return;
    todo.emplace_back(event->job->id, event->job->attempt);
    changed.notify_all();
  }
  // Reports every told job as started and completed at once.
  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stop || !todo.empty(); });
      if (stop) return;
      auto jobs = std::move(todo);
      todo.clear();
      lock.unlock();
      std::vector<xce_report_t> reports;
      for (const auto& job : jobs) {
        reports.push_back(report_of(XCE_NOTIFY_START, job));
        if (finish) reports.push_back(report_of(XCE_NOTIFY_FINISH, job));
      }
      xcecli_notify(ctx, instance, reports.data(), reports.size());
      lock.lock();
      if (!finish) running.insert(running.end(), jobs.begin(), jobs.end());
      changed.notify_all();
    }
  }
  xce_report_t report_of(xce_notify_kind_t kind, const std::pair<uint64_t, uint32_t>& job) {
    xce_report_t report = {};
    report.outbox_seq = ++seq;
    report.kind = kind;
    report.job_id = job.first;
    report.attempt = job.second;
    report.outcome = XCE_JOB_COMPLETED;
    return report;
  }
  // Ends one of the running jobs; milliseconds until another one is told, or a negative number.
  double end_one() {
    std::unique_lock<std::mutex> lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(60), [this] { return !running.empty(); }))
      return -1;
    const xce_report_t report = report_of(XCE_NOTIFY_FINISH, running.front());
    running.pop_front();
    const size_t before = told.size();
    const auto began = Clock::now();
    lock.unlock();
    xcecli_notify(ctx, instance, &report, 1);
    lock.lock();
    const bool next =
        changed.wait_for(lock, std::chrono::seconds(60), [&] { return told.size() > before; });
    return next ? std::chrono::duration<double, std::milli>(Clock::now() - began).count() : -1;
  }
  bool wait_for(uint64_t id, int seconds) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(seconds),
                            [&] { return told.count(id) > 0; });
  }
};

xcecli_ctx_t connect(const char* peers, xce_host_role_t role, const char* name) {
  xce_cluster_config_t cluster;
  xce_client_config_t config;
  char error[256] = "";
  xce_client_config_init(&config);
  if (xce_parse_peers(peers, &cluster, error, sizeof error) < 0 ||
      xce_cluster_config_validate(&cluster, error, sizeof error) < 0 ||
      xce_cluster_config_to_client_config(&cluster, &config) < 0) {
    fprintf(stderr, "%s\n", error);
    exit(2);
  }
  config.role = role;
  snprintf(config.name, sizeof config.name, "%s", name);
  xcecli_ctx_t ctx = nullptr;
  if (xcecli_ctx_init(&ctx, &config) < 0) exit(1);
  return ctx;
}

uint64_t submit(xcecli_ctx_t ctx, uint32_t tasks = 0, uint32_t time_limit_s = 0) {
  std::vector<uint32_t> array(tasks);
  for (uint32_t i = 0; i < tasks; ++i) array[i] = i;
  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  const char* args[] = {"/bin/true"};
  spec.args = args;
  spec.nargs = 1;
  spec.cpus = spec.nodes = 1;
  spec.array = array.data();
  spec.narray = array.size();
  spec.time_limit_s = time_limit_s;
  xce_submitted_t out;
  const int rc = xcecli_jobsub(ctx, &spec, &out);
  if (rc < 0) {
    xce_error_t e;
    xcecli_last_error(&e);
    fprintf(stderr, "submit: %s %s\n", xce_errname(rc), e.message);
    exit(1);
  }
  return out.job_id;
}

// So many jobs of a hundred kinds wait while jobs end one after the other.
bool with_many_pending(Worker* worker, xcecli_ctx_t user, int pending) {
  {
    std::lock_guard<std::mutex> lock(worker->mutex);
    worker->finish = false;
  }
  for (int i = 0; i < 100; ++i)
    submit(user, static_cast<uint32_t>(pending / 100), static_cast<uint32_t>(3600 + 60 * i));
  std::vector<double> latencies;
  for (int i = 0; i < 220; ++i) {
    latencies.push_back(worker->end_one());
    if (latencies.back() < 0) return false;
  }
  latencies.erase(latencies.begin(), latencies.begin() + 20);  // the host fills, pages are taken
  std::sort(latencies.begin(), latencies.end());
  printf(
      "%d pending, one ends -> the next is told to start: p50 %.2f ms, p99 %.2f ms, max %.2f ms\n",
      pending, latencies[100], latencies[197], latencies.back());
  return true;
}

double ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int idle = argc > 2 ? atoi(argv[2]) : 100, burst = argc > 3 ? atoi(argv[3]) : 2000,
            pending = argc > 4 ? atoi(argv[4]) : 0;
  Worker worker;
  worker.ctx = connect(argv[1], HostRole_worker, "bench-host");
  xcecli_set_push_handler(worker.ctx, &Worker::on_push, &worker);
  xcecli_start(worker.ctx);
  xce_host_attrs_t attrs = {};
  attrs.name = "bench-host";
  attrs.version = attrs.address = attrs.boot_id = "";
  attrs.cpus = 64;
  attrs.memory_mb = 64000;
  xce_joined_t joined = {};
  if (xcecli_join(worker.ctx, HostRole_worker, &attrs, worker.instance, &joined) < 0) return 1;
  worker.seq = joined.outbox_applied;
  std::thread thread([&worker] { worker.work(); });
  xcecli_ctx_t user = connect(argv[1], HostRole_user, "bench");
  xcecli_start(user);

  std::vector<double> latencies, submits;
  for (int i = 0; i < idle; ++i) {
    const auto began = Clock::now();
    const uint64_t id = submit(user);
    submits.push_back(ms(Clock::now() - began));
    if (!worker.wait_for(id, 10)) {
      fprintf(stderr, "job %llu was not dispatched within 10 s\n",
              static_cast<unsigned long long>(id));
      return 1;
    }
    latencies.push_back(ms(worker.told[id] - began));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::sort(latencies.begin(), latencies.end());
  if (idle > 0) {
    printf("submit -> told to start, idle: p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, max %.2f ms\n",
           latencies[idle / 2], latencies[idle * 9 / 10], latencies[idle * 99 / 100],
           latencies.back());
    std::sort(submits.begin(), submits.end());
    printf("  of which the submission: p50 %.2f ms\n", submits[idle / 2]);
  }
  const auto began = Clock::now();
  std::vector<std::thread> submitters;
  std::mutex mutex;
  uint64_t last = 0;
  for (int t = 0; t < 16; ++t) {
    submitters.emplace_back([&, t] {
      for (int i = t; i < burst; i += 16) {
        const uint64_t id = submit(user);
        std::lock_guard<std::mutex> lock(mutex);
        last = std::max(last, id);
      }
    });
  }
  for (std::thread& t : submitters) t.join();
  const double submitted = ms(Clock::now() - began);
  bool all = last == 0 || worker.wait_for(last, 120);
  const double done = ms(Clock::now() - began);
  printf("burst of %d: submitted in %.0f ms (%.0f/s), %s dispatched in %.0f ms (%.0f/s)\n", burst,
         submitted, burst / submitted * 1000, all ? "all" : "NOT ALL", done, burst / done * 1000);
  if (pending > 0) all = with_many_pending(&worker, user, pending) && all;
  {
    std::lock_guard<std::mutex> lock(worker.mutex);
    worker.stop = true;
    worker.changed.notify_all();
  }
  thread.join();
  xcecli_ctx_free(user);
  xcecli_ctx_free(worker.ctx);
  return all ? 0 : 1;
}
