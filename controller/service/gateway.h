// The gateway: the listening port and the client I/O thread. It accepts connections, tells
// controllers from clients, reads requests, answers what needs no state (a missing hello, too many
// requests) and hands the rest to the consensus thread.
//
// Threads: start() and stop() on the owner's thread; post() from any thread; `inbound` is called on
// the I/O thread.
#ifndef XCE_CONTROLLER_SERVICE_GATEWAY_H_
#define XCE_CONTROLLER_SERVICE_GATEWAY_H_

#include <uv.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "controller/service/answer.h"
#include "controller/service/connection.h"
#include "controller/service/groups.h"
#include "controller/service/health.h"
#include "controller/service/http_server.h"
#include "controller/service/mailbox.h"
#include "controller/service/request.h"
#include "controller/service/warning_limit.h"

namespace xce::service {

class Gateway : private ConnectionOwner {
 public:
  // Takes batches of what came in; on the I/O thread, once a turn of its loop.
  using Inlet = std::function<void(std::vector<Inbound>)>;

  // tls: null without TLS.
  Gateway(Limits limits, std::shared_ptr<net::TlsCredentials> tls, Inlet inbound);
  ~Gateway() override;  // after stop()

  // Binds and listens; port 0 picks a free one. AlreadyExists: the port is in use. InvalidArgument:
  // no such address here.
  absl::Status listen(const std::string& host, uint16_t port);
  uint16_t port() const { return port_; }
  // Before start(): serves HTTP to operators' tools there, on the I/O thread. Errors as listen().
  using Http = std::function<HttpReply(const std::string& path, const GatewayCounts& counts)>;
  absl::Status listen_http(const std::string& host, uint16_t port, Http handler);
  uint16_t http_port() const { return http_ == nullptr ? 0 : http_->port(); }
  // Starts the I/O thread.
  void start();
  // Hands answers, pushes and orders to the I/O thread, which takes them in order.
  void post(std::vector<Outgoing> outgoing) { mailbox_.post_all(std::move(outgoing)); }
  // Sends what is queued, closes every connection (at most Limits::linger_ms) and joins the thread.
  void stop();

 private:
  void run();
  static void on_connection(uv_stream_t* server, int status);
  void accept();
  bool let_in(Connection* connection);
  bool counts(const Connection& connection) const;
  bool drop_oldest(std::set<ConnId>* greeting);
  std::string no_room_for(const Connection& connection, Role role) const;
  void greeted(Connection* connection);

  void on_frame(Connection* connection, const std::vector<uint64_t>& payload) override;
  void on_bad_input(Connection* connection, const std::string& why) override;
  void on_peer(int fd, std::string already_read, std::shared_ptr<net::TlsSession> tls) override;
  void on_complaint(const std::string& words) override;
  void on_drained() override { inbound_.push_back(Drained{}); }
  void on_closed(Connection* connection) override;

  void add_groups(Request* request);
  bool take_hello(Connection* connection, Request* request, const Identity& claimed);
  void refuse(Connection* connection, uint64_t seq, int32_t status, std::string message);
  void take(std::vector<Outgoing> outgoing);
  void take_answer(const Answer& answer);
  void take_delivery(const push::Delivery& delivery);
  void take_close(const CloseConn& order);
  void finish();
  void sweep();
  void turn();  // before the loop waits: everything queued leaves
  void send(Connection* connection, std::string_view payload);
  Connection* find(ConnId id);

  const Limits limits_;
  const std::shared_ptr<net::TlsCredentials> tls_;
  const Inlet inlet_;
  uv_loop_t loop_;
  uv_tcp_t listener_;
  uv_timer_t sweeper_;
  uv_prepare_t before_wait_;
  Mailbox<Outgoing> mailbox_;
  std::unique_ptr<HttpServer> http_;  // null: not wanted
  std::thread thread_;
  uint16_t port_ = 0;
  bool listening_ = false;
  bool finishing_ = false;
  bool groups_wanted_ = false;
  GroupCache groups_;
  ConnId last_id_ = 0;
  std::unordered_map<ConnId, std::unique_ptr<Connection>> connections_;
  // Connections that have not said hello: the oldest of them give way to newcomers.
  std::set<ConnId> greeting_;
  struct Address {
    size_t connections = 0, users = 0;
    std::set<ConnId> greeting;
  };
  std::map<std::string, Address> by_address_;
  size_t clients_ = 0, users_ = 0;  // that have said hello
  WarningLimit warnings_;
  uint64_t refused_connections_ = 0, refused_requests_ = 0;
  std::vector<Inbound> inbound_;  // of this turn
  std::vector<ConnId> dirty_;     // sent to in this turn
  // The newest batch encoded, as many connections get the same one.
  std::shared_ptr<const push::Batch> encoded_batch_;
  std::string encoded_;
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_GATEWAY_H_
