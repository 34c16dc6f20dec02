#include "e2e/cluster/proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace xce::e2e {
namespace {

constexpr milliseconds kSoon{5000}, kAMoment{150};

// A server's connection and a client's, with a link between.
class Wire : public ::testing::Test {
 protected:
  void SetUp() override {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    socklen_t size = sizeof at;
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&at), size), 0);
    ASSERT_EQ(listen(listener_, 4), 0);
    ASSERT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    at.sin_port = htons(proxy_.add_link(1, 2, ntohs(at.sin_port)));
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(client_, reinterpret_cast<sockaddr*>(&at), size), 0);
    server_ = accept(listener_, nullptr, nullptr);
    ASSERT_GE(server_, 0);
  }
  void TearDown() override {
    for (const int fd : {client_, server_, listener_}) close(fd);
  }
  // Sends a byte; whether it comes out at the other side.
  bool passes(int from, int to, milliseconds limit) {
    EXPECT_EQ(send(from, "x", 1, MSG_NOSIGNAL), 1);
    return arrives(to, limit);
  }
  static bool arrives(int to, milliseconds limit) {
    char byte = 0;
    return wait_until([&] { return recv(to, &byte, 1, MSG_DONTWAIT) == 1; }, limit);
  }

  Proxy proxy_;
  int listener_ = -1, client_ = -1, server_ = -1;
};

TEST_F(Wire, AMuteNodeHearsAndADeafOneIsHeard) {
  EXPECT_TRUE(passes(client_, server_, kSoon));
  EXPECT_TRUE(passes(server_, client_, kSoon));
  proxy_.set_node(1, LinkMode::kMute);
  EXPECT_FALSE(passes(client_, server_, kAMoment));
  EXPECT_TRUE(passes(server_, client_, kSoon));
  proxy_.heal();
  EXPECT_TRUE(arrives(server_, kSoon)) << "what waited arrives";
  proxy_.set_node(2, LinkMode::kMute);
  EXPECT_TRUE(passes(client_, server_, kSoon));
  EXPECT_FALSE(passes(server_, client_, kAMoment));
  proxy_.heal();
  EXPECT_TRUE(arrives(client_, kSoon));
  proxy_.set_node(1, LinkMode::kDeaf);
  EXPECT_TRUE(passes(client_, server_, kSoon));
  EXPECT_FALSE(passes(server_, client_, kAMoment));
  proxy_.set_link(1, 2, LinkMode::kFrozen);
  EXPECT_FALSE(passes(client_, server_, kAMoment));
}

}  // namespace
}  // namespace xce::e2e
