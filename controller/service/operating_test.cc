// Operators' requests over a real socket against a fake log: changing the controllers, backups.
#include <gtest/gtest.h>

#include <string>

#include "controller/service/testing/fake_replica.h"
#include "controller/service/testing/test_client.h"
#include "libxce/base/crc32c.h"
#include "xce/errnox.h"

namespace xce::service::testing {
namespace {

using Request = wire::Request::Builder;

void add_four(Request r) {
  auto to = r.initOp().initMemberCtrl();
  to.setAction(wire::MemberAction::ADD);
  to.setNodeId(4);
  to.setHost("four.example");
  to.setPort(9990);
}
void backup(Request r) { r.initOp().setBackup(); }
std::function<void(Request)> piece(uint64_t id, uint64_t offset) {
  return [=](Request r) {
    auto to = r.initOp().initBackupRead();
    to.setId(id);
    to.setOffset(offset);
  };
}

TEST(Operating, OnlyOperatorsChangeTheControllersAndTakeBackups) {
  Harness harness;
  TestClient ann(harness.port());
  ASSERT_EQ(ann.hello(Role::kUser, "", "ann", 1000), 0);
  EXPECT_EQ(ann.call(add_four)->reply().getStatus(), E_XCE_PERM);
  EXPECT_EQ(ann.call(backup)->reply().getStatus(), E_XCE_PERM);
  TestClient worker(harness.port());
  ASSERT_EQ(worker.hello(Role::kWorker, "n1", "root", 0), 0);
  EXPECT_EQ(worker.call(add_four)->reply().getStatus(), E_XCE_PERM);
  EXPECT_EQ(worker.call(backup)->reply().getStatus(), E_XCE_PERM);
  EXPECT_TRUE(harness.replica().wishes.empty());
}

TEST(Operating, AChangeIsAnsweredAsItEnds) {
  Harness harness;
  TestClient root(harness.port());
  ASSERT_EQ(root.hello(Role::kUser, "", "root", 0), 0);
  const auto ends = [&](MembersChanged::Kind kind, int32_t status, const std::string& message) {
    harness.on_loop([&] { harness.replica().members_changed = {kind, status, message}; });
    return root.call(add_four);
  };
  auto done = ends(MembersChanged::kDone, 0, "");
  EXPECT_EQ(done->reply().getStatus(), 0);
  EXPECT_EQ(harness.replica().wishes.back().host, "four.example");
  auto refused = ends(MembersChanged::kRefused, E_XCE_INVALID, "the id is taken");
  EXPECT_EQ(refused->reply().getStatus(), E_XCE_INVALID);
  EXPECT_STREQ(refused->reply().getMessage().cStr(), "the id is taken");
  EXPECT_EQ(refused->reply().getOutcome(), kNotApplied);
  // "It may have been done" is what a cut connection says: the client asks again as one that did.
  harness.on_loop([&] { harness.replica().members_changed = {MembersChanged::kLost, 0, ""}; });
  ASSERT_NE(root.send(add_four), 0u);
  EXPECT_TRUE(root.closed());
}

TEST(Operating, ABackupIsReadInOrderOnTheConnectionThatAskedForIt) {
  Harness harness;
  const std::string bytes(600 * 1024, 'b');
  harness.on_loop([&] { harness.replica().backup_bytes = bytes; });
  TestClient root(harness.port());
  ASSERT_EQ(root.hello(Role::kUser, "", "root", 0), 0);
  auto begun = root.call(backup);
  ASSERT_EQ(begun->reply().getStatus(), 0) << begun->reply().getMessage().cStr();
  const uint64_t id = begun->reply().getBody().getBackup().getId();
  EXPECT_EQ(begun->reply().getBody().getBackup().getTotal(), bytes.size());
  EXPECT_EQ(begun->reply().getBody().getBackup().getIndex(), 7u);
  EXPECT_EQ(root.call(piece(id, 5))->reply().getStatus(), E_XCE_STALE);
  EXPECT_EQ(root.call(piece(id + 1, 0))->reply().getStatus(), E_XCE_STALE);
  TestClient other(harness.port());
  ASSERT_EQ(other.hello(Role::kUser, "", "root", 0), 0);
  EXPECT_EQ(other.call(piece(id, 0))->reply().getStatus(), E_XCE_STALE);
  std::string read;
  while (read.size() < bytes.size()) {
    auto part = root.call(piece(id, read.size()));
    ASSERT_EQ(part->reply().getStatus(), 0);
    const auto body = part->reply().getBody().getBackup();
    ASSERT_GT(body.getData().size(), 0u);
    EXPECT_LE(body.getData().size(), 256u * 1024);
    read.append(reinterpret_cast<const char*>(body.getData().begin()), body.getData().size());
    EXPECT_EQ(body.getCrc(), crc32c(0, read));
  }
  EXPECT_EQ(read, bytes);
  EXPECT_EQ(root.call(piece(id, read.size()))->reply().getStatus(), E_XCE_STALE) << "it has ended";
}

}  // namespace
}  // namespace xce::service::testing
