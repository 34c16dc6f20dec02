#include "controller/service/real_replica.h"

#include <utility>

#include "spdlog/spdlog.h"

namespace xce::service {

RoleView role_view(const consensus::RoleInfo& info) {
  RoleView view;
  switch (info.role) {
    case consensus::Role::kUnavailable: view.role = NodeRole::kUnavailable; break;
    case consensus::Role::kFollower: view.role = NodeRole::kFollower; break;
    case consensus::Role::kCandidate: view.role = NodeRole::kCandidate; break;
    case consensus::Role::kLeader: view.role = NodeRole::kLeader; break;
  }
  view.term = info.term;
  view.leader = info.leader;
  view.ready = info.ready;
  return view;
}

void RealReplica::propose(std::string entry, std::function<void(const Proposed&)> done) {
  consensus_->propose(std::move(entry), [done = std::move(done)](consensus::Outcome outcome) {
    Proposed proposed;
    proposed.index = outcome.index;
    proposed.term = outcome.term;
    proposed.kind = outcome.kind == consensus::Outcome::kApplied      ? Proposed::kApplied
                    : outcome.kind == consensus::Outcome::kNotApplied ? Proposed::kNotApplied
                                                                      : Proposed::kUnknown;
    done(proposed);
  });
}

void RealReplica::transfer(uint64_t to, std::function<void(const std::string&)> done) {
  consensus_->transfer(to, [done = std::move(done)](absl::Status status) {
    if (!status.ok()) spdlog::warn("hand-over: {}", std::string(status.message()));
    done(std::string(status.message()));
  });
}

bool RealReplica::address_of(uint64_t node, std::string* host, uint16_t* port) const {
  const consensus::Peer* peer = consensus_->peer(node);
  if (peer == nullptr) return false;
  *host = peer->host;
  *port = peer->port;
  return true;
}

void RealReplica::measure(DiskView* view) const {
  consensus::DiskStatus disk = consensus_->disk();
  view->sync_s = std::move(disk.write_s);
  view->backlog_bytes = disk.backlog_bytes;
}

void RealReplica::describe(ClusterView* view) const {
  view->commit = consensus_->commit();
  view->applied = consensus_->applied();
  view->last_index = consensus_->last_index();
  view->heartbeat_ms = static_cast<uint32_t>(options_->heartbeat_ms);
  view->election_timeout_ms = static_cast<uint32_t>(options_->election_timeout_ms);
  view->cluster_id = consensus_->cluster_id();
  for (const consensus::Peer& peer : options_->peers) {
    NodeView node;
    node.id = peer.id;
    node.host = peer.host;
    node.port = peer.port;
    if (peer.id == options_->self) {
      node.connected = true;
      node.match_index = view->last_index;
      node.last_contact_ms = 0;
      if (own_port_ != 0) {
        node.host = own_host_;
        node.port = own_port_;
      }
    }
    view->nodes.push_back(std::move(node));
  }
  for (const consensus::PeerStatus& status : consensus_->peers())
    for (NodeView& node : view->nodes) {
      if (node.id != status.id || node.id == options_->self) continue;
      node.connected = status.connected;
      node.match_index = status.match_index;
      node.last_contact_ms = status.last_contact_ms;
    }
}

}  // namespace xce::service
