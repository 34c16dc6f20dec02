#include "controller/service/wire.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include "absl/strings/str_cat.h"
#include "libxce/net/frame.h"
#include "libxce/wire/codec.h"
#include "xce/config.h"
#include "xce/errnox.h"

namespace xce::service {
namespace {

using OpReader = wire::Op::Reader;

static_assert(static_cast<int>(wire::Op::RESERVATION_LIST) ==
                  static_cast<int>(Ask::kReservationList),
              "Ask has Op's numbers");
static_assert(static_cast<int>(wire::Op::ESTIMATES) == static_cast<int>(Ask::kEstimates),
              "Ask has Op's numbers");
static_assert(static_cast<int>(wire::Op::BACKUP_READ) == static_cast<int>(Ask::kBackupRead),
              "Ask has Op's numbers");
static_assert(static_cast<int>(wire::Op::JOIN) == static_cast<int>(Ask::kJoin),
              "Ask has Op's numbers");
static_assert(static_cast<int>(wire::Op::NOTIFY) == static_cast<int>(Ask::kNotify),
              "Ask has Op's numbers");

constexpr uint32_t kRoles = 6;

using wire::text;

absl::Status read_hello(wire::Hello::Reader from, Decoded* out) {
  if (static_cast<uint32_t>(from.getRole()) >= kRoles)
    return absl::InvalidArgumentError("hello with an unknown role");
  out->hello.role = static_cast<Role>(from.getRole());
  out->hello.name = text(from.getName());
  out->hello.user = text(from.getUser());
  out->hello.uid = from.getUid();
  out->hello.gid = from.getGid();
  out->version = text(from.getVersion());
  return absl::OkStatus();
}

LogRequest read_log_request(wire::JobLog::Reader from) {
  if (static_cast<uint32_t>(from.getStream()) > 1) throw wire::CodecError("unknown stream");
  return {from.getId(), static_cast<Stream>(from.getStream()), from.getOffset(), from.getLimit(),
          from.getWaitMs()};
}

Subscription read_subscription(wire::Subscribe::Reader from) {
  const auto jobs = from.getJobs();
  if (jobs.size() > XCE_MAX_WATCHED_JOBS) throw wire::CodecError("too many jobs to watch");
  Subscription to{from.getFromRevision(), {}};
  for (const uint64_t id : jobs) to.jobs.push_back(id);
  return to;
}

LogChunk read_chunk(wire::LogChunk::Reader from) {
  LogChunk to;
  to.query_id = from.getQueryId();
  to.status = from.getStatus();
  to.data.assign(reinterpret_cast<const char*>(from.getData().begin()), from.getData().size());
  to.offset = from.getOffset();
  to.eof = from.getEof();
  to.message = text(from.getMessage());
  return to;
}

EstimateList read_estimates(wire::Estimates::Reader from) {
  EstimateList to;
  to.epoch = from.getEpoch();
  to.items.reserve(from.getItems().size());
  for (auto item : from.getItems()) to.items.push_back({item.getJobId(), item.getStartMs()});
  return to;
}

MemberControl read_member(wire::MemberCtrl::Reader from) {
  if (static_cast<uint32_t>(from.getAction()) > 3)
    throw wire::CodecError("unknown membership action");
  return {static_cast<MemberControl::Action>(from.getAction()), from.getNodeId(),
          text(from.getHost()), from.getPort()};
}

absl::Status read_what(OpReader op, size_t bytes, Decoded* out) {
  Request& request = out->request;
  if (op.which() > wire::Op::RESERVATION_LIST)
    return absl::InvalidArgumentError(
        "this operation is newer than this controller; upgrade it or use another");
  request.ask = static_cast<Ask>(op.which());
  switch (request.ask) {
    case Ask::kTick:
    case Ask::kHostLost:
      return absl::InvalidArgumentError(
          absl::StrCat("operation ", name_of(request.ask), " is the primary's own"));
    case Ask::kHello: return read_hello(op.getHello(), out);
    case Ask::kJobList: request.what = wire::read_filter(op.getJobList()); break;
    case Ask::kJobHist: request.what = wire::read_filter(op.getJobHist()); break;
    case Ask::kJobInfo: request.what = uint64_t{op.getJobInfo()}; break;
    case Ask::kResVal: request.what = text(op.getResVal()); break;
    case Ask::kSchedAdmin: request.what = text(op.getSchedAdmin()); break;
    case Ask::kJobLog: request.what = read_log_request(op.getJobLog()); break;
    case Ask::kJobLogData: request.what = read_chunk(op.getJobLogData()); break;
    case Ask::kBackupRead:
      request.what = BackupPosition{op.getBackupRead().getId(), op.getBackupRead().getOffset()};
      break;
    case Ask::kEstimates: request.what = read_estimates(op.getEstimates()); break;
    case Ask::kMemberCtrl: request.what = read_member(op.getMemberCtrl()); break;
    case Ask::kSubscribe: request.what = read_subscription(op.getSubscribe()); break;
    case Ask::kJobSubmit:
      if (bytes > kMaxSubmitBytes)
        return absl::InvalidArgumentError(
            absl::StrCat("submission of ", bytes, " bytes is over the limit of ", kMaxSubmitBytes,
                         " bytes: shorten the script or the environment"));
      request.what = wire::read_op(op);
      break;
    default:
      if (is_write(request.ask)) request.what = wire::read_op(op);
  }
  return absl::OkStatus();
}

// ---- replies ------------------------------------------------------------------------------------

void write_nodes(const std::vector<NodeView>& from, capnp::List<wire::Node>::Builder to) {
  for (size_t i = 0; i < from.size(); ++i) {
    to[i].setId(from[i].id);
    to[i].setHost(from[i].host);
    to[i].setPort(from[i].port);
    to[i].setRole(from[i].role);
    to[i].setConnected(from[i].connected);
    to[i].setMatchIndex(from[i].match_index);
    to[i].setLastContactMs(from[i].last_contact_ms);
  }
}

struct BodyWriter {
  wire::Body::Builder to;

