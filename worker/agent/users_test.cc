// Users of this host, rights of a thread, and the worker's own number.
#include "worker/agent/users.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "worker/agent/identity.h"

namespace xce::worker {
namespace {

std::string scratch() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string pattern = std::string(base == nullptr ? "/tmp" : base) + "/users.XXXXXX";
  return mkdtemp(pattern.data()) == nullptr ? "" : pattern;
}

TEST(Users, OneThatThisHostKnows) {
  const UserOnHost root = look_up_user(0, 0);
  EXPECT_EQ(root.name, "root");
  EXPECT_FALSE(root.home.empty());
  EXPECT_EQ(std::count(root.groups.begin(), root.groups.end(), 0u), 1);
}

TEST(Users, OneThatItDoesNotKnowHasItsOwnGroupOnly) {
  const UserOnHost nobody = look_up_user(3999999999u, 4000000000u);
  EXPECT_EQ(nobody.name, "");
  EXPECT_EQ(nobody.groups, std::vector<uint32_t>{4000000000u});
}

TEST(Users, AThreadReadsWithTheRightsOfAUserAndTheOthersKeepTheirs) {
  const std::string dir = scratch(), file = dir + "/closed";
  if (geteuid() != 0 || chown(dir.c_str(), 65534, 65534) != 0)
    GTEST_SKIP() << "only root can take on other rights, and only where there are other users";
  std::ofstream(file) << "secret";
  chmod(file.c_str(), 0600);
  const auto opens = [&] {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) close(fd);
    return fd >= 0;
  };
  bool as_nobody = true, meanwhile = false;
  EXPECT_TRUE(as_user(65534, 65534, [&] {
    as_nobody = opens();
    std::thread([&] { meanwhile = opens(); }).join();  // made here, it has this thread's rights
  }));
  EXPECT_FALSE(as_nobody);
  EXPECT_FALSE(meanwhile);
  EXPECT_TRUE(opens()) << "the rights came back";
}

TEST(WorkerId, StaysWithTheDataDirectory) {
  const std::string one = scratch(), two = scratch();
  const auto id = worker_id(one, "");
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_NE(*id, 0u);
  EXPECT_EQ(*worker_id(one, ""), *id);
  EXPECT_NE(*worker_id(two, ""), *id);
  std::ofstream(one + "/worker_id") << "no number\n";
  EXPECT_FALSE(worker_id(one, "").ok());
}

TEST(WorkerId, AGivenTextStandsForIt) {
  const std::string dir = scratch();
  EXPECT_EQ(*worker_id(dir, "serial 7"), *worker_id(scratch(), "serial 7"));
  EXPECT_NE(*worker_id(dir, "serial 7"), *worker_id(dir, "serial 8"));
  EXPECT_NE(access((dir + "/worker_id").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace xce::worker
