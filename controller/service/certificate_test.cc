#include "controller/service/certificate.h"

#include <gtest/gtest.h>

namespace xce::service {
namespace {

net::CertIdentity certificate(Role role, const std::string& name) {
  net::CertIdentity out;
  out.role = role;
  out.name = name;
  return out;
}

Identity claim(Role role, const std::string& name, const std::string& user, uint32_t uid) {
  Identity out;
  out.role = role;
  out.name = name;
  out.user = user;
  out.uid = out.gid = uid;
  return out;
}

TEST(Certificate, AUserIsWhomTheCertificateNamesWithItsNumbers) {
  net::CertIdentity ann = certificate(Role::kUser, "ann");
  Identity hello = claim(Role::kUser, "", "ann", 0);  // says that it is root
  EXPECT_EQ(apply_certificate(ann, &hello), "");
  EXPECT_EQ(hello.uid, kNobodyId);
  EXPECT_EQ(hello.gid, kNobodyId);
  ann.has_ids = true;
  ann.uid = 1234;
  ann.gid = 100;
  hello = claim(Role::kUser, "", "", 0);
  EXPECT_EQ(apply_certificate(ann, &hello), "");
  EXPECT_EQ(hello.user, "ann");
  EXPECT_EQ(hello.uid, 1234u);
  EXPECT_EQ(hello.gid, 100u);
}

TEST(Certificate, AnotherUserHostOrRoleIsRefused) {
  Identity bob = claim(Role::kUser, "", "bob", 1);
  EXPECT_NE(apply_certificate(certificate(Role::kUser, "ann"), &bob), "");
  Identity host2 = claim(Role::kWorker, "host2", "root", 0);
  EXPECT_EQ(apply_certificate(certificate(Role::kWorker, "host1"), &host2),
            "a certificate of worker host1 cannot be used as that of worker 'host2'");
  Identity scheduler = claim(Role::kScheduler, "host1", "root", 0);
  EXPECT_EQ(apply_certificate(certificate(Role::kWorker, "host1"), &scheduler),
            "a certificate of worker host1 cannot be used as scheduler");
}

TEST(Certificate, DaemonsAreNoUsersButAnApiserverSpeaksForThem) {
  Identity worker = claim(Role::kWorker, "host1", "root", 0);
  EXPECT_EQ(apply_certificate(certificate(Role::kWorker, "host1"), &worker), "");
  EXPECT_EQ(worker.user, "");
  EXPECT_EQ(worker.uid, kNobodyId);
  Identity api = claim(Role::kApiserver, "api", "ann", 1234);
  EXPECT_EQ(apply_certificate(certificate(Role::kApiserver, "api"), &api), "");
  EXPECT_EQ(api.user, "ann");
  EXPECT_EQ(api.uid, 1234u);
}

}  // namespace
}  // namespace xce::service
