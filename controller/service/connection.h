// One accepted connection: preamble, frames in, frames out, limits and deadlines.
// Thread: the client I/O thread. What to do with requests is the owner's (the gateway's) matter.
#ifndef XCE_CONTROLLER_SERVICE_CONNECTION_H_
#define XCE_CONTROLLER_SERVICE_CONNECTION_H_

#include <uv.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/push/batch.h"
#include "libxce/model/command.h"
#include "libxce/net/frame.h"
#include "libxce/net/tls.h"

namespace xce::service {

struct Limits {
  size_t connections = 4096;               // in all
  size_t connections_an_address = 1024;    // loopback addresses are exempt
  bool limit_loopback = false;             // for tests: they are not
  size_t reserved_for_peers = 64;          // of all: clients do not get these
  size_t reserved_for_daemons = 512;       // of all: people's tools do not get these
  size_t reserved_an_address = 32;         // of an address's: people's tools do not get these
  size_t requests_in_flight = 1024;        // a connection
  int64_t output_bytes = 8 * 1024 * 1024;  // unsent, a connection
  int64_t low_water_bytes = 256 * 1024;    // a blocked push goes on below this
  uint64_t preamble_ms = 5000;             // for the TLS handshake and the preamble
  uint64_t hello_ms = 10000;               // until the first request has been read
  uint64_t frame_ms = 10000;               // from a frame's first byte to its last
  uint64_t linger_ms = 1000;               // for the other side to read our last words
};

class Connection;

class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  // A whole frame. The connection may be closed inside.
  virtual void on_frame(Connection* connection, const std::vector<uint64_t>& payload) = 0;
  // The bytes on it are no protocol of ours, or a frame is too large: `why` says which.
  virtual void on_bad_input(Connection* connection, const std::string& why) = 0;
  // The preamble of a controller came; fd is now the owner's and the connection is closing. tls:
  // its session, or null.
  virtual void on_peer(int fd, std::string already_read, std::shared_ptr<net::TlsSession> tls) = 0;
  // Something about a stranger that an operator may want to know; there may be floods of it.
  virtual void on_complaint(const std::string& words) = 0;
  // A connection whose pushes waited (Flow::blocked) can take more.
  virtual void on_drained() = 0;
  // The handle is closed; the owner destroys the connection.
  virtual void on_closed(Connection* connection) = 0;
};

class Connection {
 public:
  enum class Phase { kPreamble, kHello, kOpen, kLastWords, kClosing };

  // `loop` must outlive it. Accepts from `server` in accept(). tls: null without TLS.
  Connection(uv_loop_t* loop, ConnectionOwner* owner, const Limits* limits, push::ConnId id,
             std::shared_ptr<net::TlsSession> tls);

  // 0, or a libuv error; either way on_closed comes when close() was called.
  int accept(uv_stream_t* server);

  // Queues a frame with this payload. Over the limit of unsent bytes: closes, as the other side
  // does not read.
  void send(std::string_view payload);
  // Hands queued bytes to the kernel. To be called once a turn for each connection that was sent
  // to.
  void flush();
  // Sends what is queued, then closes; input is ignored from now on.
  void close_after_flush();
  void close();
  // Closes when a deadline has passed (now: uv_now). Returns why, or null.
  const char* check_deadlines(uint64_t now_ms);

  void open(std::shared_ptr<const Identity> who);  // hello was accepted: larger frames from now on

  push::ConnId id() const { return id_; }
  Phase phase() const { return phase_; }
  bool closing() const { return phase_ == Phase::kClosing; }
  bool reading() const { return phase_ <= Phase::kOpen; }
  const std::string& address() const { return address_; }  // without port
  bool loopback() const { return loopback_; }
  const std::shared_ptr<const Identity>& who() const { return who_; }
  const std::shared_ptr<push::Flow>& flow() const { return flow_; }
  // Whose certificate it has shown; null without TLS. Only after the preamble.
  const net::CertIdentity* certificate() const { return tls_ ? &tls_->peer() : nullptr; }

  size_t in_flight = 0;  // requests handed on and not answered yet
  bool dirty = false;    // sent to since the last flush
  bool known = false;    // the consensus thread has heard of it

 private:
  static void on_alloc(uv_handle_t* handle, size_t, uv_buf_t* buf);
  static void on_read(uv_stream_t* stream, ssize_t n, const uv_buf_t* buf);
  static void on_write(uv_write_t* write, int status);
  static void on_handle_closed(uv_handle_t* handle);
  void received(std::string_view bytes);
  void received_plain(std::string_view bytes);
  void end_with_alert(const std::string& why);
  void seal();
  void received_preamble(std::string_view bytes);
  void take_frames();
  void hand_over_to_peers();
  void written(size_t bytes);
  uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&tcp_); }

  uv_loop_t* const loop_;
  ConnectionOwner* const owner_;
  const Limits* const limits_;
  const push::ConnId id_;
  uv_tcp_t tcp_;
  uv_write_t write_;
  uv_shutdown_t shutdown_;
  Phase phase_ = Phase::kPreamble;
  uint64_t phase_since_ms_ = 0;
  uint64_t frame_since_ms_ = 0;  // of the frame under way; 0: none is
  std::string address_;
  bool loopback_ = false;
  std::shared_ptr<net::TlsSession> tls_;
  bool first_ = true;  // nothing has been received yet
  std::string preamble_;
  net::FrameDecoder decoder_;
  std::string out_;      // queued, not encrypted yet
  std::string writing_;  // with the kernel
  std::shared_ptr<const Identity> who_;
  std::shared_ptr<push::Flow> flow_ = std::make_shared<push::Flow>();
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_CONNECTION_H_
