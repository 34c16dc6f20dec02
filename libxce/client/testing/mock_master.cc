#include "libxce/client/testing/mock_master.h"

#include <arpa/inet.h>
#include <capnp/serialize.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "libxce/net/frame.h"
#include "libxce/wire/codec.h"

namespace xce::client {
namespace {

int bound_socket(uint16_t want, uint16_t* port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address;
  std::memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(want);
  socklen_t length = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    std::perror("mock master: bind");
    std::abort();
  }
  *port = ntohs(address.sin_port);
  return fd;
}

bool write_all(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

void fill_body(wire::Op::Which which, const Answer& a, wire::Body::Builder body) {
  switch (which) {
    case wire::Op::HELLO: {
      auto hello = body.initHello();
      hello.setApplied(a.applied);
      auto members = hello.initMembers(static_cast<unsigned>(a.members.size()));
      for (unsigned i = 0; i < members.size(); ++i) {
        members[i].setHost("127.0.0.1");
        members[i].setPort(a.members[i]);
      }
      break;
    }
    case wire::Op::JOB_SUBMIT: {
      auto submitted = body.initSubmitted();
      submitted.setJobId(a.job_id);
      submitted.setCount(1);
      submitted.setExisting(a.existing);
      break;
    }
    case wire::Op::JOB_LIST:
    case wire::Op::JOB_INFO: {
      auto page = body.initJobs();
      auto jobs = page.initJobs(1);
      jobs[0].setId(a.job_id);
      jobs[0].setState(static_cast<wire::JobState>(a.job_state));
      jobs[0].initSpec().setName("mock");
      page.setTotal(1);
      break;
    }
    case wire::Op::CLUSTER_STATUS: {
      auto status = body.initCluster();
      status.setNodeId(a.node_id);
      status.setRole("follower");
      break;
    }
    case wire::Op::CLUSTER_CONF: body.initConf().setHeartbeatMs(30); break;
    case wire::Op::JOB_HIST: body.initJobs(); break;
    case wire::Op::WORKER_LIST: body.initHosts(1)[0].initAttrs().setName("mock"); break;
    case wire::Op::QUEUE_LIST: body.initQueues(1)[0].setName("mock"); break;
    case wire::Op::RESERVATION_LIST: body.initReservations(1)[0].setName("mock"); break;
    case wire::Op::USER_LIST: body.initUsers(1)[0].setName("mock"); break;
    case wire::Op::RES_LIST:
    case wire::Op::RES_VAL: {
      auto gres = body.initGres(1)[0];
      gres.setName("gpu");
      gres.setCount(4);
      break;
    }
    case wire::Op::JOB_LOG: body.initLog().setData(kj::StringPtr("mock").asBytes()); break;
    case wire::Op::BACKUP:
    case wire::Op::BACKUP_READ: body.initBackup().setId(a.job_id); break;
    case wire::Op::JOB_DISPATCH: body.initDispatched(a.dispatched); break;
    case wire::Op::SCHED_ADMIN: body.setText("mock"); break;
    case wire::Op::JOIN: body.initJoined().setRevision(a.applied); break;
    case wire::Op::JOB_CTRL: body.setAffected(1); break;
    default: break;
  }
}

}  // namespace

MockMaster::MockMaster(Script script, uint16_t port) : script_(std::move(script)) {
  listener_ = bound_socket(port, &port_);
  if (listen(listener_, 64) != 0) std::abort();
  threads_.emplace_back([this] { accept_all(); });
}

MockMaster::~MockMaster() {
  kill();
  for (;;) {
    std::vector<std::thread> threads;
    {
      std::lock_guard<std::mutex> lock(mu_);
      threads.swap(threads_);
    }
    if (threads.empty()) break;
    for (std::thread& t : threads) t.join();
  }
  close(listener_);
}

void MockMaster::kill() {
  std::lock_guard<std::mutex> lock(mu_);
  if (dead_) return;
  dead_ = true;
  frozen_ = false;
  shutdown(listener_, SHUT_RDWR);
  for (const auto& [id, fd] : fds_) shutdown(fd, SHUT_RDWR);
  changed_.notify_all();
}

void MockMaster::drop_connections() {
  std::lock_guard<std::mutex> lock(mu_);
  for (const auto& [id, fd] : fds_) shutdown(fd, SHUT_RDWR);
}

void MockMaster::freeze() {
  std::lock_guard<std::mutex> lock(mu_);
  frozen_ = true;
}

void MockMaster::thaw() {
  std::lock_guard<std::mutex> lock(mu_);
  frozen_ = false;
  changed_.notify_all();
}

void MockMaster::wait_thawed() {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [this] { return !frozen_; });
}

