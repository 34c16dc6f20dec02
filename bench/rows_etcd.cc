// etcd beside XCE, where it is installed: three nodes on this machine and this disk, the same load.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/bench.h"
#include "bench/grpc_channel.h"

namespace xce::bench {
namespace {

constexpr int kNodes = 3;
constexpr int kValueBytes = 256;  // about what a small submission takes in XCE's log
constexpr char kPut[] = "/etcdserverpb.KV/Put";
constexpr char kStatus[] = "/etcdserverpb.Maintenance/Status";

std::string put_request(const std::string& key) {
  std::string out;
  put_bytes_field(1, key, &out);
  put_bytes_field(2, std::string(kValueBytes, 'v'), &out);
  return out;
}

class Etcd {
 public:
  // timers: heartbeat and election timeout in milliseconds.
  Etcd(int heartbeat_ms, int election_ms)
      : heartbeat_ms_(heartbeat_ms), election_ms_(election_ms), dir_(e2e::make_temp_dir("etcd")) {
    for (int i = 0; i < kNodes; ++i) {
      client_port_[i] = e2e::free_port();
      peer_port_[i] = e2e::free_port();
    }
    for (int i = 0; i < kNodes; ++i) start(i);
  }
  ~Etcd() {
    for (e2e::Process& node : nodes_) node.kill9();
    e2e::remove_tree(dir_);
  }
  Etcd(const Etcd&) = delete;
  Etcd& operator=(const Etcd&) = delete;

  void start(int i) {
    std::vector<std::string> all;
    for (int j = 0; j < kNodes; ++j)
      all.push_back(absl::StrCat("n", j, "=http://127.0.0.1:", peer_port_[j]));
    const std::string client = absl::StrCat("http://127.0.0.1:", client_port_[i]);
    const std::string peer = absl::StrCat("http://127.0.0.1:", peer_port_[i]);
    const absl::Status status = nodes_[i].start({"/usr/bin/etcd",
                                                 "--name",
                                                 absl::StrCat("n", i),
                                                 "--data-dir",
                                                 absl::StrCat(dir_, "/n", i),
                                                 "--listen-client-urls",
                                                 client,
                                                 "--advertise-client-urls",
                                                 client,
                                                 "--listen-peer-urls",
                                                 peer,
                                                 "--initial-advertise-peer-urls",
                                                 peer,
                                                 "--initial-cluster",
                                                 absl::StrJoin(all, ","),
                                                 "--initial-cluster-state",
                                                 "new",
                                                 "--heartbeat-interval",
                                                 absl::StrCat(heartbeat_ms_),
                                                 "--election-timeout",
                                                 absl::StrCat(election_ms_),
                                                 "--logger",
                                                 "zap",
                                                 "--log-level",
                                                 "error"},
                                                absl::StrCat(dir_, "/n", i, ".log"));
    if (!status.ok()) note(status.ToString());
  }

  // The node that all three name as leader; -1 when they do not agree within the limit.
  int wait_leader(milliseconds limit) {
    int leader = -1;
    wait_until(
        [&] {
          uint64_t first = 0;
          leader = -1;
          for (int i = 0; i < kNodes; ++i) {
            GrpcChannel channel(client_port_[i]);
            const auto status = channel.call(kStatus, "", 500);
            if (!status) return false;
            const auto header = get_bytes_field(1, *status);
            const uint64_t led_by = get_varint_field(4, *status).value_or(0);
            if (!header || led_by == 0 || (first != 0 && led_by != first)) return false;
            first = led_by;
            if (get_varint_field(2, *header) == led_by) leader = i;
          }
          return leader >= 0;
        },
        limit);
    return leader;
  }

  uint16_t port(int i) const { return client_port_[i]; }
  e2e::Process& node(int i) { return nodes_[i]; }

