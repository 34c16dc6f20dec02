#include "controller/options.h"

#include <gtest/gtest.h>

#include "libxce/net/pki.h"

namespace xce {
namespace {

std::string why(const Flags& flags) {
  auto options = make_options(flags);
  return options.ok() ? "" : std::string(options.status().message());
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Flags three(uint64_t id) {
  Flags flags;
  flags.id = id;
  flags.peers = "1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003";
  return flags;
}

TEST(Options, OneControllerListensOnTheDefaultPort) {
  Flags flags;
  flags.single = true;
  auto options = make_options(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->listen_host, "127.0.0.1");
  EXPECT_EQ(options->listen_port, 9990);
  EXPECT_EQ(options->consensus.self, 1u);
  EXPECT_EQ(options->consensus.peers.size(), 1u);
}

TEST(Options, OneOfThreeListensOnItsEntry) {
  auto options = make_options(three(2));
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->listen_port, 7002);
  EXPECT_EQ(options->consensus.peers.size(), 3u);
}

TEST(Options, DialGoesElsewhere) {
  Flags flags = three(1);
  flags.dial = {"2=127.0.0.1:8002"};
  auto options = make_options(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->consensus.dial.at(2).second, 8002);
  flags.dial = {"9=127.0.0.1:8002"};
  EXPECT_EQ(why(flags), "") << "it may join later";
  flags.dial = {"nonsense"};
  EXPECT_TRUE(mentions(why(flags), "--dial 'nonsense'"));
}

TEST(Options, WrongPeersAreNamed) {
  Flags flags = three(1);
  flags.peers = "1=127.0.0.1:7001,2=127.0.0.1";
  EXPECT_TRUE(mentions(why(flags), "2=127.0.0.1"));
  flags.peers = "127.0.0.1:7001";
  EXPECT_TRUE(mentions(why(flags), "must begin with its node id"));
  flags.peers = "1=127.0.0.1:7001,1=127.0.0.1:7002";
  EXPECT_TRUE(mentions(why(flags), "--peers"));
  flags.peers = "1=127.0.0.1:7001,01=127.0.0.1:7002";
  EXPECT_TRUE(mentions(why(flags), "node id of another"));
  flags.peers = "1=127.0.0.1:7001,2=127.0.0.1:7001";
  EXPECT_TRUE(mentions(why(flags), "repeats"));
}

TEST(Options, ThisNodeMustBeAmongThem) {
  EXPECT_TRUE(mentions(why(three(4)), "--id 4"));
  EXPECT_TRUE(mentions(why(three(0)), "--id is missing"));
  EXPECT_TRUE(mentions(why(Flags{}), "--single"));
  Flags both = three(1);
  both.single = true;
  EXPECT_TRUE(mentions(why(both), "exclude"));
}

TEST(Options, OneThatJoinsSaysWhereItIs) {
  Flags flags = three(4);
  flags.join = true;
  EXPECT_TRUE(mentions(why(flags), "--listen is missing"));
  flags.listen = "127.0.0.1:0";
  EXPECT_TRUE(mentions(why(flags), "must know the port"));
  flags.listen = "127.0.0.1:7004";
  auto options = make_options(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->consensus.join);
  EXPECT_EQ(options->consensus.advertise_host, "127.0.0.1");
  EXPECT_EQ(options->consensus.advertise_port, 7004);
  EXPECT_EQ(options->consensus.peers.size(), 3u);
  flags.advertise = "four.example:7004";
  EXPECT_EQ(make_options(flags)->consensus.advertise_host, "four.example");
  flags.peers += ",4=127.0.0.1:7004";
  flags.listen = flags.advertise = "";
  EXPECT_EQ(make_options(flags)->listen_port, 7004);
  flags.peers = "4=127.0.0.1:7004";
  EXPECT_TRUE(mentions(why(flags), "must name controllers of the cluster"));
  flags.peers = "";
  flags.single = true;
  EXPECT_TRUE(mentions(why(flags), "exclude"));
}

TEST(Options, OnlyLoopbackWithoutTls) {
  Flags flags;
  flags.single = true;
  flags.listen = "0.0.0.0:9990";
  EXPECT_TRUE(mentions(why(flags), "loopback"));
  flags.listen = "127.0.0.1:0";
  EXPECT_EQ(why(flags), "");
  flags.listen = "127.0.0.1:99999";
  EXPECT_TRUE(mentions(why(flags), "--listen"));
}

TEST(Options, WithTlsOtherAddressesAreServedAndTheCertificateIsThisNodes) {
  const std::string dir = ::testing::TempDir() + "/options_pki";
  ASSERT_TRUE(net::pki_init(dir).ok());
  net::CertIdentity two;
  two.role = Role::kController;
  two.name = "2";
  const auto files = net::pki_issue(dir, two);
  ASSERT_TRUE(files.ok()) << files.status();
  Flags flags = three(2);
  flags.listen = "0.0.0.0:7002";
  flags.tls = *files;
  auto options = make_options(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->listen_host, "0.0.0.0");
  EXPECT_NE(options->tls, nullptr);
  flags.id = 1;
  EXPECT_TRUE(mentions(why(flags), "certificate of controller 2, but this is controller 1"));
  flags.tls.key.clear();
  EXPECT_TRUE(mentions(why(flags), "--tls-key"));
}

TEST(Options, TimesMakeSense) {
  Flags flags;
  flags.single = true;
  flags.heartbeat_ms = 200;
  EXPECT_TRUE(mentions(why(flags), "--election-timeout-ms"));
  flags.heartbeat_ms = 0;
  EXPECT_TRUE(mentions(why(flags), "--heartbeat-ms"));
}

}  // namespace
}  // namespace xce