std::vector<Seen> MockMaster::seen() {
  std::lock_guard<std::mutex> lock(mu_);
  return seen_;
}

size_t MockMaster::count(wire::Op::Which which) {
  size_t n = 0;
  for (const Seen& s : seen()) n += s.which == which;
  return n;
}

bool MockMaster::wait_for(wire::Op::Which which, size_t n) {
  std::unique_lock<std::mutex> lock(mu_);
  return changed_.wait_for(lock, std::chrono::seconds(5), [&] {
    size_t have = 0;
    for (const Seen& s : seen_) have += s.which == which;
    return have >= n;
  });
}

void MockMaster::accept_all() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    std::lock_guard<std::mutex> lock(mu_);
    if (dead_) {
      close(fd);
      return;
    }
    const uint64_t id = ++connections_;
    fds_[id] = fd;
    threads_.emplace_back([this, fd, id] { serve(fd, id); });
  }
}

void MockMaster::serve(int fd, uint64_t connection) {
  char preamble[net::kPreambleSize];
  bool going = recv(fd, preamble, sizeof preamble, MSG_WAITALL) == sizeof preamble &&
               std::memcmp(preamble, net::kClientPreamble, sizeof preamble) == 0;
  net::FrameDecoder decoder(net::kMaxFrame);
  char buffer[16384];
  while (going) {
    const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    wait_thawed();
    if (n <= 0) break;
    decoder.feed({buffer, static_cast<size_t>(n)});
    while (going) {
      auto frame = decoder.next();
      if (!frame.ok()) going = false;
      if (!frame.ok() || !frame->has_value()) break;
      going = handle(fd, connection, **frame);
    }
  }
  std::lock_guard<std::mutex> lock(mu_);
  fds_.erase(connection);
  close(fd);
}

bool MockMaster::handle(int fd, uint64_t connection, const std::vector<uint64_t>& words) {
  capnp::FlatArrayMessageReader message(
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()));
  const auto request = message.getRoot<wire::Request>();
  Seen seen;
  seen.which = request.getOp().which();
  seen.connection = connection;
  seen.seq = request.getSeq();
  seen.op_seq = request.getOpSeq();
  seen.lowest = request.getLowestUnanswered();
  seen.birth = request.getBirth();
  seen.client_hi = request.getClientIdHi();
  seen.client_lo = request.getClientIdLo();
  seen.op_hash = request.getOpHash();
  seen.resent = request.getResent();
  if (request.hasOnBehalf()) {
    seen.for_user = request.getOnBehalf().getUser().cStr();
    seen.for_uid = request.getOnBehalf().getUid();
    seen.for_administrator = request.getOnBehalf().getAdministrator();
  }
  if (request.getOp().isJobSubmit()) {
    seen.submit_key = request.getOp().getJobSubmit().getSubmitKey().cStr();
    seen.body_hash = request.getOp().getJobSubmit().getBodyHash();
  }
  Answer answer;
  if (seen.which != wire::Op::NOP) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      seen_.push_back(seen);
      changed_.notify_all();
    }
    answer = script_(seen);
  }
  wait_thawed();
  if (answer.action == Answer::Do::kCut) return false;
  if (answer.action == Answer::Do::kNothing) return true;
  capnp::MallocMessageBuilder out;
  auto reply = out.initRoot<wire::ServerMessage>().initReply();
  reply.setSeq(seen.seq);
  reply.setStatus(answer.status);
  reply.setTerm(answer.term);
  reply.setClusterId(answer.cluster_id);
  reply.setRedirectHost(answer.redirect_host);
  reply.setRedirectPort(answer.redirect_port);
  reply.setMessage(answer.status == 0 ? "" : "says the mock");
  fill_body(seen.which, answer, reply.initBody());
  std::string bytes;
  net::append_frame(wire::flatten(out), &bytes);
  std::lock_guard<std::mutex> lock(write_mu_);
  return write_all(fd, bytes);
}

void MockMaster::push_removed(uint64_t revision, uint64_t job_id) {
  capnp::MallocMessageBuilder out;
  auto push = out.initRoot<wire::ServerMessage>().initPush();
  push.setRevision(revision);
  push.initEvents(1)[0].setJobRemoved(job_id);
  std::string bytes;
  net::append_frame(wire::flatten(out), &bytes);
  std::lock_guard<std::mutex> lock(mu_);
  std::lock_guard<std::mutex> write_lock(write_mu_);
  for (const auto& [id, fd] : fds_) write_all(fd, bytes);
}

DeadPort::DeadPort() { fd_ = bound_socket(0, &port_); }
DeadPort::~DeadPort() { close(fd_); }

}  // namespace xce::client
