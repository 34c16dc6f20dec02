// A client of the controller for tests: one blocking loopback socket, frames and messages by hand,
// every wait bounded.
#ifndef XCE_CONTROLLER_SERVICE_TESTING_TEST_CLIENT_H_
#define XCE_CONTROLLER_SERVICE_TESTING_TEST_CLIENT_H_

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libxce/model/types.h"
#include "libxce/net/frame.h"
#include "libxce/schema/client.capnp.h"

namespace xce::service::testing {

// A received ServerMessage with the memory that it lies in.
class Message {
 public:
  explicit Message(std::vector<uint64_t> words);
  wire::ServerMessage::Reader get() { return reader_->getRoot<wire::ServerMessage>(); }
  bool is_reply() { return get().isReply(); }
  wire::Reply::Reader reply() { return get().getReply(); }
  wire::Push::Reader push() { return get().getPush(); }

 private:
  std::vector<uint64_t> words_;
  std::unique_ptr<capnp::FlatArrayMessageReader> reader_;
};

class TestClient {
 public:
  static constexpr int kWaitMs = 5000;

  // Connects to 127.0.0.1:port, or is !connected().
  explicit TestClient(uint16_t port, int receive_buffer = 0);
  ~TestClient();
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  bool send_raw(std::string_view bytes);
  bool send_preamble() { return send_raw({net::kClientPreamble, net::kPreambleSize}); }
  // Sends a request; `fill` sets what it wants of it. Gives its seq, or 0.
  uint64_t send(const std::function<void(wire::Request::Builder)>& fill);
  // The next message; null: nothing came in time, or the connection ended.
  std::unique_ptr<Message> receive(int wait_ms = kWaitMs);
  // The reply of that seq; pushes and other replies on the way are kept for later.
  std::unique_ptr<Message> reply(uint64_t seq, int wait_ms = kWaitMs);
  // The next push, kept ones first.
  std::unique_ptr<Message> push(int wait_ms = kWaitMs);
  // True when the other side has closed, in time. What comes until then is thrown away.
  bool closed(int wait_ms = kWaitMs);

  // Preamble and hello. The reply's status, or -1.
  int hello(Role role, const std::string& name = "", const std::string& user = "ann",
            uint32_t uid = 1000);
  // send + reply.
  std::unique_ptr<Message> call(const std::function<void(wire::Request::Builder)>& fill,
                                int wait_ms = kWaitMs);
  std::unique_ptr<Message> join(Role role);
  std::unique_ptr<Message> submit(const std::string& name);

  uint64_t client_hi = 0, client_lo = 0, birth = 0;
  std::string name;

 private:
  int fd_ = -1;
  uint64_t seq_ = 0, op_seq_ = 0;
  bool eof_ = false;
  net::FrameDecoder decoder_{net::kMaxFrame};
  std::vector<std::unique_ptr<Message>> kept_;
};

}  // namespace xce::service::testing

#endif  // XCE_CONTROLLER_SERVICE_TESTING_TEST_CLIENT_H_
