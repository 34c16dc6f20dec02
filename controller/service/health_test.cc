// What operators' tools are told, from pictures of controllers in every condition.
#include "controller/service/health.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "xce/errnox.h"

namespace xce::service {
namespace {

constexpr uint64_t kNowUs = 100'000'000;

Telemetry primary() {
  Telemetry t;
  t.taken_us = kNowUs - 1000;
  t.cluster.node_id = t.cluster.leader_id = 1;
  t.cluster.role = "leader";
  t.cluster.ready = true;
  t.cluster.disk = "ok";
  t.cluster.term = 7;
  t.cluster.commit = t.cluster.applied = t.cluster.last_index = 42;
  t.cluster.last_election_took_ms = 15;
  t.cluster.nodes = {{1, "a", 1, "leader", true, 42, 0}, {2, "b", 2, "follower", true, 40, 12}};
  t.primary = "a:1";
  t.jobs[0] = 3;
  t.requests[{Ask::kJobSubmit, 0}] = 9;
  t.requests[{Ask::kJobSubmit, E_XCE_BUSY}] = 2;
  t.disk.sync_s = Histogram({0.001, 0.01});
  t.disk.sync_s.add(0.0005);
  t.disk.sync_s.add(0.5);
  return t;
}

Telemetry standby() {
  Telemetry t = primary();
  t.cluster.node_id = 2;
  t.cluster.role = "follower";
  t.cluster.ready = false;
  return t;
}

HttpReply get(const std::string& path, const Telemetry& t, uint64_t now_us = kNowUs) {
  return answer_http(path, t, {}, now_us);
}

TEST(Health, ThePrimaryIsReadyAndLeads) {
  EXPECT_EQ(get("/livez", primary()).status, 200);
  EXPECT_EQ(get("/readyz", primary()).status, 200);
  EXPECT_EQ(get("/leader", primary()).status, 200);
  EXPECT_EQ(get("/leader", primary()).body, "primary: node 1, term 7\n");
  EXPECT_EQ(get("/", primary()).status, 404);
}

TEST(Health, AStandbyIsReadyAndNamesThePrimary) {
  EXPECT_EQ(get("/readyz", standby()).status, 200);
  const HttpReply leader = get("/leader", standby());
  EXPECT_EQ(leader.status, 503);
  EXPECT_EQ(leader.body, "the primary is node 1 at a:1\n");
}

TEST(Health, EachReasonForNotBeingReadyIsSaid) {
  const auto says = [](const Telemetry& t, const std::string& words, uint64_t now_us = kNowUs) {
    const HttpReply reply = get("/readyz", t, now_us);
    EXPECT_EQ(reply.status, 503) << words;
    EXPECT_NE(reply.body.find(words), std::string::npos) << reply.body;
  };
  Telemetry t = primary();
  t.cluster.ready = false;
  says(t, "catching up");
  t = primary();
  t.stopping = true;
  says(t, "stopping");
  t = primary();
  t.cluster.disk = "no space left";
  t.cluster.ready = false;
  says(t, "no space left");
  EXPECT_EQ(get("/livez", t).status, 200) << "starting it anew would not help";
  t = standby();
  t.cluster.leader_id = 0;
  says(t, "no primary is known");
  EXPECT_EQ(get("/leader", t).status, 503);
  t = standby();
  t.cluster.commit = t.cluster.applied + kMaxBehind + 1;
  says(t, "10001 entries behind");
  t = standby();
  t.cluster.role = "candidate";
  says(t, "electing");
  says(Telemetry{}, "has not come round");
  says(primary(), "has not come round", kNowUs + kStuckMs * 1000);
  EXPECT_EQ(get("/livez", primary(), kNowUs + kStuckMs * 1000).status, 503);
}

// The rules of the Prometheus text format that a scraper depends on.
TEST(Health, MetricsAreWellFormed) {
  const std::string text = get("/metrics", primary()).body;
  for (const char* line :
       {"xce_raft_role{role=\"leader\"} 1", "xce_raft_term 7", "xce_raft_applied_index 42",
        "xce_raft_peer_match_index{peer=\"2\"} 40", "xce_jobs{state=\"pending\"} 3",
        "xce_requests_total{op=\"jobSubmit\",status=\"OK\"} 9",
        "xce_requests_total{op=\"jobSubmit\",status=\"BUSY\"} 2",
        "xce_raft_last_failover_seconds 0.015", "xce_disk_sync_seconds_bucket{le=\"0.001\"} 1",
        "xce_disk_sync_seconds_bucket{le=\"0.01\"} 1",
        "xce_disk_sync_seconds_bucket{le=\"+Inf\"} 2", "xce_disk_sync_seconds_count 2",
        "xce_ready 1"})
    EXPECT_NE(text.find(std::string(line) + "\n"), std::string::npos) << line << " in\n" << text;
  std::istringstream lines(text);
  std::string line, family;
  while (std::getline(lines, line)) {
    ASSERT_FALSE(line.empty());
    if (line.rfind("# TYPE ", 0) == 0) {
      family = line.substr(7, line.find(' ', 7) - 7);
      continue;
    }
    if (line[0] == '#') continue;
    EXPECT_EQ(line.rfind(family, 0), 0u) << line << " is not of " << family;
    EXPECT_NE(line.rfind(' '), std::string::npos) << line;
  }
  EXPECT_EQ(get("/metrics", standby()).body.find("match_index{"), std::string::npos)
      << "a standby knows no match";
}

}  // namespace
}  // namespace xce::service
