// How long writes are not acknowledged when the primary dies, stands still or hands over.
#include "bench/rows_failover.h"

#include <signal.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/bench.h"

namespace xce::bench {
namespace {

constexpr milliseconds kLimit{20000};

void bring_back(Run* run, Cluster* cluster, int node, Fault fault) {
  switch (fault) {
    case Fault::kStop: cluster->controller(node).signal(SIGCONT); return;
    case Fault::kTransfer: return;
    case Fault::kTerm:
      if (cluster->controller(node).wait(milliseconds(10000)) != 0)
        run->failed("a controller that was asked to end did not end well");
      break;
    case Fault::kKill: cluster->controller(node).kill9(); break;  // reaps it
  }
  if (!cluster->start_controller(node).ok()) run->failed("a controller did not start again");
}

void strike(Run* run, Cluster* cluster, Client* other, int node, Fault fault) {
  switch (fault) {
    case Fault::kKill: kill(cluster->controller(node).pid(), SIGKILL); return;
    case Fault::kStop: cluster->controller(node).signal(SIGSTOP); return;
    case Fault::kTerm: cluster->controller(node).signal(SIGTERM); return;
    case Fault::kTransfer:
      if (xcecli_memberctrl(other->ctx(), XCE_MEMBER_TRANSFER, 0, nullptr, 0) < 0)
        run->failed("a hand-over was refused");
      return;
  }
}

}  // namespace

Samples gaps(Run* run, Cluster* cluster, Fault fault, int times) {
  Samples samples;
  const auto client = run->client(cluster);
  const auto other = run->client(cluster);
  for (int round = 0; round < times; ++round) {
    const int node = cluster->wait_primary(-1, kLimit);
    if (node < 0 || !wait_whole(client.get(), kLimit)) {
      run->failed("no whole cluster before the next fault");
      break;
    }
    for (int i = 0; i < 20; ++i) run->submit_held(client.get(), i);
    const int64_t before = client->generation();
    // A hand-over is asked for beside the writes; the other faults take no time to cause.
    std::thread asking;
    const auto begin = Clock::now();
    if (fault == Fault::kTransfer)
      asking = std::thread([&] { strike(run, cluster, other.get(), node, fault); });
    else
      strike(run, cluster, other.get(), node, fault);
    // Writes go on one after the other. The gap is the longest: the one that began on the old
    // primary, or found it gone, and was acknowledged by the new one.
    double longest = 0;
    for (int i = 0; since_us(begin) < 15e6; ++i) {
      const auto call = Clock::now();
      run->submit_held(client.get(), i);
      longest = std::max(longest, since_us(call));
      if (client->generation() != before) break;
    }
    if (client->generation() == before) run->failed("nobody else became primary");
    samples.add(longest);
    if (asking.joinable()) asking.join();
    bring_back(run, cluster, node, fault);
  }
  return samples;
}

void add_gap_row(Run* run, const std::string& id, const std::string& what, Samples samples,
                 double p50_ms, double p99_ms, const std::string& bound) {
  const double p50 = samples.quantile(0.5) / 1000, p99 = samples.quantile(0.99) / 1000;
  Row row;
  row.id = id;
  row.what = absl::StrCat(what, " (p50 of ", samples.us.size(), ")");
  row.value = p50;
  row.unit = "ms";
  row.detail = absl::StrFormat("p99 %.1f ms", p99);
  row.target = p50_ms > 0 && p99_ms > 0
                   ? absl::StrFormat("p50 <= %.0f ms, p99 <= %.0f ms", p50_ms, p99_ms)
                   : absl::StrFormat("p99 <= %.0f ms", p99_ms);
  row.met = !samples.us.empty() && (p50_ms <= 0 || p50 <= p50_ms) && p99 <= p99_ms;
  row.bound = bound;
  run->report.add(std::move(row));
}

void failovers(Run* run) {
  const Settings& s = run->settings;
  if (!s.wants({"kill", "stop", "term", "transfer"})) return;
  const auto cluster = run->cluster({});
  if (cluster == nullptr) return;
  if (s.wants({"kill"})) {
    note("kill -9 of the primary");
    add_gap_row(
        run, "kill", "kill -9 of the primary -> next acknowledged write",
        gaps(run, cluster.get(), Fault::kKill, s.pick(10, 50, 200)), 30, 150,
        "the kernel closing a dead process's sockets, one round of suspicion, one of votes, "
        "the new term's two writes");
  }
  if (s.wants({"stop"})) {
    note("SIGSTOP of the primary");
    add_gap_row(run, "stop", "SIGSTOP of the primary -> next acknowledged write",
                gaps(run, cluster.get(), Fault::kStop, s.pick(3, 10, 30)), 0, 800,
                "the election timer: 300 to 600 ms of silence, by design");
  }
  if (s.wants({"term"})) {
    note("SIGTERM of the primary");
    add_gap_row(run, "term", "planned hand-over, SIGTERM: longest write",
                gaps(run, cluster.get(), Fault::kTerm, s.pick(10, 50, 200)), 0, 50,
                "one message, one vote, the new term's write, the client's new connection");
  }
  if (s.wants({"transfer"})) {
    note("cluster transfer");
    add_gap_row(run, "transfer", "planned hand-over, transfer: longest write",
                gaps(run, cluster.get(), Fault::kTransfer, s.pick(10, 50, 200)), 0, 50,
                "as for SIGTERM");
  }
}

}  // namespace xce::bench
