// The small HTTP server over real sockets, asked well and badly.
#include "controller/service/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include "controller/service/http_request.h"

namespace xce::service {
namespace {

class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    uv_loop_init(&loop_);
    stopper_.data = this;
    uv_async_init(&loop_, &stopper_, [](uv_async_t* a) {
      static_cast<HttpServerTest*>(a->data)->server_->close();
      uv_close(reinterpret_cast<uv_handle_t*>(a), nullptr);
    });
    server_ = std::make_unique<HttpServer>(&loop_, [](const std::string& path) {
      HttpReply reply;
      reply.body = "you asked for " + path + "\n";
      return reply;
    });
    ASSERT_TRUE(server_->listen("127.0.0.1", 0).ok());
    thread_ = std::thread([this] { uv_run(&loop_, UV_RUN_DEFAULT); });
  }
  void TearDown() override {
    uv_async_send(&stopper_);
    thread_.join();
    server_.reset();
    EXPECT_EQ(uv_loop_close(&loop_), 0);
  }

  int connect() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(server_->port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    const timeval limit{10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
  }
  // Everything until the server closes.
  static std::string rest(int fd) {
    std::string out;
    char buffer[4096];
    ssize_t n;
    while ((n = ::recv(fd, buffer, sizeof buffer, 0)) > 0) out.append(buffer, n);
    ::close(fd);
    return n == 0 ? out : out + "<no end>";
  }
  std::string ask(const std::string& request) const {
    const int fd = connect();
    EXPECT_EQ(::send(fd, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    return rest(fd);
  }

  uv_loop_t loop_;
  uv_async_t stopper_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(HttpServerTest, AnswersAGetAndCloses) {
  const std::string got = ask("GET /metrics?x=1 HTTP/1.1\r\nHost: here\r\n\r\n");
  EXPECT_EQ(got.rfind("HTTP/1.1 200 OK\r\n", 0), 0u) << got;
  EXPECT_NE(got.find("Content-Length: 23\r\n"), std::string::npos) << got;
  EXPECT_NE(got.find("Connection: close\r\n"), std::string::npos) << got;
  EXPECT_NE(got.find("\r\n\r\nyou asked for /metrics\n"), std::string::npos) << got;
}

TEST_F(HttpServerTest, ARequestMayComeInPieces) {
  const int fd = connect();
  for (const char c : std::string("GET / HTTP/1.0\r\n\r\n"))
    ASSERT_EQ(::send(fd, &c, 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(rest(fd).rfind("HTTP/1.1 200 OK\r\n", 0), 0u);
}

TEST_F(HttpServerTest, EverythingElseIsRefused) {
  EXPECT_EQ(ask("POST / HTTP/1.1\r\n\r\n").rfind("HTTP/1.1 405 ", 0), 0u);
  EXPECT_EQ(ask("GETX / HTTP/1.1\r\n\r\n").rfind("HTTP/1.1 405 ", 0), 0u);
  for (const char* bad : {"hello\r\n\r\n", "GET / FTP/1.1\r\n\r\n", "GET x HTTP/1.1\r\n\r\n",
                          "GET  HTTP/1.1\r\n\r\n", "\r\n\r\n", "  \r\n\r\n", "GET /\r\n\r\n"})
    EXPECT_EQ(ask(bad).rfind("HTTP/1.1 400 ", 0), 0u) << bad;
}

TEST_F(HttpServerTest, EndlessHeadersEnd) {
  const int fd = connect();
  std::string request = "GET / HTTP/1.1\r\nX: ";
  request.append(kMaxHttpHead, 'x');
  ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  EXPECT_EQ(rest(fd).rfind("HTTP/1.1 431 ", 0), 0u);
}

TEST_F(HttpServerTest, TooManyAtOnceAreDroppedAndTheNextIsServed) {
  std::vector<int> idle;
  for (size_t i = 0; i < HttpServer::kMaxConnections; ++i) idle.push_back(connect());
  const int over = connect();
  char byte;
  EXPECT_LE(::recv(over, &byte, 1, 0), 0);
  ::close(over);
  for (int fd : idle) ::close(fd);
  std::string got;
  for (int i = 0; i < 100 && got.rfind("HTTP/1.1 200", 0) != 0; ++i) {
    const int fd = connect();
    const std::string request = "GET / HTTP/1.1\r\n\r\n";
    ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    got = rest(fd);
  }
  EXPECT_EQ(got.rfind("HTTP/1.1 200", 0), 0u);
}

TEST_F(HttpServerTest, WhoSaysNothingIsDroppedInTime) {
  const int fd = connect();
  const std::string half = "GET / HT";
  ::send(fd, half.data(), half.size(), MSG_NOSIGNAL);
  EXPECT_EQ(rest(fd), "");
}

}  // namespace
}  // namespace xce::service
