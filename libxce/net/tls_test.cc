#include "libxce/net/tls.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "libxce/net/pki.h"

namespace xce::net {
namespace {

using Side = TlsSession::Side;

CertIdentity who(Role role, const std::string& name) {
  CertIdentity out;
  out.role = role;
  out.name = name;
  return out;
}

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/tls.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    ASSERT_TRUE(pki_init(ca()).ok());
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string ca() const { return dir_ + "/ca"; }
  TlsFiles issue(Role role, const std::string& name, int days = kCertDays) {
    auto files = pki_issue(ca(), who(role, name), days);
    EXPECT_TRUE(files.ok()) << files.status();
    return files.ok() ? *files : TlsFiles{};
  }
  static std::shared_ptr<const TlsContext> context(const TlsFiles& files) {
    auto made = TlsContext::load(files);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *made : nullptr;
  }

  std::string dir_;
};

// Two sessions, and what each made of the other.
struct Pair {
  Pair(std::shared_ptr<const TlsContext> c, std::shared_ptr<const TlsContext> s)
      : client(std::move(c), Side::kClient), server(std::move(s), Side::kServer) {}
  // Carries bytes to and fro until there are none or one side has failed and has told the other.
  void run() {
    while (client.has_output() || server.has_output()) {
      const std::string up = client.take_output(), down = server.take_output();
      if (!up.empty() && server_status.ok()) server_status = server.feed(up, &at_server);
      if (!down.empty() && client_status.ok()) client_status = client.feed(down, &at_client);
    }
  }
  TlsSession client, server;
  absl::Status client_status, server_status;
  std::string at_client, at_server;
};

bool mentions(const absl::Status& status, const std::string& part) {
  return std::string(status.message()).find(part) != std::string::npos;
}

TEST_F(TlsTest, BothSidesKnowEachOtherAndBytesArrive) {
  Pair pair(context(issue(Role::kWorker, "host1")), context(issue(Role::kController, "2")));
  pair.client.write("early");  // kept until the handshake is over
  pair.run();
  ASSERT_TRUE(pair.client.established() && pair.server.established());
  EXPECT_EQ(to_string(pair.server.peer()), "worker host1");
  EXPECT_EQ(to_string(pair.client.peer()), "controller 2");
  const std::string much(3 << 20, 'x');
  pair.client.write(much);
  pair.server.write("answer");
  pair.run();
  EXPECT_EQ(pair.at_server, "early" + much);
  EXPECT_EQ(pair.at_client, "answer");
  EXPECT_TRUE(pair.client_status.ok() && pair.server_status.ok());
}

TEST_F(TlsTest, BytesMayComeOneAtATime) {
  Pair pair(context(issue(Role::kUser, "ann")), context(issue(Role::kController, "1")));
  pair.client.write("hello");
  while (pair.client.has_output() || pair.server.has_output()) {
    for (const char c : pair.client.take_output())
      ASSERT_TRUE(pair.server.feed({&c, 1}, &pair.at_server).ok());
    for (const char c : pair.server.take_output())
      ASSERT_TRUE(pair.client.feed({&c, 1}, &pair.at_client).ok());
  }
  EXPECT_EQ(pair.at_server, "hello");
}

TEST_F(TlsTest, AUsersNumbersAreInTheCertificate) {
  CertIdentity ann = who(Role::kUser, "ann");
  ann.has_ids = true;
  ann.uid = 1234;
  ann.gid = 100;
  const auto files = pki_issue(ca(), ann);
  ASSERT_TRUE(files.ok());
  Pair pair(context(*files), context(issue(Role::kController, "1")));
  pair.run();
  EXPECT_TRUE(pair.server.peer().has_ids);
  EXPECT_EQ(pair.server.peer().uid, 1234u);
  EXPECT_EQ(pair.server.peer().gid, 100u);
}

TEST_F(TlsTest, AnExpiredCertificateIsRefusedOnEitherSide) {
  Pair client(context(issue(Role::kWorker, "old", -1)), context(issue(Role::kController, "1")));
  client.run();
  EXPECT_TRUE(absl::IsUnauthenticated(client.server_status));
  EXPECT_TRUE(mentions(client.server_status, "expired")) << client.server_status;
  EXPECT_TRUE(mentions(client.client_status, "does not accept our certificate"))
      << client.client_status;
  Pair server(context(issue(Role::kWorker, "new")), context(issue(Role::kController, "3", -1)));
  server.run();
  EXPECT_TRUE(absl::IsUnauthenticated(server.client_status));
  EXPECT_TRUE(mentions(server.client_status, "expired")) << server.client_status;
}

TEST_F(TlsTest, AForeignAuthorityIsRefusedOnEitherSide) {
  const std::string foreign = dir_ + "/foreign";
  ASSERT_TRUE(pki_init(foreign).ok());
  auto stranger = pki_issue(foreign, who(Role::kUser, "eve"));
  ASSERT_TRUE(stranger.ok());
  const auto controller = context(issue(Role::kController, "1"));
  Pair distrusting(context(*stranger), controller);
  distrusting.run();
  EXPECT_TRUE(absl::IsUnauthenticated(distrusting.client_status)) << distrusting.client_status;
  stranger->ca = ca() + "/ca.crt";  // it trusts us, we do not trust it
  Pair trusting(context(*stranger), controller);
  trusting.client.write("let me in");
  trusting.run();
  EXPECT_TRUE(absl::IsUnauthenticated(trusting.server_status)) << trusting.server_status;
  EXPECT_TRUE(absl::IsUnauthenticated(trusting.client_status)) << trusting.client_status;
  EXPECT_FALSE(trusting.server.established());
  EXPECT_EQ(trusting.at_server, "");
}

TEST_F(TlsTest, OnlyAControllerIsBelievedAsServer) {
  Pair pair(context(issue(Role::kUser, "ann")), context(issue(Role::kWorker, "host1")));
  pair.client.write("secret");
  pair.run();
  EXPECT_TRUE(absl::IsUnauthenticated(pair.client_status)) << pair.client_status;
  EXPECT_EQ(pair.at_server, "");
}

TEST_F(TlsTest, WhatIsNotTlsIsAnError) {
  TlsSession server(context(issue(Role::kController, "1")), Side::kServer);
  std::string plain;
  const absl::Status status = server.feed(std::string("XCE1C\0\0\0 and more", 17), &plain);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(looks_like_tls("\x16\x03\x01"));
  EXPECT_FALSE(looks_like_tls("XCE1C"));
}

TEST_F(TlsTest, FilesAreChecked) {
  const TlsFiles good = issue(Role::kWorker, "host1");
  const TlsFiles other = issue(Role::kWorker, "host2");
  TlsFiles files = good;
  files.key = other.key;
  EXPECT_TRUE(mentions(TlsContext::load(files).status(), "mismatch"))
      << TlsContext::load(files).status();
  files = good;
  files.ca = dir_ + "/nothing";
  EXPECT_TRUE(mentions(TlsContext::load(files).status(), "CA file"));
  files.ca.clear();
  EXPECT_TRUE(mentions(TlsCredentials::load(files).status(), "--tls-ca"));
  files = good;
  files.cert = ca() + "/ca.crt";
  files.key = ca() + "/ca.key";
  EXPECT_TRUE(mentions(TlsContext::load(files).status(), "names no role"));
  struct stat st;
  ASSERT_EQ(stat(good.key.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  ASSERT_EQ(chmod(good.key.c_str(), 0644), 0);
  EXPECT_TRUE(mentions(TlsContext::load(good).status(), "chmod 600"));
}

TEST_F(TlsTest, ARotatedCertificateIsTakenAndABrokenOneIsNot) {
  const TlsFiles files = issue(Role::kWorker, "host1");
  auto credentials = TlsCredentials::load(files);
  ASSERT_TRUE(credentials.ok());
  std::string complaint;
  const auto first = (*credentials)->current(&complaint);
  EXPECT_EQ((*credentials)->current(&complaint), first);
  issue(Role::kWorker, "host1");
  const auto second = (*credentials)->current(&complaint);
  EXPECT_NE(second, first);
  EXPECT_EQ(complaint, "");
  std::ofstream(files.cert) << "nonsense";
  EXPECT_EQ((*credentials)->current(&complaint), second);
  EXPECT_NE(complaint, "");
  complaint.clear();
  EXPECT_EQ((*credentials)->current(&complaint), second);
  EXPECT_EQ(complaint, "");
}

TEST(CertNames, OneRoleAndNothingUnknown) {
  const auto parsed = parse_cert_uris({"https://example.org", "xce:role/worker/host-1.lan"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->role, Role::kWorker);
  EXPECT_EQ(parsed->name, "host-1.lan");
  for (const std::vector<std::string>& bad : std::vector<std::vector<std::string>>{
           {},
           {"xce:role/worker"},
           {"xce:role/worker/"},
           {"xce:role/root/x"},
           {"xce:role/worker/a/b"},
           {"xce:role/worker/a b"},
           {std::string("xce:role/worker/a\0b", 19)},
           {"xce:role/worker/a", "xce:role/user/b"},
           {"xce:role/user/a", "xce:ids/1"},
           {"xce:role/user/a", "xce:future"},
       })
    EXPECT_FALSE(parse_cert_uris(bad).ok()) << (bad.empty() ? "" : bad[0]);
}

TEST_F(TlsTest, TheAuthorityIsMadeOnceAndNamesAreChecked) {
  EXPECT_TRUE(absl::IsAlreadyExists(pki_init(ca())));
  EXPECT_TRUE(absl::IsInvalidArgument(pki_issue(ca(), who(Role::kWorker, "a/b")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(pki_issue(ca(), who(Role::kController, "x")).status()));
  EXPECT_TRUE(absl::IsNotFound(pki_issue(dir_ + "/none", who(Role::kWorker, "a")).status()));
}

}  // namespace
}  // namespace xce::net
