// Nodes with TLS: they agree; one with another node's certificate is no member.
#include <gtest/gtest.h>

#include "controller/consensus/test_cluster.h"
#include "libxce/net/pki.h"

namespace xce::consensus {
namespace {

class TlsPeers : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(net::pki_init(directory_.path() + "/ca").ok()); }

  std::shared_ptr<net::TlsCredentials> certificate(xce::Role role, const std::string& name,
                                                   const std::string& authority = "/ca") {
    net::CertIdentity identity;
    identity.role = role;
    identity.name = name;
    const auto files = net::pki_issue(directory_.path() + authority, identity);
    EXPECT_TRUE(files.ok()) << files.status();
    auto loaded = net::TlsCredentials::load(*files);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *std::move(loaded);
  }

  // Nodes 1 and 2 with their own certificates, node 3 with that one: the two agree without it.
  void expect_kept_out(std::shared_ptr<net::TlsCredentials> third) {
    TestCluster cluster(3);
    cluster.use_certificate(1, certificate(xce::Role::kController, "1"));
    cluster.use_certificate(2, certificate(xce::Role::kController, "2"));
    cluster.use_certificate(3, std::move(third));
    cluster.start_all();
    TestNode* const leader = cluster.wait_for_leader();
    ASSERT_NE(leader, nullptr);
    EXPECT_NE(leader->id(), 3u);
    EXPECT_EQ(cluster.propose(*leader, "one").kind, Outcome::kApplied);
    cluster.run_for(600);  // time enough to get in, if it could
    EXPECT_TRUE(cluster.node(3).applied.empty());
    for (const auto& node : cluster.nodes())
      for (const PeerStatus& peer : node->consensus->peers())
        EXPECT_EQ(peer.connected, node->id() != 3 && peer.id != 3)
            << node->id() << " to " << peer.id;
  }

  TestDirectory directory_;
};

TEST_F(TlsPeers, ThreeNodesAgreeAndGoOnWithoutTheLeader) {
  TestCluster cluster(3);
  for (uint64_t id = 1; id <= 3; ++id)
    cluster.use_certificate(id, certificate(xce::Role::kController, std::to_string(id)));
  cluster.start_all();
  TestNode* const leader = cluster.settle();
  ASSERT_NE(leader, nullptr);
  EXPECT_EQ(cluster.propose(*leader, std::string(100000, 'x')).kind, Outcome::kApplied);
  ASSERT_TRUE(cluster.wait_until_equal());
  const NodeId old = leader->id();
  leader->kill();
  TestNode* const next = cluster.wait_for_leader();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(cluster.propose(*next, "two").kind, Outcome::kApplied);
  ASSERT_TRUE(cluster.start(old).ok());
  cluster.settle();
  EXPECT_EQ(cluster.node(old).entries().size(), 2u);
}

TEST_F(TlsPeers, ANewNodeIsTakenInWithItsOwnCertificateOnly) {
  TestCluster cluster(3);
  for (uint64_t id = 1; id <= 3; ++id)
    cluster.use_certificate(id, certificate(xce::Role::kController, std::to_string(id)));
  cluster.start_all();
  ASSERT_NE(cluster.settle(), nullptr);
  cluster.add_node();
  cluster.use_certificate(4, certificate(xce::Role::kController, "5"));
  ASSERT_TRUE(cluster.start(4).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(cluster.change(cluster.add(4))));
  EXPECT_EQ(cluster.leader()->consensus->members().all.size(), 3u);
  cluster.node(4).kill();
  cluster.use_certificate(4, certificate(xce::Role::kController, "4"));
  ASSERT_TRUE(cluster.start(4).ok());
  const absl::Status status = cluster.change(cluster.add(4));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(cluster.propose(*cluster.wait_for_leader(), "one").kind, Outcome::kApplied);
  EXPECT_TRUE(cluster.wait_until_equal());
}

TEST_F(TlsPeers, ANodeWithAnothersCertificateIsKeptOut) {
  expect_kept_out(certificate(xce::Role::kController, "2"));
}

TEST_F(TlsPeers, ANodeWithAWorkersCertificateIsKeptOut) {
  expect_kept_out(certificate(xce::Role::kWorker, "3"));
}

TEST_F(TlsPeers, ANodeOfAForeignAuthorityIsKeptOut) {
  ASSERT_TRUE(net::pki_init(directory_.path() + "/foreign").ok());
  expect_kept_out(certificate(xce::Role::kController, "3", "/foreign"));
}

TEST_F(TlsPeers, ANodeWithoutTlsIsKeptOut) { expect_kept_out(nullptr); }

}  // namespace
}  // namespace xce::consensus
