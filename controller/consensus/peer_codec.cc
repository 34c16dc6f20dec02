#include "controller/consensus/peer_codec.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "libxce/net/frame.h"
#include "libxce/schema/peer.capnp.h"

namespace xce::consensus {
namespace {

constexpr size_t kMaxText = 512;

void append_frame_of(capnp::MessageBuilder& message, std::string* out) {
  const kj::Array<capnp::word> words = capnp::messageToFlatArray(message);
  net::append_frame(
      {reinterpret_cast<const char*>(words.begin()), words.size() * sizeof(capnp::word)}, out);
}

absl::Status invalid(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("peer message: ", std::string(what)));
}

absl::Status read_hello(wire::Hello::Reader in, Hello* out) {
  if (in.getAdvertise().size() > kMaxText || in.getRefused().size() > kMaxText)
    return invalid("overlong text");
  out->node = in.getNodeId();
  out->cluster = in.getClusterId();
  out->instance = {in.getInstanceHi(), in.getInstanceLo()};
  out->boot = in.getBootId();
  out->advertise = in.getAdvertise().cStr();
  out->serving = in.getServing();
  out->refused = in.getRefused().cStr();
  out->retry = in.getRetry();
  out->removed = in.getRemoved();
  out->conf_index = in.getConfIndex();
  out->history = in.getHistoryIndex();
  if (out->node == 0) return invalid("node id 0");
  return absl::OkStatus();
}

absl::Status read_append_entries(wire::AppendEntries::Reader in, PeerMessage* out) {
  const auto entries = in.getEntries();
  if (entries.size() > kMaxAppendEntries) return invalid("too many entries");
  out->raft.type = XCE_MSG_APPEND_ENTRIES;
  out->raft.version = in.getVersion();
  out->raft.term = in.getTerm();
  out->raft.prev_log_index = in.getPrevLogIndex();
  out->raft.prev_log_term = in.getPrevLogTerm();
  out->raft.leader_commit = in.getLeaderCommit();
  out->entries.reserve(entries.size());
  for (const auto entry : entries) {
    const auto data = entry.getData();
    if (data.size() == 0 || data.size() % 8 != 0 || data.size() > kMaxEntryBytes)
      return invalid("entry of a bad size");
    if (entry.getType() < XCE_ENTRY_COMMAND || entry.getType() > XCE_ENTRY_CHANGE)
      return invalid("entry of a bad type");
    if (entry.getTerm() == 0 || entry.getTerm() > in.getTerm())
      return invalid("entry of a bad term");
    out->entries.push_back({entry.getTerm(), entry.getType(), data.begin(), data.size()});
  }
  out->raft.n_entries = static_cast<unsigned>(out->entries.size());
  out->raft.entries = out->entries.data();
  return absl::OkStatus();
}

absl::Status read_message(wire::PeerMessage::Reader in, PeerMessage* out) {
  xce_core_message* raft = &out->raft;
  out->kind = PeerMessage::kRaft;
  switch (in.which()) {
    case wire::PeerMessage::HELLO:
      out->kind = PeerMessage::kHello;
      return read_hello(in.getHello(), &out->hello);
    case wire::PeerMessage::REQUEST_VOTE: {
      const auto m = in.getRequestVote();
      raft->type = XCE_MSG_REQUEST_VOTE;
      raft->version = m.getVersion();
      raft->term = m.getTerm();
      raft->last_log_index = m.getLastLogIndex();
      raft->last_log_term = m.getLastLogTerm();
      raft->disrupt_leader = m.getDisruptLeader();
      raft->pre_vote = m.getPreVote();
      break;
    }
    case wire::PeerMessage::REQUEST_VOTE_RESULT: {
      const auto m = in.getRequestVoteResult();
      raft->type = XCE_MSG_REQUEST_VOTE_RESULT;
      raft->version = m.getVersion();
      raft->term = m.getTerm();
      raft->vote_granted = m.getVoteGranted();
      raft->pre_vote = m.getPreVote();
      raft->features = m.getFeatures();
      raft->capacity = m.getCapacity();
      break;
    }
    case wire::PeerMessage::APPEND_ENTRIES: {
      absl::Status status = read_append_entries(in.getAppendEntries(), out);
      if (!status.ok()) return status;
      break;
    }
    case wire::PeerMessage::APPEND_ENTRIES_RESULT: {
      const auto m = in.getAppendEntriesResult();
      raft->type = XCE_MSG_APPEND_ENTRIES_RESULT;
      raft->version = m.getVersion();
      raft->term = m.getTerm();
      raft->rejected = m.getRejected();
      raft->last_log_index = m.getLastLogIndex();
      raft->features = m.getFeatures();
      raft->capacity = m.getCapacity();
      break;
    }
    case wire::PeerMessage::TIMEOUT_NOW: {
      const auto m = in.getTimeoutNow();
      raft->type = XCE_MSG_TIMEOUT_NOW;
      raft->version = m.getVersion();
      raft->term = m.getTerm();
      raft->last_log_index = m.getLastLogIndex();
      raft->last_log_term = m.getLastLogTerm();
      break;
    }
    case wire::PeerMessage::SUSPECT: {
      const auto m = in.getSuspect();
      out->kind = PeerMessage::kSuspect;
      out->suspect = {m.getTerm(), m.getPrimary(), m.getLastLogTerm(), m.getLastLogIndex(),
                      m.getApplied()};
      return absl::OkStatus();
    }
    case wire::PeerMessage::SNAPSHOT_PIECE: {
      const auto m = in.getSnapshotPiece();
      const auto data = m.getData();
      if (m.getTerm() == 0 || m.getIndex() == 0 || m.getTotal() == 0)
        return invalid("snapshot without a name");
      if (data.size() == 0 || data.size() > kMaxSnapshotPiece || m.getOffset() > m.getTotal() ||
          data.size() > m.getTotal() - m.getOffset())
        return invalid("piece of a snapshot of a bad size");
      if (m.getFileBytes() > m.getTotal()) return invalid("snapshot larger than all of it");
      out->kind = PeerMessage::kSnapshotPiece;
      out->piece = {m.getTransfer(),
                    m.getTerm(),
                    m.getIndex(),
                    m.getTotal(),
                    m.getOffset(),
                    std::string(reinterpret_cast<const char*>(data.begin()), data.size()),
                    m.getFileBytes() == 0 ? m.getTotal() : m.getFileBytes()};
      return absl::OkStatus();
    }
    case wire::PeerMessage::SNAPSHOT_ACK: {
      const auto m = in.getSnapshotAck();
      if (m.getRefused().size() > kMaxText) return invalid("overlong text");
      out->kind = PeerMessage::kSnapshotAck;
      out->ack = {m.getTransfer(), m.getReceived(), m.getRefused().cStr()};
      return absl::OkStatus();
    }
    case wire::PeerMessage::STILL_LEADING: {
      const auto m = in.getStillLeading();
      out->kind = PeerMessage::kStillLeading;
      out->question = {m.getTerm(), m.getSeq()};
      return out->question.term == 0 ? invalid("term 0") : absl::OkStatus();
    }
    case wire::PeerMessage::STILL_FOLLOWING: {
      const auto m = in.getStillFollowing();
      out->kind = PeerMessage::kStillFollowing;
      out->question = {m.getTerm(), m.getSeq()};
      return out->question.term == 0 ? invalid("term 0") : absl::OkStatus();
    }
    case wire::PeerMessage::PING: out->kind = PeerMessage::kPing; return absl::OkStatus();
    default: out->kind = PeerMessage::kUnknown; return absl::OkStatus();
  }
  if (raft->term == 0) return invalid("term 0");
  return absl::OkStatus();
}

}  // namespace