  void operator()(std::monostate) {}
  void operator()(const HelloBody& from) {
    auto hello = to.initHello();
    hello.setNodeId(from.node_id);
    hello.setApplied(from.applied);
    hello.setOutboxApplied(from.outbox_applied);
    hello.setJoined(from.joined);
    hello.setServerMs(from.server_ms);
    hello.setSchedulerEpoch(from.scheduler_epoch);
    hello.setVersion(kVersion);
    hello.setHostKnown(from.host_known);
    auto members = hello.initMembers(static_cast<unsigned>(from.members.size()));
    for (size_t i = 0; i < from.members.size(); ++i) {
      members[static_cast<unsigned>(i)].setHost(from.members[i].first);
      members[static_cast<unsigned>(i)].setPort(from.members[i].second);
    }
    hello.setLeaseMs(from.lease_ms);
  }
  void operator()(const JobPageBody& from) {
    auto page = to.initJobs();
    auto jobs = page.initJobs(from.jobs.size());
    for (size_t i = 0; i < from.jobs.size(); ++i)
      wire::write_job(from.jobs[i], from.full ? wire::Detail::kFull : wire::Detail::kSummary,
                      jobs[i]);
    page.setNextAfterId(from.next_after_id);
    page.setTotal(from.total);
  }
  void operator()(const std::vector<Host>& from) {
    auto hosts = to.initHosts(from.size());
    for (size_t i = 0; i < from.size(); ++i) wire::write_host(from[i], hosts[i]);
  }
  void operator()(const std::vector<Queue>& from) {
    auto queues = to.initQueues(from.size());
    for (size_t i = 0; i < from.size(); ++i) wire::write_queue(from[i], queues[i]);
  }
  void operator()(const std::vector<Reservation>& from) {
    auto reservations = to.initReservations(from.size());
    for (size_t i = 0; i < from.size(); ++i) wire::write_reservation(from[i], reservations[i]);
  }
  void operator()(const std::vector<User>& from) {
    auto users = to.initUsers(from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      users[i].setName(from[i].name);
      users[i].setPending(from[i].pending);
      users[i].setRunning(from[i].running);
      users[i].setFinished(from[i].finished);
      users[i].setCpuMs(from[i].cpu_ms);
    }
  }
  void operator()(const std::vector<Gres>& from) {
    auto gres = to.initGres(from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      gres[i].setName(from[i].name);
      gres[i].setCount(from[i].count);
    }
  }
  void operator()(const ClusterConfBody& from) {
    auto conf = to.initConf();
    write_nodes(from.view.nodes, conf.initNodes(from.view.nodes.size()));
    conf.setHeartbeatMs(from.view.heartbeat_ms);
    conf.setElectionTimeoutMs(from.view.election_timeout_ms);
    conf.setClusterId(from.view.cluster_id);
  }
  void operator()(const ClusterView& from) {
    auto status = to.initCluster();
    status.setNodeId(from.node_id);
    status.setRole(from.role);
    status.setLeaderId(from.leader_id);
    status.setTerm(from.term);
    status.setCommit(from.commit);
    status.setApplied(from.applied);
    status.setLastIndex(from.last_index);
    write_nodes(from.nodes, status.initNodes(from.nodes.size()));
    status.setUptimeMs(from.uptime_ms);
    status.setJobsPending(from.jobs_pending);
    status.setJobsRunning(from.jobs_running);
    status.setJobsFinished(from.jobs_finished);
    status.setSessions(from.sessions);
    status.setLastElectionMs(from.last_election_ms);
    status.setLastElectionTookMs(from.last_election_took_ms);
    status.setReady(from.ready);
    status.setDisk(from.disk);
    status.setClusterId(from.cluster_id);
    status.setSchedulerName(from.scheduler);
    status.setHeartbeatMs(from.heartbeat_ms);
    status.setElectionTimeoutMs(from.election_timeout_ms);
  }
  void operator()(const LogChunk& from) {
    auto log = to.initLog();
    log.setQueryId(from.query_id);
    log.setStatus(from.status);
    log.setData(
        capnp::Data::Reader(reinterpret_cast<const uint8_t*>(from.data.data()), from.data.size()));
    log.setOffset(from.offset);
    log.setEof(from.eof);
    log.setMessage(from.message);
  }
  void operator()(const JoinedBody& from) {
    auto joined = to.initJoined();
    joined.setRevision(from.revision);
    joined.setEpoch(from.epoch);
    joined.setActive(from.active);
    joined.setOutboxApplied(from.outbox_applied);
  }
  void operator()(const SubmittedBody& from) {
    auto submitted = to.initSubmitted();
    submitted.setJobId(from.job);
    submitted.setCount(from.count);
    submitted.setExisting(from.existing);
  }
  void operator()(const AffectedBody& from) { to.setAffected(from.count); }
  void operator()(const std::vector<int32_t>& from) {
    auto items = to.initDispatched(from.size());
    for (size_t i = 0; i < from.size(); ++i) items.set(i, from[i]);
  }
  void operator()(const std::string& from) { to.setText(from); }
  void operator()(const BackupBody& from) {
    auto part = to.initBackup();
    part.setId(from.id);
    part.setIndex(from.index);
    part.setTotal(from.total);
    part.setOffset(from.offset);
    part.setData(
        capnp::Data::Reader(reinterpret_cast<const uint8_t*>(from.data.data()), from.data.size()));
    part.setCrc(from.crc);
  }
};

std::string encode_reply(const Answer& answer) {
  capnp::MallocMessageBuilder message;
  auto reply = message.initRoot<wire::ServerMessage>().initReply();
  reply.setSeq(answer.seq);
  reply.setStatus(answer.status);
  reply.setMessage(answer.message);
  reply.setRedirectHost(answer.redirect_host);
  reply.setRedirectPort(answer.redirect_port);
  reply.setTerm(answer.term);
  reply.setIndex(answer.index);
  reply.setOutcome(answer.outcome);
  reply.setClusterId(answer.cluster_id);
  std::visit(BodyWriter{reply.initBody()}, answer.body);
  return wire::flatten(message);
}

// ---- pushes -------------------------------------------------------------------------------------

struct ItemWriter {
  wire::Detail detail;
  wire::Event::Builder to;

