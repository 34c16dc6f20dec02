#include "controller/service/health.h"

#include <cctype>

#include "absl/strings/str_cat.h"
#include "xce/errnox.h"

namespace xce::service {
namespace {

using absl::StrAppend;
using absl::StrCat;

uint64_t age_ms(const Telemetry& telemetry, uint64_t now_us) {
  return now_us > telemetry.taken_us ? (now_us - telemetry.taken_us) / 1000 : 0;
}

std::string stuck_reason(const Telemetry& telemetry, uint64_t now_us) {
  const uint64_t age = age_ms(telemetry, now_us);
  if (age < kStuckMs) return "";
  return StrCat("the consensus thread has not come round for ", age, " ms");
}

const char* status_name(int32_t status) {
  switch (status) {
    case 0: return "OK";
    case E_XCE_REDIRECT: return "REDIRECT";
    case E_XCE_NOMASTER: return "NOMASTER";
    case E_XCE_STANDBY: return "STANDBY";
    case E_XCE_NOT_READY: return "NOT_READY";
    case E_XCE_OUTCOME_UNKNOWN: return "OUTCOME_UNKNOWN";
    case E_XCE_DUP_JOB: return "DUP_JOB";
    case E_XCE_AUTH: return "AUTH";
    case E_XCE_PERM: return "PERM";
    case E_XCE_INVALID: return "INVALID";
    case E_XCE_NOENT: return "NOENT";
    case E_XCE_STALE: return "STALE";
    case E_XCE_BUSY: return "BUSY";
    default: return "OTHER";
  }
}

// "PENDING" -> "pending".
std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Prometheus text format 0.0.4.
class Page {
 public:
  void family(const char* name, const char* type, const char* help) {
    name_ = name;
    StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  template <typename Value>
  void value(const std::string& labels, Value value) {
    StrAppend(&text_, name_, labels.empty() ? "" : StrCat("{", labels, "}"), " ", value, "\n");
  }
  template <typename Value>
  void gauge(const char* name, const char* help, Value only) {
    family(name, "gauge", help);
    value("", only);
  }
  void counter(const char* name, const char* help, uint64_t only) {
    family(name, "counter", help);
    value("", only);
  }
  void histogram(const char* name, const char* help, const Histogram& from) {
    family(name, "histogram", help);
    uint64_t sum = 0;
    for (size_t i = 0; i < from.bounds().size(); ++i) {
      sum += from.counts()[i];
      StrAppend(&text_, name, "_bucket{le=\"", from.bounds()[i], "\"} ", sum, "\n");
    }
    StrAppend(&text_, name, "_bucket{le=\"+Inf\"} ", from.count(), "\n", name, "_sum ", from.sum(),
              "\n", name, "_count ", from.count(), "\n");
  }
  std::string take() { return std::move(text_); }

 private:
  const char* name_ = "";
  std::string text_;
};

void put_raft(const Telemetry& t, Page* page) {
  const ClusterView& c = t.cluster;
  page->family("xce_raft_role", "gauge", "1 for the role that this controller has now");
  for (const char* role : {"leader", "follower", "candidate", "unknown"})
    page->value(StrCat("role=\"", role, "\""), c.role == role ? 1 : 0);
  page->gauge("xce_raft_term", "Term of the Raft log", c.term);
  page->gauge("xce_raft_leader_id", "Node that leads; 0: none is known", c.leader_id);
  page->gauge("xce_raft_commit_index", "Log index that a majority has on disk", c.commit);
  page->gauge("xce_raft_applied_index", "Log index up to which the state is made", c.applied);
  page->gauge("xce_raft_last_index", "Last log index", c.last_index);
  page->family("xce_raft_peer_connected", "gauge", "Whether that controller can be sent to");
  for (const NodeView& node : c.nodes)
    if (node.id != c.node_id) page->value(StrCat("peer=\"", node.id, "\""), node.connected ? 1 : 0);
  page->family("xce_raft_peer_last_contact_seconds", "gauge",
               "Time since that controller was last heard; -1: never");
  for (const NodeView& node : c.nodes)
    if (node.id != c.node_id)
      page->value(StrCat("peer=\"", node.id, "\""),
                  node.last_contact_ms < 0 ? -1.0 : node.last_contact_ms / 1e3);
  page->family("xce_raft_peer_match_index", "gauge",
               "Log index up to which that controller has the log (told by the leader)");
  for (const NodeView& node : c.nodes)
    if (node.id != c.node_id && c.leader_id == c.node_id)
      page->value(StrCat("peer=\"", node.id, "\""), node.match_index);
  page->counter("xce_raft_elections_total", "Times that a new leader became known here",
                t.elections);
  page->gauge("xce_raft_last_failover_seconds",
              "How long no leader was known before the newest one", c.last_election_took_ms / 1e3);
  page->gauge("xce_raft_last_failover_timestamp_seconds",
              "When the newest leader became known; 0: never", c.last_election_ms / 1e3);
}

void put_work(const Telemetry& t, Page* page) {
  const ClusterView& c = t.cluster;
  page->gauge("xce_sessions", "Clients whose writes are remembered", c.sessions);
  page->family("xce_jobs", "gauge", "Jobs by state; ended ones as far as they are remembered");
  for (int s = 0; s < kJobStates; ++s)
    page->value(StrCat("state=\"", lower(name_of(static_cast<JobState>(s))), "\""), t.jobs[s]);
  page->counter("xce_jobs_finished_total", "Jobs that have ended since the cluster began",
                c.jobs_finished);
  page->family("xce_requests_total", "counter", "Requests answered, by operation and status");
  for (const auto& [key, count] : t.requests)
    page->value(StrCat("op=\"", name_of(key.first), "\",status=\"", status_name(key.second), "\""),
                count);
  page->histogram("xce_proposal_commands", "Commands that went into the log as one entry",
                  t.proposal_commands);
  page->histogram("xce_disk_sync_seconds", "Time of one durable write of the log", t.disk.sync_s);
  page->gauge("xce_disk_ok", "0: the disk has failed and this controller serves nothing",
              c.disk == "ok" ? 1 : 0);
  page->gauge("xce_disk_backlog_bytes", "Log bytes queued for the disk", t.disk.backlog_bytes);
}

std::string metrics(const Telemetry& t, const GatewayCounts& gateway, uint64_t now_us) {
  Page page;
  page.family("xce_build_info", "gauge", "1; the labels say which version and node this is");
  page.value(StrCat("version=\"", kVersion, "\",node=\"", t.cluster.node_id, "\""), 1);
  page.gauge("xce_ready", "What /readyz says", unready_reason(t, now_us).empty() ? 1 : 0);
  page.gauge("xce_uptime_seconds", "Time since the start", t.cluster.uptime_ms / 1e3);
  page.gauge("xce_telemetry_age_seconds", "Age of the numbers of the consensus thread",
             age_ms(t, now_us) / 1e3);
  put_raft(t, &page);
  put_work(t, &page);
  page.gauge("xce_connections", "Connections of clients, and of controllers that say hello",
             gateway.connections);
  page.counter("xce_connections_refused_total", "Connections over a limit",
               gateway.refused_connections);
  page.counter("xce_requests_refused_total",
               "Requests that were unreadable, came before hello, or were too many at once",
               gateway.refused_requests);
  page.family("xce_queue_depth", "gauge", "What waits now, by queue");
  page.value("queue=\"inbox\"", t.inbox);
  page.value("queue=\"outbox\"", gateway.outbox);
  page.value("queue=\"reads\"", t.reads_waiting);
  page.value("queue=\"entries_under_way\"", t.writes_under_way);
  page.gauge("xce_entries_under_way_bytes", "Bytes proposed and not yet decided",
             t.writes_under_way_bytes);
  return page.take();
}

}  // namespace

std::string unready_reason(const Telemetry& t, uint64_t now_us) {
  std::string stuck = stuck_reason(t, now_us);
  if (!stuck.empty()) return stuck;
  const ClusterView& c = t.cluster;
  if (t.stopping) return "stopping";
  if (c.disk != "ok") return StrCat("it does not serve: ", c.disk);
  if (c.role == "leader") return c.ready ? "" : "elected, and catching up";
  if (c.role == "candidate") return "electing a primary";
  if (c.role != "follower") return "starting";
  if (c.leader_id == 0) return "no primary is known";
  if (c.applied + kMaxBehind < c.commit)
    return StrCat("catching up: ", c.commit - c.applied, " entries behind");
  return "";
}

HttpReply answer_http(const std::string& path, const Telemetry& t, const GatewayCounts& gateway,
                      uint64_t now_us) {
  HttpReply reply;
  const auto say = [&reply](int status, std::string words) {
    reply.status = status;
    reply.body = std::move(words) + "\n";
  };
  if (path == "/metrics") {
    reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
    reply.body = metrics(t, gateway, now_us);
  } else if (path == "/livez") {
    const std::string why = stuck_reason(t, now_us);
    say(why.empty() ? 200 : 503, why.empty() ? "ok" : why);
  } else if (path == "/readyz") {
    const std::string why = unready_reason(t, now_us);
    say(why.empty() ? 200 : 503, why.empty() ? "ok" : why);
  } else if (path == "/leader") {
    if (t.cluster.ready && unready_reason(t, now_us).empty())
      say(200, StrCat("primary: node ", t.cluster.node_id, ", term ", t.cluster.term));
    else if (t.cluster.leader_id != 0 && t.cluster.leader_id != t.cluster.node_id)
      say(503, StrCat("the primary is node ", t.cluster.leader_id, " at ", t.primary));
    else
      say(503, "no primary is known here");
  } else {
    say(404, "here are /metrics, /livez, /readyz and /leader");
  }
  return reply;
}

}  // namespace xce::service