void append_hello_frame(const Hello& hello, std::string* out) {
  capnp::MallocMessageBuilder message;
  auto to = message.initRoot<wire::PeerMessage>().initHello();
  to.setNodeId(hello.node);
  to.setClusterId(hello.cluster);
  to.setInstanceHi(hello.instance.hi);
  to.setInstanceLo(hello.instance.lo);
  to.setBootId(hello.boot);
  to.setAdvertise(hello.advertise.substr(0, kMaxText).c_str());
  to.setServing(hello.serving);
  to.setRefused(hello.refused.substr(0, kMaxText).c_str());
  to.setRetry(hello.retry);
  to.setRemoved(hello.removed);
  to.setConfIndex(hello.conf_index);
  to.setHistoryIndex(hello.history);
  append_frame_of(message, out);
}

void append_suspect_frame(const Suspect& suspect, std::string* out) {
  capnp::MallocMessageBuilder message;
  auto to = message.initRoot<wire::PeerMessage>().initSuspect();
  to.setTerm(suspect.term);
  to.setPrimary(suspect.primary);
  to.setLastLogTerm(suspect.last_term);
  to.setLastLogIndex(suspect.last_index);
  to.setApplied(suspect.applied);
  append_frame_of(message, out);
}

void append_still_leading_frame(const LeaderQuestion& question, std::string* out) {
  capnp::MallocMessageBuilder message;
  auto to = message.initRoot<wire::PeerMessage>().initStillLeading();
  to.setTerm(question.term);
  to.setSeq(question.seq);
  append_frame_of(message, out);
}

void append_still_following_frame(const LeaderQuestion& answer, std::string* out) {
  capnp::MallocMessageBuilder message;
  auto to = message.initRoot<wire::PeerMessage>().initStillFollowing();
  to.setTerm(answer.term);
  to.setSeq(answer.seq);
  append_frame_of(message, out);
}

