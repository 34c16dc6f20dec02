#include "controller/service/http_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/service/http_request.h"
#include "libxce/net/address.h"

namespace xce::service {
namespace {

constexpr int kBacklog = 64;
constexpr uint64_t kSweepMs = 250;
thread_local char read_buffer[4096];

const char* reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    default: return "Service Unavailable";
  }
}

HttpReply plain(int status, const char* words) {
  HttpReply reply;
  reply.status = status;
  reply.body = words;
  return reply;
}

}  // namespace

struct HttpServer::Connection {
  HttpServer* server;
  uv_tcp_t tcp;
  uv_write_t write;
  uv_shutdown_t shutdown;
  uint64_t since_ms = 0;
  bool replied = false;
  std::string head;  // of the request
  std::string out;

  uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&tcp); }
  uv_handle_t* handle() { return reinterpret_cast<uv_handle_t*>(&tcp); }
};

HttpServer::HttpServer(uv_loop_t* loop, Handler handler)
    : loop_(loop), handler_(std::move(handler)) {}

HttpServer::~HttpServer() = default;

absl::Status HttpServer::listen(const std::string& host, uint16_t port) {
  sockaddr_storage address;
  if (!net::numeric_address(host, port, &address))
    return absl::InvalidArgumentError(absl::StrCat(host, " is no IP address"));
  uv_tcp_init(loop_, &listener_);
  uv_timer_init(loop_, &sweeper_);
  listener_.data = sweeper_.data = this;
  open_ = true;
  uv_timer_start(
      &sweeper_, [](uv_timer_t* t) { static_cast<HttpServer*>(t->data)->sweep(); }, kSweepMs,
      kSweepMs);
  int rc = uv_tcp_bind(&listener_, reinterpret_cast<sockaddr*>(&address), 0);
  if (rc == 0)
    rc = uv_listen(reinterpret_cast<uv_stream_t*>(&listener_), kBacklog,
                   [](uv_stream_t* s, int status) {
                     if (status == 0) static_cast<HttpServer*>(s->data)->accept();
                   });
  if (rc != 0)
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", host, ":", port, ": ", uv_strerror(rc)));
  port_ = net::bound_port(&listener_);
  return absl::OkStatus();
}

void HttpServer::close() {
  if (!std::exchange(open_, false)) return;
  uv_close(reinterpret_cast<uv_handle_t*>(&listener_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&sweeper_), nullptr);
  for (auto& [connection, owned] : connections_) drop(connection);
}

void HttpServer::accept() {
  auto owned = std::make_unique<Connection>();
  Connection* const connection = owned.get();
  connection->server = this;
  connection->since_ms = uv_now(loop_);
  uv_tcp_init(loop_, &connection->tcp);
  connection->tcp.data = connection;
  connections_[connection] = std::move(owned);
  if (uv_accept(reinterpret_cast<uv_stream_t*>(&listener_), connection->stream()) != 0 ||
      connections_.size() > kMaxConnections) {
    drop(connection);
    return;
  }
  const int rc = uv_read_start(
      connection->stream(),
      [](uv_handle_t*, size_t, uv_buf_t* buf) {
        *buf = uv_buf_init(read_buffer, sizeof read_buffer);
      },
      [](uv_stream_t* stream, ssize_t n, const uv_buf_t* buf) {
        auto* const self = static_cast<Connection*>(stream->data);
        if (n < 0)
          self->server->drop(self);
        else if (n > 0)
          self->server->received(self, {buf->base, static_cast<size_t>(n)});
      });
  if (rc != 0) drop(connection);
}

void HttpServer::received(Connection* connection, std::string_view bytes) {
  if (connection->replied) return;  // what comes after the request is of no interest
  std::string& head = connection->head;
  head.append(bytes.data(), bytes.size());
  const HttpRequest request = read_http_request(head);
  switch (request.kind) {
    case HttpRequest::kIncomplete: return;
    case HttpRequest::kTooLong:
      reply(connection, plain(431, "the request's headers are too long\n"));
      return;
    case HttpRequest::kMalformed:
      reply(connection, plain(400, "this is no HTTP/1.1 request\n"));
      return;
    case HttpRequest::kNotGet: reply(connection, plain(405, "only GET is served\n")); return;
    case HttpRequest::kGet: reply(connection, handler_(request.path)); return;
  }
}

void HttpServer::reply(Connection* connection, const HttpReply& reply) {
  connection->replied = true;
  connection->out = absl::StrCat("HTTP/1.1 ", reply.status, " ", reason(reply.status),
                                 "\r\nContent-Type: ", reply.content_type,
                                 "\r\nContent-Length: ", reply.body.size(),
                                 "\r\nCache-Control: no-store\r\nConnection: close\r\n",
                                 reply.status == 405 ? "Allow: GET\r\n" : "", "\r\n", reply.body);
  uv_buf_t buf = uv_buf_init(connection->out.data(), static_cast<unsigned>(connection->out.size()));
  connection->write.data = connection;
  const int rc =
      uv_write(&connection->write, connection->stream(), &buf, 1, [](uv_write_t* w, int status) {
        auto* const self = static_cast<Connection*>(w->data);
        if (uv_is_closing(self->handle())) return;
        // Then the other side closes, or the deadline comes.
        if (status != 0 ||
            uv_shutdown(&self->shutdown, self->stream(), [](uv_shutdown_t*, int) {}) != 0)
          self->server->drop(self);
      });
  if (rc != 0) drop(connection);
}

void HttpServer::drop(Connection* connection) {
  if (uv_is_closing(connection->handle())) return;
  uv_close(connection->handle(), [](uv_handle_t* handle) {
    auto* const self = static_cast<Connection*>(handle->data);
    self->server->connections_.erase(self);
  });
}

void HttpServer::sweep() {
  const uint64_t now_ms = uv_now(loop_);
  for (auto& [connection, owned] : connections_)
    if (now_ms - connection->since_ms > kDeadlineMs) drop(connection);
}

}  // namespace xce::service