  void operator()(const push::EventPtr& event) { wire::write_event(*event, detail, to); }
  void operator()(const push::Gap& gap) { to.setGap(gap.revision); }
  void operator()(const push::Wakeup&) { to.setWakeup(); }
  void operator()(const push::LogQuery& from) {
    auto query = to.initLogQuery();
    query.setQueryId(from.query_id);
    query.setJobId(from.job);
    query.setStream(static_cast<wire::Stream>(from.stream));
    query.setOffset(from.offset);
    query.setLimit(from.limit);
    query.setWaitMs(from.wait_ms);
  }
  void operator()(const push::SchedAdmin& from) { to.setSchedAdmin(from.text); }
};

}  // namespace

absl::Status decode_request(const std::vector<uint64_t>& payload, Decoded* out) {
  try {
    const size_t bytes = payload.size() * 8;
    capnp::FlatArrayMessageReader message(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(payload.data()), payload.size()),
        wire::reader_options(bytes));
    const auto from = message.getRoot<wire::Request>();
    Request& to = out->request;
    to.seq = from.getSeq();
    to.client = {from.getClientIdHi(), from.getClientIdLo()};
    to.op_seq = from.getOpSeq();
    to.lowest_unanswered = from.getLowestUnanswered();
    to.birth = from.getBirth();
    to.deadline_ms = from.getDeadlineMs();
    to.op_hash = from.getOpHash();
    to.resent = from.getResent();
    to.stale_ok = from.getStaleOk();
    if (from.hasOnBehalf()) {
      const auto person = from.getOnBehalf();
      out->on_behalf = Person{text(person.getUser()), person.getUid(), person.getGid(),
                              person.getAdministrator()};
    }
    return read_what(from.getOp(), bytes, out);
  } catch (const wire::CodecError& error) {
    return absl::InvalidArgumentError(error.what());
  } catch (const kj::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed request: ", error.getDescription().cStr()));
  }
}

std::string encode_answer(const Answer& answer) {
  std::string bytes = encode_reply(answer);
  if (bytes.size() <= net::kMaxFrame) return bytes;
  Answer failed;
  failed.seq = answer.seq;
  failed.status = E_XCE_INVALID;
  failed.message =
      absl::StrCat("the answer has ", bytes.size(), " bytes, more than a frame holds (",
                   net::kMaxFrame, "): ask for fewer rows");
  failed.term = answer.term;
  failed.index = answer.index;
  failed.outcome = kNotApplied;
  failed.cluster_id = answer.cluster_id;
  return encode_reply(failed);
}

std::string encode_push(const push::Batch& batch) {
  capnp::MallocMessageBuilder message;
  auto to = message.initRoot<wire::ServerMessage>().initPush();
  to.setRevision(batch.revision);
  auto events = to.initEvents(batch.items.size());
  const wire::Detail detail = batch.full ? wire::Detail::kFull : wire::Detail::kSummary;
  for (size_t i = 0; i < batch.items.size(); ++i)
    std::visit(ItemWriter{detail, events[i]}, batch.items[i]);
  return wire::flatten(message);
}

}  // namespace xce::service
