// How a Node comes up: its options, the newest snapshot, the log after it, and the core that goes
// on from them.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/node.h"

namespace xce::consensus {
namespace {

constexpr unsigned kMaxInflightEntries = 8192;  // unacknowledged, to one follower

// The configuration entry that founds the cluster.
std::string first_entry_of(const std::vector<Peer>& peers) {
  std::vector<uint64_t> ids;
  std::vector<std::string> addresses;
  std::vector<const char*> raw;
  for (const Peer& peer : peers) {
    ids.push_back(peer.id);
    addresses.push_back(absl::StrCat(peer.host, ":", peer.port));
  }
  raw.reserve(addresses.size());
  for (const std::string& address : addresses) raw.push_back(address.c_str());
  size_t length = 0;
  void* const bytes = xce_core_encode_configuration(ids.data(), raw.data(),
                                                    static_cast<unsigned>(ids.size()), &length);
  if (bytes == nullptr) return {};
  std::string out(static_cast<const char*>(bytes), length);
  std::free(bytes);
  return out;
}

absl::Status with_way_out(const absl::Status& status, NodeId self) {
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(
      std::string(status.message()),
      ". What it stands for is no longer in the log. Put the file back from a copy of the "
      "directory, or move the data directory aside and let the other controllers rebuild this node "
      "with `xce cluster replace ",
      self, "`."));
}

}  // namespace

absl::Status Node::check_options() {
  std::sort(options_.peers.begin(), options_.peers.end(),
            [](const Peer& a, const Peer& b) { return a.id < b.id; });
  std::set<uint64_t> ids;
  std::set<std::string> addresses;
  for (const Peer& peer : options_.peers) {
    if (peer.id == 0 || peer.host.empty())
      return absl::InvalidArgumentError("a peer needs an id above 0 and a host");
    if (!ids.insert(peer.id).second)
      return absl::InvalidArgumentError(absl::StrCat("two peers have id ", peer.id));
    if (!addresses.insert(absl::StrCat(peer.host, ":", peer.port)).second)
      return absl::InvalidArgumentError(
          absl::StrCat("two peers have address ", peer.host, ":", peer.port));
  }
  if (options_.self == 0) return absl::InvalidArgumentError("this node has no id");
  if (ids.count(options_.self) == 0 && !options_.join)
    return absl::InvalidArgumentError(
        absl::StrCat("this node's id, ", options_.self, ", is not among the peers"));
  if (options_.peers.size() > 9) return absl::InvalidArgumentError("more than 9 peers");
  if (options_.heartbeat_ms < 1 || options_.election_timeout_ms < 2 * options_.heartbeat_ms)
    return absl::InvalidArgumentError("the election timeout must be at least twice the heartbeat");
  return absl::OkStatus();
}