 private:
  const int heartbeat_ms_, election_ms_;
  const std::string dir_;
  uint16_t client_port_[kNodes], peer_port_[kNodes];
  e2e::Process nodes_[kNodes];
};

void puts(Run* run, Etcd* etcd, int leader) {
  note("etcd: puts");
  GrpcChannel channel(etcd->port(leader));
  Samples one;
  for (int i = 0; i < run->settings.pick(500, 2000, 4000); ++i) {
    const auto begin = Clock::now();
    if (!channel.call(kPut, put_request(absl::StrCat("one", i)), 5000)) run->failed("an etcd put");
    one.add(since_us(begin));
  }
  Row row;
  row.id = "etcd-write";
  row.what = "etcd: one put to the leader, idle (p50)";
  row.value = one.quantile(0.5);
  row.unit = "us";
  row.detail = absl::StrFormat("p90 %.0f us, p99 %.0f us", one.quantile(0.9), one.quantile(0.99));
  if (beside()->write_us > 0) {
    row.ratio = row.value / beside()->write_us;
    row.beside = absl::StrFormat("XCE's durable write, %.0f us", beside()->write_us);
  }
  run->report.add(std::move(row));

  constexpr int kClients = 64;
  const int each = run->settings.pick(100, 300, 500);
  std::vector<std::thread> threads;
  const auto begin = Clock::now();
  for (int c = 0; c < kClients; ++c)
    threads.emplace_back([&, c] {
      GrpcChannel own(etcd->port(leader));
      for (int i = 0; i < each; ++i)
        if (!own.call(kPut, put_request(absl::StrCat(c, "-", i)), 5000)) run->failed("an etcd put");
    });
  for (std::thread& thread : threads) thread.join();
  Row many;
  many.id = "etcd-puts";
  many.what = "etcd: puts to the leader, 64 clients";
  many.value = kClients * each / since_us(begin) * 1e6;
  many.unit = "/s";
  if (beside()->submissions_per_s > 0) {
    many.ratio = many.value / beside()->submissions_per_s;
    many.beside = absl::StrFormat("XCE's submissions, %.0f /s", beside()->submissions_per_s);
  }
  run->report.add(std::move(many));
}

// From the kill to the first put that the next leader acknowledges, for a client that gives each
// attempt 100 ms and then asks the next node: etcd's own client waits longer.
double kill_leader(Run* run, Etcd* etcd) {
  const int leader = etcd->wait_leader(milliseconds(20000));
  if (leader < 0) {
    run->failed("etcd has no leader");
    return 0;
  }
  GrpcChannel first((etcd->port(leader)));
  for (int i = 0; i < 20; ++i) first.call(kPut, put_request("before"), 5000);
  std::vector<std::unique_ptr<GrpcChannel>> others;
  for (int i = 0; i < kNodes; ++i)
    if (i != leader) others.push_back(std::make_unique<GrpcChannel>(etcd->port(i)));
  const auto begin = Clock::now();
  kill(etcd->node(leader).pid(), SIGKILL);
  bool done = false;
  for (size_t i = 0; !done && since_us(begin) < 20e6; ++i)
    done = others[i % others.size()]->call(kPut, put_request("after"), 100).has_value();
  const double took = since_us(begin);
  if (!done) run->failed("etcd acknowledged nothing after the kill");
  etcd->node(leader).kill9();
  etcd->start(leader);
  return took;
}

void kills(Run* run, Etcd* etcd, const std::string& id, const std::string& timers) {
  note("etcd: kill -9 of the leader, " + timers);
  Samples samples;
  for (int i = 0; i < run->settings.pick(3, 10, 30); ++i) samples.add(kill_leader(run, etcd));
  Row row;
  row.id = id;
  row.what =
      absl::StrCat("etcd: kill -9 -> next put, ", timers, " (p50 of ", samples.us.size(), ")");
  row.value = samples.quantile(0.5) / 1000;
  row.unit = "ms";
  row.detail = absl::StrFormat("p99 %s", ms(samples.quantile(0.99)));
  row.bound = "its election timer";
  run->report.add(std::move(row));
}

}  // namespace

void etcd_beside(Run* run) {
  if (!run->settings.wants({"etcd", "etcd-write", "etcd-puts", "etcd-kill"})) return;
  if (access("/usr/bin/etcd", X_OK) != 0) {
    run->report.skip("etcd", "etcd beside", "not installed: apt-get install etcd-server");
    return;
  }
  {
    Etcd etcd(30, 300);
    const int leader = etcd.wait_leader(milliseconds(20000));
    if (leader < 0) {
      run->report.skip("etcd", "etcd beside", "it did not start");
      return;
    }
    puts(run, &etcd, leader);
    kills(run, &etcd, "etcd-kill", "timers as XCE's, 30/300 ms");
  }
  Etcd etcd(100, 1000);
  kills(run, &etcd, "etcd-kill-default", "its default timers, 100/1000 ms");
}

}  // namespace xce::bench
