// What load balancers and Prometheus see of three controllers, before and after a failover.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"

namespace xce::e2e {
namespace {

struct Reply {
  int status = 0;  // 0: nobody answers
  std::string body;
};

Reply http_get(uint16_t port, const std::string& path) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Reply reply;
  std::string all;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
    const std::string request = absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    char buffer[4096];
    for (ssize_t n; (n = ::recv(fd, buffer, sizeof buffer, 0)) > 0;) all.append(buffer, n);
  }
  ::close(fd);
  const size_t end = all.find("\r\n\r\n");
  if (end == std::string::npos) return reply;
  reply.status = std::atoi(all.c_str() + std::string("HTTP/1.1 ").size());
  reply.body = all.substr(end + 4);
  return reply;
}

// The value of a sample line "name value", or -1.
double sample(const std::string& page, const std::string& name) {
  const size_t at = page.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::atof(page.c_str() + at + name.size() + 2);
}

class Metrics : public ClusterTest {
 protected:
  // Where that controller says in its log that it serves; its newest run.
  uint16_t port_of(int node) const {
    const std::string log =
        read_file(absl::StrCat(cluster_->dir(), "/logs/controller", node + 1, ".log"));
    const std::string words = "metrics on http://127.0.0.1:";
    const size_t at = log.rfind(words);
    return at == std::string::npos
               ? 0
               : static_cast<uint16_t>(std::atoi(log.c_str() + at + words.size()));
  }
  bool becomes(int node, const std::string& path, int status) {
    return wait_until([&] { return http_get(port_of(node), path).status == status; },
                      milliseconds(10000));
  }
};

TEST_F(Metrics, ToldByEachControllerBeforeAndAfterAFailover) {
  ClusterOptions options;
  options.controller_args = {"--metrics-listen", "127.0.0.1:0"};
  start(options);
  const int primary = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(primary, 0);
  for (int node = 0; node < 3; ++node) {
    EXPECT_TRUE(becomes(node, "/readyz", 200)) << http_get(port_of(node), "/readyz").body;
    EXPECT_EQ(http_get(port_of(node), "/livez").status, 200);
    EXPECT_TRUE(becomes(node, "/leader", node == primary ? 200 : 503)) << node;
  }
  const Reply standby = http_get(port_of((primary + 1) % 3), "/leader");
  EXPECT_TRUE(absl::StrContains(standby.body, cluster_->address(primary))) << standby.body;

  Client client(cluster_->masters());
  for (int i = 0; i < 5; ++i) ASSERT_GT(client.submit("true", "j", cluster_->dir()), 0);
  std::string page;
  EXPECT_TRUE(wait_until(
      [&] {
        page = http_get(port_of(primary), "/metrics").body;
        return sample(page, "xce_jobs{state=\"pending\"}") == 5;
      },
      milliseconds(10000)))
      << page;
  EXPECT_EQ(sample(page, "xce_requests_total{op=\"jobSubmit\",status=\"OK\"}"), 5) << page;
  EXPECT_EQ(sample(page, "xce_raft_role{role=\"leader\"}"), 1);
  EXPECT_GT(sample(page, "xce_disk_sync_seconds_count"), 0) << page;
  EXPECT_GT(sample(page, "xce_proposal_commands_count"), 0) << page;
  EXPECT_EQ(sample(page, "xce_ready"), 1);
  for (int node = 0; node < 3; ++node) {
    if (node == primary) continue;
    EXPECT_GT(sample(page, absl::StrCat("xce_raft_peer_match_index{peer=\"", node + 1, "\"}")), 0);
  }

  cluster_->controller(primary).kill9();
  const int next = cluster_->wait_primary(primary, milliseconds(10000));
  ASSERT_GE(next, 0);
  EXPECT_TRUE(becomes(next, "/leader", 200));
  page = http_get(port_of(next), "/metrics").body;
  EXPECT_GE(sample(page, "xce_raft_elections_total"), 2) << page;
  EXPECT_GT(sample(page, "xce_raft_last_failover_seconds"), 0) << page;
  EXPECT_LT(sample(page, "xce_raft_last_failover_seconds"), 10) << page;

  // One of three alone: alive, and not ready.
  const int last = 3 - primary - next;
  cluster_->controller(next).kill9();
  EXPECT_TRUE(becomes(last, "/readyz", 503));
  EXPECT_EQ(http_get(port_of(last), "/livez").status, 200);
}

}  // namespace
}  // namespace xce::e2e
