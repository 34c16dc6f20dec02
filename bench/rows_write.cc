// One durable write at a time, and many at once, beside what the disk and the loopback allow.
#include <thread>

#include "absl/strings/str_format.h"
#include "bench/bench.h"

namespace xce::bench {
namespace {

struct Floors {
  double write_us, majority_us, trip_us;
};

void idle_write(Run* run, Cluster* cluster) {
  note("one durable write, idle");
  const auto client = run->client(cluster);
  const int count = run->settings.pick(600, 2500, 5000);
  // In turn with the limits, so that a machine whose speed drifts is fair to all.
  Samples ours, disk, majority;
  DsyncFile file(cluster->dir());
  ThreeWriters three(cluster->dir());
  for (int i = 0; i < 50; ++i) run->submit_held(client.get(), i);
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    run->submit_held(client.get(), i);
    ours.add(since_us(begin));
    disk.add(file.write_block());
    if (i % 2 == 0) majority.add(three.write_block());
  }
  const Floors floor = {disk.quantile(0.5), majority.quantile(0.5),
                        round_trips(run->settings.pick(2000, 10000, 20000)).quantile(0.5)};
  const double us = ours.quantile(0.5);
  beside()->write_us = us;
  const double bound_us = floor.majority_us + 2 * floor.trip_us;

  Row row;
  row.id = "durable-write";
  row.what = "one durable write, idle (p50)";
  row.value = us;
  row.unit = "us";
  row.detail = absl::StrFormat("p90 %.0f us, p99 %.0f us", ours.quantile(0.9), ours.quantile(0.99));
  row.beside = absl::StrFormat("one 4 KiB O_DSYNC write, %.0f us", floor.write_us);
  row.ratio = us / floor.write_us;
  row.target = "<= 2.5 x";
  row.met = *row.ratio <= 2.5;
  row.bound = absl::StrFormat(
      "three processes on one disk: two of three writes at once %.0f us + 2 round trips of %.0f us "
      "= %.0f us; this is %.2f x that",
      floor.majority_us, floor.trip_us, bound_us, us / bound_us);
  run->report.add(std::move(row));

  Row least;
  least.id = "write-floor";
  least.what = "least for three on this machine: 2 of 3 writes, 2 trips";
  least.value = bound_us;
  least.unit = "us";
  least.beside = absl::StrFormat("one 4 KiB O_DSYNC write, %.0f us", floor.write_us);
  least.ratio = bound_us / floor.write_us;
  run->report.add(std::move(least));
}

void many_clients(Run* run, Cluster* cluster) {
  note("64 clients");
  constexpr int kClients = 64;
  const int each = run->settings.pick(200, 600, 1000);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(run->client(cluster));
    run->submit_held(clients.back().get(), i);
  }
  std::vector<Samples> times(kClients);
  std::vector<std::thread> threads;
  const auto begin = Clock::now();
  for (int c = 0; c < kClients; ++c)
    threads.emplace_back([&, c] {
      for (int i = 0; i < each; ++i) {
        const auto call = Clock::now();
        run->submit_held(clients[c].get(), i);
        times[c].add(since_us(call));
      }
    });
  for (std::thread& thread : threads) thread.join();
  const double rate = kClients * each / since_us(begin) * 1e6;
  beside()->submissions_per_s = rate;
  Samples all;
  for (const Samples& some : times) all.us.insert(all.us.end(), some.us.begin(), some.us.end());
  DsyncFile file(cluster->dir());
  Samples disk;
  for (int i = 0; i < 300; ++i) disk.add(file.write_block());
  const double limit = 1e6 / disk.quantile(0.5);

  Row row;
  row.id = "submissions";
  row.what = "durable submissions, 64 clients";
  row.value = rate;
  row.unit = "/s";
  row.detail = absl::StrFormat("p50 %s, p99 %s", ms(all.quantile(0.5)), ms(all.quantile(0.99)));
  row.beside = absl::StrFormat("4 KiB O_DSYNC writes one by one, %.0f /s", limit);
  row.ratio = rate / limit;
  row.target = ">= 10000 /s";
  row.met = rate >= 10000;
  row.bound =
      "two cores shared by the clients, three controllers and their checksums: many "
      "submissions share one write";
  run->report.add(std::move(row));
}

}  // namespace

void durable_writes(Run* run) {
  if (!run->settings.wants({"durable-write", "write-floor", "submissions"})) return;
  const auto cluster = run->cluster({});
  if (cluster == nullptr) return;
  if (run->settings.wants({"durable-write", "write-floor"})) idle_write(run, cluster.get());
  if (run->settings.wants({"submissions"})) many_clients(run, cluster.get());
}

}  // namespace xce::bench
