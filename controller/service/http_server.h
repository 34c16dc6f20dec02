// A very small HTTP/1.1 server for operators' tools: GET only, one request a connection, everything
// bounded. It knows nothing of what it serves.
// Thread: the loop's.
#ifndef XCE_CONTROLLER_SERVICE_HTTP_SERVER_H_
#define XCE_CONTROLLER_SERVICE_HTTP_SERVER_H_

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"

namespace xce::service {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer {
 public:
  // Gives the reply to a GET of that path (without the part from ? on).
  using Handler = std::function<HttpReply(const std::string& path)>;

  static constexpr size_t kMaxConnections = 32;
  static constexpr uint64_t kDeadlineMs = 5'000;  // from accept to the reply's last byte

  HttpServer(uv_loop_t* loop, Handler handler);
  ~HttpServer();  // after close() and a turn of the loop
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // An IP address; port 0 picks a free one. Errors name the address.
  absl::Status listen(const std::string& host, uint16_t port);
  uint16_t port() const { return port_; }
  // Closes everything at once. The loop must turn before this object is destroyed.
  void close();

 private:
  struct Connection;
  void accept();
  void received(Connection* connection, std::string_view bytes);
  void reply(Connection* connection, const HttpReply& reply);
  void drop(Connection* connection);
  void sweep();

  uv_loop_t* const loop_;
  const Handler handler_;
  uv_tcp_t listener_;
  uv_timer_t sweeper_;
  uint16_t port_ = 0;
  bool open_ = false;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_HTTP_SERVER_H_