void append_ping_frame(std::string* out) {
  capnp::MallocMessageBuilder message;
  message.initRoot<wire::PeerMessage>().setPing();
  append_frame_of(message, out);
}

void append_snapshot_piece_frame(const SnapshotPiece& piece, std::string* out) {
  capnp::MallocMessageBuilder message(static_cast<unsigned>(64 + piece.data.size() / 8));
  auto to = message.initRoot<wire::PeerMessage>().initSnapshotPiece();
  to.setTransfer(piece.transfer);
  to.setTerm(piece.term);
  to.setIndex(piece.index);
  to.setTotal(piece.total);
  to.setOffset(piece.offset);
  to.setFileBytes(piece.file_bytes);
  to.setData(
      capnp::Data::Reader(reinterpret_cast<const kj::byte*>(piece.data.data()), piece.data.size()));
  append_frame_of(message, out);
}

void append_snapshot_ack_frame(const SnapshotAck& ack, std::string* out) {
  capnp::MallocMessageBuilder message;
  auto to = message.initRoot<wire::PeerMessage>().initSnapshotAck();
  to.setTransfer(ack.transfer);
  to.setReceived(ack.received);
  to.setRefused(ack.refused.substr(0, kMaxText).c_str());
  append_frame_of(message, out);
}

void append_raft_frame(const xce_core_message& m, std::string* out) {
  size_t words = 64;
  if (m.type == XCE_MSG_APPEND_ENTRIES)
    for (unsigned i = 0; i < m.n_entries; i++) words += 4 + m.entries[i].len / 8;
  capnp::MallocMessageBuilder message(static_cast<unsigned>(words));
  auto root = message.initRoot<wire::PeerMessage>();
  switch (m.type) {
    case XCE_MSG_REQUEST_VOTE: {
      auto to = root.initRequestVote();
      to.setVersion(m.version);
      to.setTerm(m.term);
      to.setLastLogIndex(m.last_log_index);
      to.setLastLogTerm(m.last_log_term);
      to.setDisruptLeader(m.disrupt_leader);
      to.setPreVote(m.pre_vote);
      break;
    }
    case XCE_MSG_REQUEST_VOTE_RESULT: {
      auto to = root.initRequestVoteResult();
      to.setVersion(m.version);
      to.setTerm(m.term);
      to.setVoteGranted(m.vote_granted);
      to.setPreVote(m.pre_vote);
      to.setFeatures(m.features);
      to.setCapacity(m.capacity);
      break;
    }
    case XCE_MSG_APPEND_ENTRIES: {
      auto to = root.initAppendEntries();
      to.setVersion(m.version);
      to.setTerm(m.term);
      to.setPrevLogIndex(m.prev_log_index);
      to.setPrevLogTerm(m.prev_log_term);
      to.setLeaderCommit(m.leader_commit);
      auto entries = to.initEntries(m.n_entries);
      for (unsigned i = 0; i < m.n_entries; i++) {
        entries[i].setTerm(m.entries[i].term);
        entries[i].setType(static_cast<uint8_t>(m.entries[i].type));
        entries[i].setData(
            capnp::Data::Reader(static_cast<const kj::byte*>(m.entries[i].data), m.entries[i].len));
      }
      break;
    }
    case XCE_MSG_APPEND_ENTRIES_RESULT: {
      auto to = root.initAppendEntriesResult();
      to.setVersion(m.version);
      to.setTerm(m.term);
      to.setRejected(m.rejected);
      to.setLastLogIndex(m.last_log_index);
      to.setFeatures(m.features);
      to.setCapacity(m.capacity);
      break;
    }
    case XCE_MSG_TIMEOUT_NOW: {
      auto to = root.initTimeoutNow();
      to.setVersion(m.version);
      to.setTerm(m.term);
      to.setLastLogIndex(m.last_log_index);
      to.setLastLogTerm(m.last_log_term);
      break;
    }
    default: return;
  }
  append_frame_of(message, out);
}

absl::Status decode_peer_message(std::vector<uint64_t> payload, PeerMessage* out) {
  *out = PeerMessage();
  out->words = std::move(payload);
  capnp::ReaderOptions options;
  options.nestingLimit = 16;
  options.traversalLimitInWords = out->words.size() * 8;
  absl::Status status;
  const auto problem = kj::runCatchingExceptions([&] {
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(out->words.data()), out->words.size()),
        options);
    status = read_message(reader.getRoot<wire::PeerMessage>(), out);
  });
  KJ_IF_MAYBE (exception, problem) {
    return invalid(exception->getDescription().cStr());
  }
  return status;
}

}  // namespace xce::consensus
