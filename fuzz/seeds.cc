// Writes inputs that are right, one of each kind, as a beginning for the fuzz targets of binary
// formats: seeds DIRECTORY makes DIRECTORY/TARGET/seed-*. Run it anew when a format grows.
#include <capnp/message.h>

#include <filesystem>
#include <fstream>

#include "controller/consensus/log_format.h"
#include "controller/consensus/peer_codec.h"
#include "controller/consensus/snapshot_format.h"
#include "controller/service/state_codec.h"
#include "fuzz/state_check.h"
#include "libxce/net/frame.h"
#include "libxce/schema/client.capnp.h"
#include "libxce/wire/codec.h"

namespace {

namespace wire = xce::wire;
namespace consensus = xce::consensus;
std::string root;

void write(const std::string& target, const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories(root + "/" + target);
  std::ofstream(root + "/" + target + "/seed-" + name, std::ios::binary) << bytes;
}

void fill_spec(wire::JobSpec::Builder spec) {
  spec.setName("n");
  spec.setUser("ann");
  spec.setCpus(1);
  spec.setScript(capnp::Data::Reader(reinterpret_cast<const uint8_t*>("#!/bin/sh\n"), 10));
  spec.initArgs(1).set(0, "a");
  spec.initEnv(1).set(0, "A=b");
  spec.initGres(1)[0].setName("gpu");
  spec.initArray(2).set(1, 1);
  spec.initDependencies(1)[0].setJobId(1);
  spec.setSubmitKey("k");
}

void fill_op(wire::Op::Builder op, unsigned which) {
  switch (which) {
    case wire::Op::HELLO: op.initHello().setName("h1"); break;
    case wire::Op::JOB_LIST: op.initJobList().initIds(2).set(0, 1); break;
    case wire::Op::JOB_HIST: op.initJobHist().setUser("ann"); break;
    case wire::Op::JOB_INFO: op.setJobInfo(1); break;
    case wire::Op::RES_VAL: op.setResVal("gpu"); break;
    case wire::Op::JOB_LOG: op.initJobLog().setId(1); break;
    case wire::Op::JOIN: {
      auto join = op.initJoin();
      join.setRole(wire::Role::WORKER);
      auto host = join.initHost();
      host.setName("h2");
      host.setCpus(4);
      host.initGres(1)[0].setName("gpu");
      break;
    }
    case wire::Op::JOB_SUBMIT: fill_spec(op.initJobSubmit()); break;
    case wire::Op::JOB_CTRL: {
      auto control = op.initJobCtrl();
      control.initIds(1).set(0, 1);
      control.setAction(wire::JobAction::MODIFY);
      control.setModifyMask(15);
      fill_spec(control.initModify());
      break;
    }
    case wire::Op::QUEUE_CTRL: op.initQueueCtrl().initQueue().setName("q"); break;
    case wire::Op::HOST_CTRL: op.initHostCtrl().setName("h1"); break;
    case wire::Op::UPDATE_RESVALS: op.initUpdateResvals(1)[0].setName("gpu"); break;
    case wire::Op::RUN_TASK: op.initRunTask().initArgs(1).set(0, "a"); break;
    case wire::Op::JOB_DISPATCH: {
      auto dispatches = op.initJobDispatch();
      dispatches.setEpoch(1);
      auto item = dispatches.initItems(1)[0];
      item.setJobId(2);
      item.setAttempt(1);
      auto alloc = item.initAllocs(1)[0];
      alloc.setHost("h1");
      alloc.setCpus(1);
      break;
    }
    case wire::Op::SET_PEND_REASON: {
      auto reasons = op.initSetPendReason();
      reasons.setEpoch(1);
      auto item = reasons.initItems(1)[0];
      item.setJobId(2);
      item.setReason("no host");
      break;
    }
    case wire::Op::SCHED_ADMIN: op.setSchedAdmin("status"); break;
    case wire::Op::MEMBER_CTRL: op.initMemberCtrl().setHost("c4"); break;
    case wire::Op::NOTIFY: {
      auto notify = op.initNotify();
      notify.setHost("h1");
      notify.setInstance(5);
      auto items = notify.initItems(2);
      for (unsigned i = 0; i < 2; ++i) {
        items[i].setOutboxSeq(i + 1);
        items[i].setKind(i == 0 ? wire::NotifyKind::START : wire::NotifyKind::FINISH);
        items[i].setJobId(1);
        items[i].setAttempt(1);
        items[i].setOutcome(wire::JobState::COMPLETED);
      }
      break;
    }
    case wire::Op::SUBSCRIBE: op.initSubscribe().setFromRevision(3); break;
    case wire::Op::HOST_LOST: op.setHostLost("h1"); break;
    case wire::Op::JOB_LOG_DATA: op.initJobLogData().setQueryId(1); break;
    case wire::Op::ESTIMATES: {
      auto estimates = op.initEstimates();
      estimates.setEpoch(1);
      estimates.initItems(2)[0].setJobId(1);
      break;
    }
    default: break;  // nothing goes with it
  }
}

// The sender's role that may do it.
char role_of(unsigned which) {
  switch (which) {
    case wire::Op::JOIN:
    case wire::Op::NOTIFY:
    case wire::Op::UPDATE_RESVALS: return static_cast<char>(xce::Role::kWorker);
    case wire::Op::JOB_DISPATCH:
    case wire::Op::ESTIMATES:
    case wire::Op::SET_PEND_REASON: return static_cast<char>(xce::Role::kScheduler);
    case wire::Op::TICK:
    case wire::Op::HOST_LOST: return static_cast<char>(xce::Role::kController);
    default: return static_cast<char>(xce::Role::kUser);
  }
}

void requests() {
  for (unsigned which = 1; which <= wire::Op::ESTIMATES; ++which) {
    capnp::MallocMessageBuilder message;
    auto request = message.initRoot<wire::Request>();
    request.setSeq(1);
    request.setOpSeq(1);
    fill_op(request.initOp(), which);
    write("request", std::to_string(which), role_of(which) + wire::flatten(message));
    xce::Entry entry;
    entry.time_ms = 1700000001000;
    entry.commands.resize(2);
    entry.commands[0].who = xce::fuzz::identity(static_cast<xce::Role>(role_of(which)));
    entry.commands[0].op = wire::read_op(request.getOp().asReader());
    entry.commands[1] = entry.commands[0];
    if (entry.commands[0].op.index() != 0)
      write("entry", std::to_string(which), wire::encode_entry(entry));
  }
}

void server_messages() {
  for (unsigned which = 1; which <= 15; ++which) {
    capnp::MallocMessageBuilder message;
    auto reply = message.initRoot<wire::ServerMessage>().initReply();
    reply.setSeq(1);
    auto body = reply.initBody();
    switch (which) {
      case wire::Body::HELLO: body.initHello().setVersion("v"); break;
      case wire::Body::JOBS: {
        auto job = body.initJobs().initJobs(1)[0];
        job.setId(1);
        fill_spec(job.initSpec());
        job.initAllocs(1)[0].setHost("h1");
        break;
      }
      case wire::Body::HOSTS: body.initHosts(1)[0].initAttrs().initGres(1)[0].setName("g"); break;
      case wire::Body::QUEUES: body.initQueues(1)[0].setName("q"); break;
      case wire::Body::USERS: body.initUsers(1)[0].setName("u"); break;
      case wire::Body::GRES: body.initGres(1)[0].setName("g"); break;
      case wire::Body::CONF: body.initConf().initNodes(1)[0].setHost("c1"); break;
      case wire::Body::CLUSTER: body.initCluster().initNodes(1)[0].setHost("c1"); break;
      case wire::Body::LOG: body.initLog().setMessage("m"); break;
      default: continue;
    }
    write("server_message", "reply-" + std::to_string(which), wire::flatten(message));
  }
  capnp::MallocMessageBuilder message;
  auto push = message.initRoot<wire::ServerMessage>().initPush();
  push.setRevision(9);
  auto events = push.initEvents(10);
  events[0].initJob().setId(1);
  events[1].setJobRemoved(1);
  events[2].initHost().initAttrs().setName("h1");
  events[3].setHostRemoved("h1");
  events[4].initQueue().setName("q");
  events[5].setQueueRemoved("q");
  events[6].setGap(1);
  events[7].initLogQuery().setJobId(1);
  events[8].initScheduler().setName("s");
  events[9].setSchedAdmin("a");
  write("server_message", "push", wire::flatten(message));
}

void peers() {
  const auto payload = [](const std::string& frame) {
    return frame.substr(xce::net::kFrameHeaderSize);
  };
  std::string frame;
  consensus::Hello hello;
  hello.node = 1;
  hello.advertise = "127.0.0.1:1";
  consensus::append_hello_frame(hello, &frame);
  write("peer", "hello", payload(frame));
  frame.clear();
  consensus::append_suspect_frame({2, 1, 1, 5}, &frame);
  write("peer", "suspect", payload(frame));
  frame.clear();
  consensus::append_still_leading_frame({2, 7}, &frame);
  write("peer", "question", payload(frame));
  frame.clear();
  consensus::append_still_following_frame({2, 7}, &frame);
  write("peer", "answer", payload(frame));
  frame.clear();
  consensus::append_ping_frame(&frame);
  write("peer", "ping", payload(frame));
  frame.clear();
  consensus::append_snapshot_piece_frame({1, 2, 3, 100, 0, std::string(16, 's')}, &frame);
  write("peer", "piece", payload(frame));
  frame.clear();
  consensus::append_snapshot_ack_frame({1, 16, ""}, &frame);
  write("peer", "ack", payload(frame));
  const uint64_t ids[] = {1, 2, 3};
  const char* const addresses[] = {"a:1", "b:2", "c:3"};
  size_t length = 0;
  void* const configuration = xce_core_encode_configuration(ids, addresses, 3, &length);
  const std::string data(16, 'd');
  const xce_core_entry entries[] = {{1, XCE_ENTRY_COMMAND, data.data(), data.size()},
                                    {2, XCE_ENTRY_CHANGE, configuration, length}};
  for (int type = XCE_MSG_APPEND_ENTRIES; type <= XCE_MSG_TIMEOUT_NOW; ++type) {
    xce_core_message message{};
    message.type = static_cast<decltype(message.type)>(type);
    message.term = 2;
    message.entries = entries;
    message.n_entries = type == XCE_MSG_APPEND_ENTRIES ? 2 : 0;
    frame.clear();
    consensus::append_raft_frame(message, &frame);
    if (!frame.empty()) write("peer", "raft-" + std::to_string(type), payload(frame));
  }
  std::free(configuration);
}

std::string sized(const std::string& items) {
  return std::string{static_cast<char>(items.size()), static_cast<char>(items.size() >> 8)} + items;
}

void logs() {
  std::string items, more;
  consensus::append_term_vote_item(1, 1, &items);
  consensus::append_instance_item(2, {3, 4}, &items);
  consensus::append_entries_item(1, 2, &items);
  consensus::append_entry(1, 1, std::string(16, 'e'), &items);
  consensus::append_entry(1, 1, std::string(8, 'f'), &items);
  consensus::append_truncate_item(2, &more);
  consensus::append_entries_item(2, 1, &more);
  consensus::append_entry(2, 1, std::string(8, 'g'), &more);
  const std::string unchanged(3, '\0');
  write("log", "records", '\1' + unchanged + sized(items) + sized(more));
  write("log", "changed", std::string("\1\0\2\x40", 4) + sized(items) + sized(more));
  std::string reset;
  consensus::append_reset_item(7, &reset);
  consensus::append_entries_item(8, 1, &reset);
  consensus::append_entry(2, 1, std::string(8, 'h'), &reset);
  write("log", "reset", std::string("\3\1") + unchanged + sized(reset));
  consensus::LogTail tail;
  std::string segment = consensus::encode_segment_header(0x5a17, 1, tail);
  segment += consensus::encode_record(0x5a17, items, &tail);
  write("log", "bytes", '\0' + segment + std::string(segment.size(), '\0'));
}

void snapshots() {
  const auto state = xce::fuzz::small_state();
  std::string bytes;
  xce::service::save_state(*state, [&](std::string_view more) {
    bytes.append(more);
    return true;
  });
  write("state", "small", bytes);
  consensus::SnapshotMeta meta;
  meta.index = 5;
  meta.term = 2;
  meta.conf_index = 1;
  meta.conf = std::string(16, 'c');
  meta.cluster = 9;
  const std::string header = consensus::encode_snapshot_meta(meta);
  const std::string content(100, 'x');
  const uint64_t length = content.size();
  const std::string trailer(reinterpret_cast<const char*>(&length), sizeof length);
  write("snapshot", "chunks",
        "\1\1" + sized(header) + "\2" + sized(content) + "\3" + sized(trailer));
  uint32_t chain = 0;
  std::string file;
  consensus::append_chunk(consensus::ChunkKind::kHeader, header, &chain, &file);
  consensus::append_chunk(consensus::ChunkKind::kData, content, &chain, &file);
  consensus::append_chunk(consensus::ChunkKind::kTrailer, trailer, &chain, &file);
  write("snapshot", "bytes", '\0' + file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  root = argv[1];
  requests();
  server_messages();
  peers();
  logs();
  snapshots();
  std::string frames = '\7' + std::string(xce::net::kClientPreamble, xce::net::kPreambleSize);
  write("frame", "preamble", frames);
  std::string frame;
  xce::net::append_frame(std::string(24, 'a'), &frame);
  xce::net::append_frame(std::string(8, 'b'), &frame);
  write("frame", "two", '\7' + frame);
  return 0;
}
