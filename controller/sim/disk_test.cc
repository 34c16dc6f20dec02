#include "controller/sim/disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace xce::sim {
namespace {

using consensus::read_file;
using consensus::sync_directory;

class DiskTest : public testing::Test {
 protected:
  void SetUp() override { disk_.mkdir("/data", 0700); }
  int make(const std::string& name, const std::string& content, int flags = 0) {
    const int fd = disk_.open("/data/" + name, O_RDWR | O_CREAT | flags, 0600);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(disk_.pwrite(fd, content.data(), content.size(), 0), int64_t(content.size()));
    return fd;
  }
  std::string content(const std::string& name) {
    const auto bytes = read_file(&disk_, "/data/" + name);
    return bytes.ok() ? *bytes : "none";
  }
  Disk disk_;
};

TEST_F(DiskTest, WhatIsSyncedStays) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const int fd = make("a", "old");
    ASSERT_EQ(disk_.fsync(fd), 0);
    make("b", "at once", O_DSYNC);
    ASSERT_TRUE(sync_directory(&disk_, "/data").ok());
    disk_.lose_power(&random);
    EXPECT_EQ(content("a"), "old");
    EXPECT_EQ(content("b"), "at once");
  }
}

TEST_F(DiskTest, WhatIsNotSyncedMayGoOrStaySectorBySector) {
  int gone = 0, whole = 0, torn = 0, unnamed = 0;
  const std::string text(5000, 'x');
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Disk disk;
    Random random(seed);
    disk.mkdir("/data", 0700);
    const int fd = disk.open("/data/a", O_RDWR | O_CREAT, 0600);
    disk.pwrite(fd, text.data(), text.size(), 0);
    if (seed % 2 == 0) {
      ASSERT_TRUE(sync_directory(&disk, "/data").ok());
    }
    disk.lose_power(&random);
    const auto bytes = read_file(&disk, "/data/a");
    if (!bytes.ok())
      ++unnamed;
    else if (bytes->find('x') == std::string::npos)
      ++gone;
    else
      ++(*bytes == text ? whole : torn);
  }
  EXPECT_GT(gone, 0);
  EXPECT_GT(whole, 0);
  EXPECT_GT(torn, 0);
  EXPECT_GT(unnamed, 0);
}

TEST_F(DiskTest, ARenameIsOldOrNewAfterALossOfPower) {
  int old_one = 0, new_one = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Disk disk;
    Random random(seed);
    disk.mkdir("/data", 0700);
    ASSERT_TRUE(consensus::replace_file(&disk, "/data", "a", "old").ok());
    const int fd = disk.open("/data/t", O_RDWR | O_CREAT, 0600);
    disk.pwrite(fd, "new", 3, 0);
    disk.fsync(fd);
    disk.rename("/data/t", "/data/a");
    disk.lose_power(&random);
    const auto bytes = read_file(&disk, "/data/a");
    ASSERT_TRUE(bytes.ok());
    ASSERT_TRUE(*bytes == "old" || *bytes == "new") << *bytes;
    ++(*bytes == "old" ? old_one : new_one);
  }
  EXPECT_GT(old_one, 0);
  EXPECT_GT(new_one, 0);
}

TEST_F(DiskTest, AKilledProcessLosesNothingAndDiesWhereItIsToldTo) {
  make("a", "written");
  disk_.process_ended();
  EXPECT_EQ(content("a"), "written");
  disk_.die_after(2);
  const int fd = make("a", "changed");  // one operation: the file is there already
  EXPECT_FALSE(disk_.died());
  EXPECT_EQ(disk_.pwrite(fd, "1", 1, 0), 1);
  EXPECT_TRUE(disk_.died());
  EXPECT_EQ(disk_.pwrite(fd, "2", 1, 1), 1);
  EXPECT_EQ(content("a"), "1hanged");
}

TEST_F(DiskTest, Fails) {
  const int fd = make("a", "x");
  disk_.fail_writes(ENOSPC);
  EXPECT_EQ(disk_.pwrite(fd, "y", 1, 0), -ENOSPC);
  EXPECT_EQ(disk_.fsync(fd), -ENOSPC);
  disk_.fail_writes(0);
  EXPECT_EQ(disk_.fsync(fd), 0);
}

}  // namespace
}  // namespace xce::sim
