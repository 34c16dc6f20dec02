#include "controller/service/real_replica.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "controller/consensus/backup_format.h"
#include "spdlog/spdlog.h"
#include "xce/config.h"
#include "xce/errnox.h"

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

namespace {
MembersChanged outcome_of(const absl::Status& status) {
  MembersChanged out;
  out.message = std::string(status.message());
  switch (status.code()) {
    case absl::StatusCode::kOk: out.kind = MembersChanged::kDone; break;
    case absl::StatusCode::kUnavailable: out.kind = MembersChanged::kMoved; break;
    case absl::StatusCode::kCancelled: out.kind = MembersChanged::kLost; break;
    case absl::StatusCode::kNotFound: out.status = E_XCE_NOENT; break;
    case absl::StatusCode::kAborted: out.status = E_XCE_BUSY; break;
    case absl::StatusCode::kUnknown: out.status = E_XCE_OUTCOME_UNKNOWN; break;
    default: out.status = E_XCE_INVALID;
  }
  return out;
}
}  // namespace

void RealReplica::change_members(const MemberControl& wish, bool resent, Index birth,
                                 std::function<void(const MembersChanged&)> done) {
  const std::vector<consensus::Member>& members = consensus_->members().all;
  if (wish.action == MemberControl::kAdd && members.size() == 1 && own_port_ != 0 &&
      members.front().host == XCE_DEFAULT_HOST && members.front().port != own_port_) {
    MembersChanged refused;
    refused.status = E_XCE_INVALID;
    refused.message =
        "this controller was founded with --single, and others would look for it "
        "at " XCE_DEFAULT_HOST ": start it again with --advertise HOST:PORT, then add others";
    done(refused);
    return;
  }
  consensus::MemberChange change;
  change.action = wish.action == MemberControl::kAdd      ? consensus::MemberChange::kAdd
                  : wish.action == MemberControl::kRemove ? consensus::MemberChange::kRemove
                                                          : consensus::MemberChange::kReplace;
  change.id = wish.node_id;
  change.host = wish.host;
  change.port = wish.port;
  change.resent = resent;
  change.birth = birth;
  consensus_->change_members(
      change, [done = std::move(done)](const absl::Status& status) { done(outcome_of(status)); });
}

namespace {
// The backup's header, then the snapshot, then the history.
class SnapshotBackup final : public BackupSource {
 public:
  // history: its file, which becomes this object's; -1: there is none.
  SnapshotBackup(std::unique_ptr<consensus::SnapshotCopy> snapshot, int history,
                 uint64_t history_bytes, uint64_t cluster)
      : snapshot_(std::move(snapshot)), history_(history), history_bytes_(history_bytes) {
    consensus::BackupHeader header;
    header.cluster = cluster;
    header.index = snapshot_->index();
    header.time_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    header.snapshot_bytes = snapshot_->bytes();
    header.history_bytes = history_bytes_;
    header_ = consensus::encode_backup_header(header);
  }
  ~SnapshotBackup() override {
    if (history_ >= 0) ::close(history_);
  }
  Index index() const override { return snapshot_->index(); }
  uint64_t total() const override { return header_.size() + snapshot_->bytes() + history_bytes_; }
  absl::StatusOr<std::string> read(uint64_t offset, size_t n) const override {
    if (offset < header_.size()) return header_.substr(offset, n);
    offset -= header_.size();
    if (offset < snapshot_->bytes())
      return snapshot_->read(offset, std::min<uint64_t>(n, snapshot_->bytes() - offset));
    offset -= snapshot_->bytes();
    std::string out(std::min<uint64_t>(n, history_bytes_ - std::min(offset, history_bytes_)), '\0');
    const ssize_t got = ::pread(history_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 || static_cast<size_t>(got) != out.size())
      return absl::UnavailableError("the packed history cannot be read");
    return out;
  }

 private:
  const std::unique_ptr<consensus::SnapshotCopy> snapshot_;
  const int history_;
  const uint64_t history_bytes_;
  std::string header_;
};

// Opens a file and takes it out of its directory.
absl::StatusOr<int> take_file(const std::string& path, uint64_t* bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  const bool good = fd >= 0 && ::fstat(fd, &status) == 0;
  ::unlink(path.c_str());
  if (!good) {
    if (fd >= 0) ::close(fd);
    return absl::UnavailableError("cannot read " + path);
  }
  *bytes = static_cast<uint64_t>(status.st_size);
  return fd;
}
}  // namespace

void RealReplica::backup(BackupReady ready) {
  consensus_->backup([this, ready = std::move(ready)](
                         absl::StatusOr<std::unique_ptr<consensus::SnapshotCopy>> snapshot) {
    if (!snapshot.ok()) {
      ready(snapshot.status());
      return;
    }
    // The history afterwards: it must not end before the snapshot.
    const auto taken =
        std::make_shared<std::unique_ptr<consensus::SnapshotCopy>>(*std::move(snapshot));
    history_->pack(0, [this, ready, taken](absl::StatusOr<std::string> path) {
      uint64_t bytes = 0;
      absl::StatusOr<int> fd = path.ok() ? take_file(*path, &bytes) : path.status();
      if (fd.ok())
        ready(std::make_unique<SnapshotBackup>(std::move(*taken), *fd, bytes,
                                               consensus_->cluster_id()));
      else
        ready(fd.status());
    });
  });
}

bool RealReplica::address_of(uint64_t node, std::string* host, uint16_t* port) const {
  const consensus::Member* peer = consensus_->members().find(node);
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
  std::vector<consensus::Member> members = consensus_->members().all;
  if (members.empty())  // it waits to be taken in
    members.push_back(
        {options_->self, options_->advertise_host, options_->advertise_port, 0, false});
  for (const consensus::Member& peer : members) {
    NodeView node;
    node.id = peer.id;
    node.host = peer.host;
    node.port = peer.port;
    node.voter = peer.voter;
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