absl::Status Node::open_log() {
  const std::string first_entry = options_.join ? "" : first_entry_of(options_.peers);
  if (first_entry.empty() && !options_.join)
    return absl::InvalidArgumentError("the peers' addresses make no configuration");
  auto dir = DataDir::open(fs_, options_.data_dir, options_.self, first_entry,
                           options_.segment_bytes, [this] { return around_->random(); });
  if (!dir.ok()) return dir.status();
  dir_ = std::move(*dir);
  LogContents contents = std::move(dir_->log()->contents());
  if (dir_->log()->had_torn_tail())
    spdlog::info(
        "consensus: the log's last write had been cut short by a crash and was dropped; nobody was "
        "told of it");
  SnapshotMeta snapshot;
  absl::Status loaded = state_machine_->open(options_.data_dir);
  if (loaded.ok()) loaded = load_snapshot(&contents, &snapshot);
  if (loaded.ok()) loaded = reconcile(snapshot, &contents);
  if (!loaded.ok()) return loaded;
  taker_ = around_->snapshot_taker(snapshots_, options_.snapshot_hook);
  conf_index_ = snapshot.conf_index;
  conf_ = snapshot.conf;
  applied_ = commit_ = snapshot.index;
  instances_ = std::move(contents.instances);
  if (contents.first_index == 0) contents.first_index = 1;
  log_ =
      MemoryLog(std::move(contents.entries), contents.first_index, snapshot.index, snapshot.term);
  stored_ = log_.last_index();
  for (uint64_t i = std::max(log_.first_index(), conf_index_ + 1); i <= log_.last_index(); i++)
    if (log_.at(i).type == XCE_ENTRY_CHANGE) changes_[i] = log_.at(i).data;
  members_changed();
  const absl::Status founders = check_founders();
  if (!founders.ok()) return founders;
  if (members_.all.empty())
    for (const Peer& peer : options_.peers)
      if (peer.id != options_.self) contacts_[peer.id] = {peer.id, peer.host, peer.port, 0, true};
  const Member* const self = members_.find(options_.self);
  if (self != nullptr && self->voter && members_.voters() == 1) {
    // A single node elects itself without a new term. Give each run one, so that a term tells runs
    // apart.
    contents.term++;
    contents.vote = options_.self;
    std::string items;
    append_term_vote_item(contents.term, contents.vote, &items);
    absl::Status status = dir_->log()->append(items);
    if (!status.ok()) return status;
  }
  core_ = xce_core_new(options_.self, absl::StrCat(options_.self).c_str(),
                       static_cast<unsigned>(options_.election_timeout_ms),
                       static_cast<unsigned>(options_.heartbeat_ms), kMaxInflightEntries,
                       static_cast<unsigned>(options_.seed ^ around_->random()));
  if (core_ == nullptr) return absl::ResourceExhaustedError("no memory for the Raft core");
  std::vector<xce_core_entry> entries;
  for (uint64_t i = log_.first_index(); i <= log_.last_index(); i++) {
    const LogEntry& e = log_.at(i);
    entries.push_back({e.term, e.type, e.data.data(), e.data.size()});
  }
  const size_t max_record = std::min(kMaxRecordBytes, LogStore::max_items(options_.segment_bytes));
  writer_ = around_->log_writer(std::move(dir_->log()), max_record,
                                [waker = disk_waker_.get()] { waker->wake(); });
  xce_core_update update;
  const xce_core_snapshot raw = {snapshot.index, snapshot.term, snapshot.conf_index,
                                 snapshot.conf.data(), snapshot.conf.size()};
  const int rv = xce_core_start_from(
      core_, now_ms(), contents.term, contents.vote, snapshot.index == 0 ? nullptr : &raw,
      log_.first_index(), entries.data(), static_cast<unsigned>(entries.size()), &update);
  if (rv != 0)
    return absl::InternalError(
        absl::StrCat("the Raft core refuses the log: ", xce_core_strerror(rv)));
  absorb(rv, update, "start");
  return absl::OkStatus();
}

// Members change, so what is given when a node is started again need not be what its cluster was
// founded with. But when it has nothing to do with the cluster, the directory is the wrong one.
absl::Status Node::check_founders() const {
  if (options_.join || members_.all.empty()) return absl::OkStatus();
  if (cluster_id_of(first_entry_of(options_.peers)) == dir_->cluster()) return absl::OkStatus();
  std::string addresses;
  for (const Peer& peer : options_.peers) {
    const Member* const member = members_.find(peer.id);
    if (member != nullptr && member->host == peer.host && member->port == peer.port)
      return absl::OkStatus();
  }
  for (const Member& member : members_.all)
    absl::StrAppend(&addresses, addresses.empty() ? "" : ",", member.id, "=",
                    address_text(member.host, member.port));
  return absl::FailedPreconditionError(absl::StrCat(
      options_.data_dir, " belongs to cluster ", absl::Hex(dir_->cluster(), absl::kZeroPad16),
      ", whose members are ", addresses,
      ", but none of them is among the peers given. Give these, or another data directory."));
}

