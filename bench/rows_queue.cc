// With many pending jobs: memory, listing, and the failover of a process with much memory.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/bench.h"
#include "bench/rows_failover.h"

namespace xce::bench {
namespace {

double resident_bytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/statm"));
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

bool fill(Run* run, Cluster* cluster, int jobs) {
  constexpr int kClients = 64;
  std::vector<std::thread> threads;
  std::atomic<int> next{0}, refused{0};
  for (int c = 0; c < kClients; ++c)
    threads.emplace_back([&] {
      const auto client = run->client(cluster);
      for (int i = next++; i < jobs; i = next++) refused += run->submit_held(client.get(), i) < 0;
    });
  for (std::thread& thread : threads) thread.join();
  return refused == 0;
}

void listing(Run* run, Cluster* cluster, int jobs) {
  note("listing");
  const auto client = run->client(cluster, 120000);
  const auto page = [&](uint64_t after, size_t* rows) {
    xce_job_filter_t filter{};
    filter.after_id = after;
    xce_job_page_t* page = nullptr;
    if (xcecli_joblist(client->ctx(), &filter, &page) < 0) {
      run->failed("a listing failed");
      return uint64_t{0};
    }
    *rows += page->njobs;
    const uint64_t next = page->next_after_id;
    xce_free_job_page(page);
    return next;
  };
  Samples first;
  size_t rows = 0, per_page = 0;
  for (int i = 0; i < run->settings.pick(20, 50, 100); ++i) {
    rows = 0;
    const auto begin = Clock::now();
    page(0, &rows);
    first.add(since_us(begin));
    per_page = rows;
  }
  rows = 0;
  const auto begin = Clock::now();
  for (uint64_t next = page(0, &rows); next != 0;) next = page(next, &rows);
  const double whole_us = since_us(begin);
  if (rows < static_cast<size_t>(jobs)) run->failed("a listing was not whole");

  Row row;
  row.id = "listing";
  row.what = absl::StrCat("first page of ", jobs, " jobs (p50)");
  row.value = first.quantile(0.5) / 1000;
  row.unit = "ms";
  row.detail = absl::StrFormat("%d rows, p99 %s; all %d in %.2f s", per_page,
                               ms(first.quantile(0.99)), rows, whole_us / 1e6);
  row.target = "<= 5 ms";
  row.met = row.value <= 5;
  row.bound = "a barrier for the read (one durable write), then encoding and decoding the rows";
  run->report.add(std::move(row));
}

}  // namespace

void many_jobs(Run* run) {
  const Settings& s = run->settings;
  if (!s.wants({"memory", "listing", "kill-big"})) return;
  const auto cluster = run->cluster({});
  if (cluster == nullptr) return;
  const int jobs = s.pick(100000, 100000, 1000000);
  note(absl::StrCat(jobs, " pending jobs"));
  {
    const auto client = run->client(cluster.get());
    for (int i = 0; i < 100; ++i) run->submit_held(client.get(), i);
  }
  const int primary = cluster->wait_primary(-1, milliseconds(20000));
  if (primary < 0) return run->failed("no primary");
  const double before = resident_bytes(cluster->controller(primary).pid());
  const auto begin = Clock::now();
  if (!fill(run, cluster.get(), jobs)) return run->failed("not all jobs were submitted");
  const double took_s = since_us(begin) / 1e6;
  const double after = resident_bytes(cluster->controller(primary).pid());

  Row row;
  row.id = "memory";
  row.what = "memory of the primary, a pending job";
  row.value = (after - before) / jobs;
  row.unit = "bytes";
  row.detail =
      absl::StrFormat("%d jobs, %.0f MB in all; submitted in %.1f s", jobs, after / 1e6, took_s);
  row.target = "<= 1024 bytes";
  row.met = row.value <= 1024;
  row.bound = "the job's own words and its index entries; the log's newest 64 MiB until a snapshot";
  run->report.add(std::move(row));

  if (s.wants({"listing"})) listing(run, cluster.get(), jobs);
  if (s.wants({"kill-big"})) {
    note("kill -9 of a primary with much memory");
    add_gap_row(run, "kill-big", absl::StrCat("kill -9 with ", jobs, " pending jobs -> next write"),
                gaps(run, cluster.get(), Fault::kKill, s.pick(5, 15, 15)), 30, 150,
                "as above, and the kernel freeing the dead process's memory before its sockets");
  }
}

}  // namespace xce::bench
