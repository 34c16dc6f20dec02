#include "controller/service/gateway.h"

#include <unistd.h>

#include <cstdlib>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "controller/service/certificate.h"
#include "controller/service/wire.h"
#include "libxce/base/crash_point.h"
#include "libxce/net/address.h"
#include "spdlog/spdlog.h"
#include "xce/errnox.h"

namespace xce::service {
namespace {

constexpr int kBacklog = 1024;
constexpr uint64_t kSweepMs = 200;

}  // namespace

Gateway::Gateway(Limits limits, std::shared_ptr<net::TlsCredentials> tls, Inlet inbound)
    : limits_(limits), tls_(std::move(tls)), inlet_(std::move(inbound)) {
  if (uv_loop_init(&loop_) != 0) std::abort();  // out of file descriptors at the start
  mailbox_.open(&loop_, [this](std::vector<Outgoing> outgoing) { take(std::move(outgoing)); });
  uv_timer_init(&loop_, &sweeper_);
  uv_prepare_init(&loop_, &before_wait_);
  sweeper_.data = before_wait_.data = this;
  uv_timer_start(
      &sweeper_, [](uv_timer_t* t) { static_cast<Gateway*>(t->data)->sweep(); }, kSweepMs,
      kSweepMs);
  uv_unref(reinterpret_cast<uv_handle_t*>(&before_wait_));
  uv_prepare_start(&before_wait_, [](uv_prepare_t* p) { static_cast<Gateway*>(p->data)->turn(); });
}

Gateway::~Gateway() {
  stop();
  if (uv_loop_close(&loop_) != 0) spdlog::error("the client loop was not empty at the end");
}

absl::Status Gateway::listen(const std::string& host, uint16_t port) {
  sockaddr_storage address;
  if (!net::numeric_address(host, port, &address))
    return absl::InvalidArgumentError(absl::StrCat(host, " is no IP address"));
  uv_tcp_init(&loop_, &listener_);
  listener_.data = this;
  listening_ = true;
  int rc = uv_tcp_bind(&listener_, reinterpret_cast<sockaddr*>(&address), 0);
  if (rc == 0) rc = uv_listen(reinterpret_cast<uv_stream_t*>(&listener_), kBacklog, on_connection);
  if (rc == UV_EADDRINUSE)
    return absl::AlreadyExistsError(
        absl::StrCat("port ", port, " on ", host, " is in use: another controller? use --listen"));
  if (rc != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen on ", host, ":", port, ": ", uv_strerror(rc)));
  port_ = net::bound_port(&listener_);
  return absl::OkStatus();
}

absl::Status Gateway::listen_http(const std::string& host, uint16_t port, Http handler) {
  http_ = std::make_unique<HttpServer>(
      &loop_, [this, handler = std::move(handler)](const std::string& path) {
        GatewayCounts counts;
        counts.connections = connections_.size();
        counts.refused_connections = refused_connections_;
        counts.refused_requests = refused_requests_;
        counts.outbox = mailbox_.size();
        return handler(path, counts);
      });
  return http_->listen(host, port);
}

void Gateway::start() {
  thread_ = std::thread([this] { run(); });
}

void Gateway::run() {
  uv_run(&loop_, UV_RUN_DEFAULT);  // until finish() and the end of the last connection
  uv_close(reinterpret_cast<uv_handle_t*>(&sweeper_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&before_wait_), nullptr);
  uv_run(&loop_, UV_RUN_DEFAULT);
}

void Gateway::stop() {
  if (finishing_) return;
  if (thread_.joinable()) {
    post({Finish{}});
    thread_.join();
  } else {  // never started
    finish();
    run();
  }
}

// ---- connections --------------------------------------------------------------------------------

void Gateway::on_connection(uv_stream_t* server, int status) {
  if (status == 0) static_cast<Gateway*>(server->data)->accept();
}

void Gateway::accept() {
  const ConnId id = ++last_id_;
  std::shared_ptr<net::TlsSession> session;
  if (tls_ != nullptr) {
    std::string complaint;
    session = std::make_shared<net::TlsSession>(tls_->current(&complaint),
                                                net::TlsSession::Side::kServer);
    if (!complaint.empty()) spdlog::warn("{}", complaint);
  }
  auto owned = std::make_unique<Connection>(&loop_, static_cast<ConnectionOwner*>(this), &limits_,
                                            id, std::move(session));
  Connection* connection = owned.get();
  connections_[id] = std::move(owned);
  if (connection->accept(reinterpret_cast<uv_stream_t*>(&listener_)) != 0) {
    connection->close();
    return;
  }
  Address& address = by_address_[connection->address()];
  ++address.connections;
  if (!let_in(connection)) {
    ++refused_connections_;
    connection->close();
    return;
  }
  greeting_.insert(id);
  address.greeting.insert(id);
}

// A flood must keep out neither controllers nor daemons, which say at once who they are. So a place
// that is wanted is taken from who has said nothing for longest.
bool Gateway::let_in(Connection* connection) {
  if (connections_.size() > limits_.connections && !drop_oldest(&greeting_)) {
    on_complaint(absl::StrCat("connection from ", connection->address(),
                              " refused: ", limits_.connections, " connections are open"));
    return false;
  }
  Address& address = by_address_[connection->address()];
  if (counts(*connection) && address.connections > limits_.connections_an_address &&
      !drop_oldest(&address.greeting)) {
    on_complaint(absl::StrCat("connection from ", connection->address(), " refused: it has ",
                              limits_.connections_an_address, " already"));
    return false;
  }
  return true;
}

// Whether its address has a limit.
bool Gateway::counts(const Connection& connection) const {
  return limits_.limit_loopback || !connection.loopback();
}

bool Gateway::drop_oldest(std::set<ConnId>* greeting) {
  if (greeting->empty()) return false;
  Connection* const oldest = connections_.at(*greeting->begin()).get();
  on_complaint(absl::StrCat("connection ", oldest->id(), " from ", oldest->address(),
                            " closed: it has not said hello, and others want its place"));
  ++refused_connections_;
  by_address_[oldest->address()].greeting.erase(oldest->id());
  greeting_.erase(oldest->id());
  oldest->close();
  return true;
}

// Why a connection may not become one of a client of this role; empty: it may.
std::string Gateway::no_room_for(const Connection& connection, Role role) const {
  const bool user = role == Role::kUser;
  const auto places = [](size_t all, size_t kept) { return all > kept ? all - kept : 1; };
  const size_t in_all = places(limits_.connections, limits_.reserved_for_peers);
  if (clients_ >= in_all)
    return absl::StrCat(clients_, " clients are connected; the rest is kept for controllers");
  if (!user) return "";
  if (users_ >= places(in_all, limits_.reserved_for_daemons))
    return absl::StrCat(users_, " users' programs are connected; the rest is kept for daemons");
  const auto address = by_address_.find(connection.address());
  const size_t from_there = address == by_address_.end() ? 0 : address->second.users;
  if (counts(connection) &&
      from_there >= places(limits_.connections_an_address, limits_.reserved_an_address))
    return absl::StrCat(from_there, " users' programs of ", connection.address(),
                        " are connected; the rest is kept for daemons");
  return "";
}

// A connection has said hello, and was welcome.
void Gateway::greeted(Connection* connection) {
  Address& address = by_address_[connection->address()];
  greeting_.erase(connection->id());
  address.greeting.erase(connection->id());
  ++clients_;
  if (connection->who()->role != Role::kUser) return;
  ++users_;
  ++address.users;
}

void Gateway::on_closed(Connection* connection) {
  if (connection->known) inbound_.push_back(Closed{connection->id()});
  greeting_.erase(connection->id());
  const bool user = connection->who() != nullptr && connection->who()->role == Role::kUser;
  if (connection->who() != nullptr) --clients_;
  if (user) --users_;
  if (const auto it = by_address_.find(connection->address()); it != by_address_.end()) {
    it->second.greeting.erase(connection->id());
    if (user) --it->second.users;
    if (--it->second.connections == 0) by_address_.erase(it);
  }
  connections_.erase(connection->id());
}

void Gateway::on_complaint(const std::string& words) {
  if (warnings_.admit(uv_now(&loop_))) spdlog::warn("{}", words);
}

Connection* Gateway::find(ConnId id) {
  const auto it = connections_.find(id);
  return it == connections_.end() || it->second->closing() ? nullptr : it->second.get();
}

// ---- input --------------------------------------------------------------------------------------

void Gateway::on_peer(int fd, std::string already_read, std::shared_ptr<net::TlsSession> tls) {
  inbound_.push_back(PeerConnection{fd, std::move(already_read), std::move(tls)});
}

void Gateway::on_bad_input(Connection* connection, const std::string& why) {
  on_complaint(absl::StrCat("connection ", connection->id(), " from ", connection->address(),
                            " closed: ", why));
  if (connection->phase() == Connection::Phase::kPreamble) {
    connection->close();
    return;
  }
  refuse(connection, 0, E_XCE_INVALID, why);
  connection->close_after_flush();
}

void Gateway::on_frame(Connection* connection, const std::vector<uint64_t>& payload) {
  Decoded decoded;
  Request& request = decoded.request;
  const absl::Status status = decode_request(payload, &decoded);
  if (!status.ok()) {
    if (request.seq == 0 || connection->who() == nullptr) {
      on_bad_input(connection, std::string(status.message()));
      return;
    }
    refuse(connection, request.seq, E_XCE_INVALID, std::string(status.message()));
    return;
  }
  if (request.ask == Ask::kHello) {
    if (!take_hello(connection, &request, decoded.hello)) return;
  } else if (connection->who() == nullptr) {
    refuse(connection, request.seq, E_XCE_AUTH,
           "the first request of a connection must be hello: it says who asks");
    connection->close_after_flush();
    return;
  }
  request.who = connection->who();
  if (decoded.on_behalf.has_value()) {
    Identity who;
    std::string why;
    if (!apply_person(*connection->who(), *decoded.on_behalf, &who, &why)) {
      refuse(connection, request.seq, E_XCE_PERM, std::move(why));
      return;
    }
    request.who = std::make_shared<const Identity>(std::move(who));
  }
  if (connection->in_flight >= limits_.requests_in_flight) {
    refuse(connection, request.seq, E_XCE_BUSY,
           absl::StrCat("this connection has ", limits_.requests_in_flight,
                        " requests in flight: wait for some answers"));
    return;
  }
  if (!is_one_way(request.ask)) ++connection->in_flight;
  if (request.deadline_ms != 0) request.deadline_ms += uv_hrtime() / 1000000;
  request.conn = connection->id();
  request.flow = connection->flow();
  connection->known = true;
  if (groups_wanted_) add_groups(&request);
  inbound_.push_back(std::move(request));
}

// Of submissions and of moves to another queue, whose access may depend on them.
void Gateway::add_groups(Request* request) {
  const auto* op = std::get_if<Op>(&request->what);
  if (op == nullptr) return;
  const auto* spec = std::get_if<JobSpec>(op);
  const auto* control = std::get_if<JobControl>(op);
  if (spec == nullptr && (control == nullptr || control->action != JobAction::kModify)) return;
  const bool for_another =
      spec != nullptr && request->who->role != Role::kUser && !spec->user.empty();
  request->groups =
      groups_.of(for_another ? spec->user : request->who->user, uv_hrtime() / 1'000'000);
}

bool Gateway::take_hello(Connection* connection, Request* request, const Identity& claimed) {
  const auto& who = connection->who();
  Identity hello = claimed;
  std::string wrong;
  if (connection->certificate() != nullptr)
    wrong = apply_certificate(*connection->certificate(), &hello);
  if (!wrong.empty())
    on_complaint(absl::StrCat("connection ", connection->id(), " from ", connection->address(),
                              ": ", wrong));
  else if (hello.role == Role::kNone || hello.role == Role::kController)
    wrong = absl::StrCat("hello with role ", name_of(hello.role),
                         ": clients are user, worker, scheduler or apiserver");
  else if (hello.role == Role::kWorker && hello.name.empty())
    wrong = "hello of a worker must name its host";
  else if (who && (who->role != hello.role || who->name != hello.name))
    wrong = "a connection cannot change its role or name: open another one";
  else if (who && who->role != Role::kApiserver &&
           (who->user != hello.user || who->uid != hello.uid))
    wrong = "a connection cannot change its user: open another one";
  if (wrong.empty() && who == nullptr) {
    std::string full = no_room_for(*connection, hello.role);
    if (!full.empty()) {
      ++refused_connections_;
      on_complaint(absl::StrCat("client from ", connection->address(), " refused: ", full));
      refuse(connection, request->seq, E_XCE_BUSY, std::move(full));
      connection->close_after_flush();
      return false;
    }
  }
  if (wrong.empty()) {
    const bool first = who == nullptr;
    connection->open(std::make_shared<const Identity>(hello));
    if (first) greeted(connection);
    return true;
  }
  refuse(connection, request->seq, E_XCE_AUTH, std::move(wrong));
  if (!who) connection->close_after_flush();
  return false;
}

// ---- output -------------------------------------------------------------------------------------

void Gateway::refuse(Connection* connection, uint64_t seq, int32_t status, std::string message) {
  ++refused_requests_;
  Answer answer;
  answer.seq = seq;
  answer.status = status;
  answer.message = std::move(message);
  answer.outcome = kNotApplied;
  send(connection, encode_answer(answer));
}

void Gateway::send(Connection* connection, std::string_view payload) {
  if (!connection->dirty) {
    connection->dirty = true;
    dirty_.push_back(connection->id());
  }
  connection->send(payload);
}

void Gateway::take(std::vector<Outgoing> outgoing) {
  for (Outgoing& each : outgoing) {
    if (const auto* answer = std::get_if<Answer>(&each)) take_answer(*answer);
    if (const auto* delivery = std::get_if<push::Delivery>(&each)) take_delivery(*delivery);
    if (const auto* order = std::get_if<CloseConn>(&each)) take_close(*order);
    if (const auto* groups = std::get_if<LookUpGroups>(&each)) groups_wanted_ = groups->wanted;
    if (std::holds_alternative<StopAccepting>(each) && listening_) {
      listening_ = false;
      uv_close(reinterpret_cast<uv_handle_t*>(&listener_), nullptr);
    }
    if (std::holds_alternative<Finish>(each)) finish();
  }
  encoded_batch_.reset();
}

void Gateway::take_answer(const Answer& answer) {
  Connection* connection = find(answer.conn);
  if (connection == nullptr) return;
  if (answer.counted && connection->in_flight > 0) --connection->in_flight;
  if (answer.status == 0 && is_write(answer.ask)) crash_point("answer.before");
  send(connection, encode_answer(answer));
}

void Gateway::take_delivery(const push::Delivery& delivery) {
  if (encoded_batch_ != delivery.batch) {
    encoded_ = encode_push(*delivery.batch);
    encoded_batch_ = delivery.batch;
  }
  if (encoded_.size() > net::kMaxFrame) {
    spdlog::error("a push of {} bytes does not fit a frame: its consumers must take the state anew",
                  encoded_.size());
    for (ConnId id : delivery.to)
      if (Connection* connection = find(id)) connection->close();
    return;
  }
  for (ConnId id : delivery.to) {
    Connection* connection = find(id);
    if (connection == nullptr) continue;
    connection->flow()->bytes -=
        delivery.batch->estimated_bytes;  // the hub's guess makes way for what it is
    send(connection, encoded_);
  }
}

void Gateway::take_close(const CloseConn& order) {
  Connection* connection = find(order.conn);
  if (connection == nullptr) return;
  if (!order.why.empty())
    spdlog::warn("connection {} from {} closed: {}", order.conn, connection->address(), order.why);
  if (order.flush)
    connection->close_after_flush();
  else
    connection->close();
}

void Gateway::turn() {
  for (ConnId id : dirty_) {
    Connection* connection = find(id);
    if (connection == nullptr) continue;
    connection->dirty = false;
    connection->flush();
  }
  dirty_.clear();
  if (!inbound_.empty()) {
    inlet_(std::move(inbound_));
    inbound_.clear();
  }
}

void Gateway::sweep() {
  const uint64_t now = uv_now(&loop_);
  if (const uint64_t more = warnings_.take_left_out(now); more > 0)
    spdlog::warn("{} more warnings about connections were left out; {} connections are open", more,
                 connections_.size());
  for (auto& [id, connection] : connections_) {
    if (connection->closing()) continue;
    const char* why = connection->check_deadlines(now);
    if (why != nullptr)
      on_complaint(absl::StrCat("connection ", id, " from ", connection->address(), " closed: it ",
                                why, " in time"));
  }
}

void Gateway::finish() {
  if (finishing_) return;
  finishing_ = true;
  if (listening_) uv_close(reinterpret_cast<uv_handle_t*>(&listener_), nullptr);
  listening_ = false;
  for (auto& [id, connection] : connections_) {
    connection->dirty = false;
    connection->close_after_flush();
  }
  if (http_ != nullptr) http_->close();
  // The sweeper goes on until the last connection is closed; then nothing keeps the loop alive.
  uv_unref(reinterpret_cast<uv_handle_t*>(&sweeper_));
  mailbox_.close();
}

}  // namespace xce::service
