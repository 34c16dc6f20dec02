// A TCP proxy that a test can cut (connections end, the port refuses) or freeze (nothing passes,
// nothing ends).
#ifndef XCE_CONTROLLER_CONSENSUS_TEST_PROXY_H_
#define XCE_CONTROLLER_CONSENSUS_TEST_PROXY_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <uv.h>

#include <cstdint>
#include <set>
#include <string>

#include "controller/consensus/uv_handle.h"

namespace xce::consensus {

class TestProxy {
 public:
  TestProxy(uv_loop_t* loop, uint16_t target) : loop_(loop), target_(target) { listen(); }
  ~TestProxy() { cut(); }
  TestProxy(const TestProxy&) = delete;
  TestProxy& operator=(const TestProxy&) = delete;

  uint16_t port() const { return port_; }

  void cut() {
    close_handle(listener_);
    while (!pairs_.empty()) close(*pairs_.begin());
  }
  void heal() {
    if (listener_ == nullptr) listen();
    frozen_ = false;
    for (Pair* pair : pairs_)
      if (pair->connected) pump(pair);
  }
  void freeze() {
    frozen_ = true;
    for (Pair* pair : pairs_) {
      for (uv_tcp_t* side : pair->sides) uv_read_stop(reinterpret_cast<uv_stream_t*>(side));
    }
  }

 private:
  struct Pair {
    TestProxy* proxy;
    uv_tcp_t* sides[2];
    uv_connect_t connect;
    bool connected = false;
    bool closed = false;
  };
  struct Write {
    uv_write_t request;
    std::string bytes;
  };

  void listen() {
    listener_ = new uv_tcp_t;
    uv_tcp_init(loop_, listener_);
    listener_->data = this;
    sockaddr_in address;
    uv_ip4_addr("127.0.0.1", port_, &address);
    EXPECT_EQ(uv_tcp_bind(listener_, reinterpret_cast<sockaddr*>(&address), 0), 0);
    EXPECT_EQ(uv_listen(reinterpret_cast<uv_stream_t*>(listener_), 64,
                        [](uv_stream_t* stream, int status) {
                          if (stream->data != nullptr && status == 0)
                            static_cast<TestProxy*>(stream->data)->accept();
                        }),
              0);
    sockaddr_in bound;
    int length = sizeof bound;
    uv_tcp_getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &length);
    port_ = ntohs(bound.sin_port);
  }

  void accept() {
    auto* const pair =
        new Pair;  // lives until both sides are closed; never freed while libuv may use it
    pair->proxy = this;
    for (uv_tcp_t*& side : pair->sides) {
      side = new uv_tcp_t;
      uv_tcp_init(loop_, side);
      side->data = pair;
    }
    pairs_.insert(pair);
    uv_accept(reinterpret_cast<uv_stream_t*>(listener_),
              reinterpret_cast<uv_stream_t*>(pair->sides[0]));
    sockaddr_in address;
    uv_ip4_addr("127.0.0.1", target_, &address);
    pair->connect.data = pair;
    uv_tcp_connect(&pair->connect, pair->sides[1], reinterpret_cast<sockaddr*>(&address),
                   [](uv_connect_t* request, int status) {
                     auto* const pair = static_cast<Pair*>(request->data);
                     if (pair->closed) {
                       delete pair;
                       return;
                     }
                     pair->connected = true;
                     if (status != 0) {
                       pair->proxy->close(pair);
                     } else if (!pair->proxy->frozen_) {
                       pump(pair);
                     }
                   });
  }

  static void pump(Pair* pair) {
    for (uv_tcp_t* side : pair->sides) {
      uv_read_start(
          reinterpret_cast<uv_stream_t*>(side),
          [](uv_handle_t*, size_t size, uv_buf_t* buf) {
            *buf = uv_buf_init(new char[size], static_cast<unsigned>(size));
          },
          [](uv_stream_t* stream, ssize_t n, const uv_buf_t* buf) {
            auto* const pair = static_cast<Pair*>(stream->data);
            if (n > 0 && pair != nullptr) {
              uv_tcp_t* const other = pair->sides[0] == reinterpret_cast<uv_tcp_t*>(stream)
                                          ? pair->sides[1]
                                          : pair->sides[0];
              auto* const write = new Write{{}, std::string(buf->base, static_cast<size_t>(n))};
              write->request.data = write;
              const uv_buf_t out =
                  uv_buf_init(write->bytes.data(), static_cast<unsigned>(write->bytes.size()));
              if (uv_write(&write->request, reinterpret_cast<uv_stream_t*>(other), &out, 1,
                           [](uv_write_t* request, int) {
                             delete static_cast<Write*>(request->data);
                           }) != 0)
                delete write;
            }
            delete[] buf->base;
            if (n < 0 && pair != nullptr) pair->proxy->close(pair);
          });
    }
  }

  void close(Pair* pair) {
    pairs_.erase(pair);
    pair->closed = true;
    for (uv_tcp_t*& side : pair->sides) close_handle(side);
    if (pair->connected) delete pair;  // else the connect callback, which is still to come, does
  }

  uv_loop_t* const loop_;
  const uint16_t target_;
  uint16_t port_ = 0;
  uv_tcp_t* listener_ = nullptr;
  bool frozen_ = false;
  std::set<Pair*> pairs_;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_TEST_PROXY_H_
