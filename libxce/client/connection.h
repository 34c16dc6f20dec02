// One TCP connection of a client: resolve, connect, cut the stream into frames, write. I/O through
// libuv. Everything here runs on the thread of its loop. Made for one peer and one life: when it
// has failed, make another.
#ifndef XCE_LIBXCE_CLIENT_CONNECTION_H_
#define XCE_LIBXCE_CLIENT_CONNECTION_H_

#include <sys/socket.h>
#include <uv.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libxce/net/frame.h"
#include "libxce/net/tls.h"

namespace xce::client {

struct Address {
  std::string host;
  uint16_t port = 0;
  friend bool operator==(const Address& a, const Address& b) {
    return a.host == b.host && a.port == b.port;
  }
};

// "host:port", "[v6]:port".
std::string to_string(const Address& address);

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void on_connected(Connection* connection) = 0;
    virtual void on_frame(Connection* connection, std::vector<uint64_t> words) = 0;
    // Refused, reset, ended by the peer, or garbage received; `error` is a positive errno:
    // EKEYREJECTED when one side did not accept the other's certificate. Comes once, and nothing
    // after it.
    virtual void on_failed(Connection* connection, int error) = 0;
  };

  // tls: null for a plain connection; else it must outlive this.
  Connection(uv_loop_t* loop, uint64_t id, Address peer, net::TlsCredentials* tls, Events* events);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  uint64_t id() const { return id_; }
  const Address& peer() const { return peer_; }

  // Starts to resolve and connect; on_connected or on_failed follows, never from inside this call.
  void open();
  // Sends bytes, in order. Only between on_connected and the end.
  void write(std::string bytes);
  // Ends it without an event.
  void close();

  uint64_t last_heard_ms = 0;  // loop time of the last bytes received

 private:
  static void on_resolved(uv_getaddrinfo_t* request, int status, addrinfo* found);
  static void on_connect(uv_connect_t* request, int status);
  static void on_alloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer);
  static void on_read(uv_stream_t* stream, ssize_t n, const uv_buf_t* buffer);
  static void on_written(uv_write_t* request, int status);

  void connect_next();
  void drop_socket();
  void fail(int error);
  void fail_later(int error);
  void dispatch_frames();
  void received(std::string_view bytes);
  bool decrypt(std::string_view bytes, std::string* plain);
  void write_raw(std::string bytes);

  uv_loop_t* const loop_;
  const uint64_t id_;
  const Address peer_;
  net::TlsCredentials* const credentials_;
  std::unique_ptr<net::TlsSession> tls_;
  Events* events_;  // null when closed or failed
  uv_getaddrinfo_t* dns_ = nullptr;
  uv_tcp_t* tcp_ = nullptr;
  std::vector<sockaddr_storage> addresses_;
  size_t next_address_ = 0;
  int last_error_ = 0;
  net::FrameDecoder decoder_{net::kMaxFrame};
  std::vector<char> read_buffer_;
};

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_CONNECTION_H_