absl::Status Node::load_snapshot(LogContents* log, SnapshotMeta* meta) {
  snapshots_ = options_.data_dir + "/snapshots";
  const auto found = open_snapshots(fs_, snapshots_);
  if (!found.ok()) return found.status();
  const uint64_t newest = found->empty() ? 0 : found->front();
  const uint64_t log_last = log->entries.empty() ? 0 : log->first_index + log->entries.size() - 1;
  absl::Status problem, behind;
  for (const uint64_t index : *found) {
    // An older one will do if the log goes on from it to what the newest stood for.
    if (index != newest &&
        (log->entries.empty() || log->first_index > index + 1 || log_last < newest))
      continue;
    const uint64_t begin = around_->now_ns();
    std::unique_ptr<StateMachine::Restored> state;
    absl::Status status = read_snapshot(index, meta, &state);
    if (status.ok()) {
      if (!problem.ok())
        spdlog::error(
            "consensus: {}. Going on from the one up to entry {} and the log; remove the damaged "
            "file",
            std::string(problem.message()), index);
      state_machine_->restore(index, state.get());
      spdlog::info("consensus: read the snapshot up to entry {} in {} ms", index,
                   (around_->now_ns() - begin) / 1000000);
      return absl::OkStatus();
    }
    if (absl::IsOutOfRange(status)) {
      // A crash came between the snapshot and the history that goes with it.
      spdlog::info("consensus: {}. Going on without it", std::string(status.message()));
      status = absl::DataLossError(status.message());
      if (behind.ok()) behind = status;
      continue;
    }
    if (!absl::IsDataLoss(status)) return status;
    if (problem.ok()) problem = status;
  }
  *meta = SnapshotMeta();
  // One that has still to join has nothing.
  if (newest == 0 && dir_->joins() && log->entries.empty() && log->first_index <= 1)
    return absl::OkStatus();
  const bool whole_log = log->first_index == 1 && !log->entries.empty();
  if (whole_log && log_last >= newest) {
    if (!problem.ok())
      spdlog::error("consensus: {}. The log holds everything; remove the damaged file",
                    std::string(problem.message()));
    return absl::OkStatus();
  }
  if (problem.ok()) problem = behind;
  if (!problem.ok()) return with_way_out(problem, options_.self);
  return absl::DataLossError(
      absl::StrCat(snapshots_, " has no snapshot, but the log in ", options_.data_dir,
                   "/log begins at entry ", log->first_index,
                   ". Put the snapshot back from a copy of the directory, or move the data "
                   "directory aside and bring this node back with "
                   "`xce cluster replace ",
                   options_.self, "`."));
}

absl::Status Node::read_snapshot(uint64_t index, SnapshotMeta* meta,
                                 std::unique_ptr<StateMachine::Restored>* state) {
  const std::string path = snapshot_path(snapshots_, index);
  auto reader = SnapshotReader::open(fs_, path);
  if (!reader.ok()) return reader.status();
  *meta = (*reader)->meta();
  if (meta->index != index || meta->cluster != dir_->cluster() ||
      !xce_core_valid_configuration(meta->conf.data(), meta->conf.size()))
    return absl::DataLossError(
        absl::StrCat("snapshot ", path, " is another cluster's or another one's"));
  auto loaded = state_machine_->load([&](char* to, size_t n) { return (*reader)->read(to, n); });
  absl::Status status = (*reader)->finish();
  if (!status.ok()) return status;
  if (!loaded.ok())
    return absl::Status(
        loaded.status().code(),
        absl::StrCat("snapshot ", path, ": ", std::string(loaded.status().message())));
  *state = *std::move(loaded);
  return absl::OkStatus();
}

// Makes the log go on from the snapshot. After a crash between the two, the log may still be one
// that the snapshot has replaced: then it starts anew.
absl::Status Node::reconcile(const SnapshotMeta& meta, LogContents* log) {
  if (meta.index == 0) return absl::OkStatus();
  bool fits = !log->entries.empty();
  if (fits) {
    const uint64_t last = log->first_index + log->entries.size() - 1;
    if (log->first_index > meta.index + 1)
      return absl::DataLossError(
          absl::StrCat(options_.data_dir, "/log begins at entry ", log->first_index,
                       ", but the snapshot ends at ", meta.index,
                       ". Put the missing files back from a copy of the directory, or move it "
                       "aside and bring this node back with `xce "
                       "cluster replace ",
                       options_.self, "`."));
    fits = last >= meta.index && (log->first_index > meta.index ||
                                  log->entries[meta.index - log->first_index].term == meta.term);
  }
  if (fits || log->first_index == meta.index + 1) {
    if (!fits) log->entries.clear();
    return absl::OkStatus();
  }
  log->entries.clear();
  log->first_index = meta.index + 1;
  std::string items;
  if (log->term < meta.term) {
    log->term = meta.term;
    log->vote = 0;
    append_term_vote_item(log->term, log->vote, &items);
  }
  append_reset_item(meta.index, &items);
  return dir_->log()->append(items);
}

}  // namespace xce::consensus
