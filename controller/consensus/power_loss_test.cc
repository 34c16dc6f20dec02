// What the log has acknowledged survives a loss of power.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "controller/consensus/core.h"
#include "controller/consensus/log_store.h"
#include "controller/consensus/lossy_file_system.h"
#include "controller/consensus/memory_log.h"

namespace xce::consensus {
namespace {

class PowerLossTest : public testing::Test {
 protected:
  PowerLossTest() {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string pattern = std::string(base != nullptr ? base : "/tmp") + "/power-loss-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~PowerLossTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  absl::StatusOr<std::unique_ptr<LogStore>> open() {
    return LogStore::open(&fs_, path_ + "/log", 42, size_t{32} << 10);
  }
  static std::string one_entry(uint64_t index) {
    std::string items;
    append_entries_item(index, 1, &items);
    append_entry(1, XCE_ENTRY_COMMAND, pad_entry(std::string(3000, 'a')), &items);
    return items;
  }

  LossyFileSystem fs_;
  std::string path_;
};

TEST_F(PowerLossTest, EveryAcknowledgedEntryIsStillThere) {
  // In the first segment, in those made in advance, and in one found again after a restart.
  uint64_t acknowledged = 0;
  for (const int more : {1, 1, 30, 3}) {
    auto store = open();
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->contents().entries.size(), acknowledged);
    for (int i = 0; i < more; i++) ASSERT_TRUE((*store)->append(one_entry(++acknowledged)).ok());
    store->reset();
    fs_.lose_power();
  }
  auto store = open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->contents().entries.size(), acknowledged);
}

TEST_F(PowerLossTest, TheFileSystemOfThisTestDoesLoseThings) {
  const std::string kept = path_ + "/kept", lost = path_ + "/lost";
  for (const std::string& path : {kept, lost}) {
    const int fd = fs_.open(path, O_RDWR | O_CREAT, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(fs_.pwrite(fd, "new", 3, 0), 3);
    if (path == kept) {
      ASSERT_EQ(fs_.fsync(fd), 0);
      ASSERT_TRUE(sync_directory(&fs_, path_).ok());
      ASSERT_EQ(fs_.pwrite(fd, "NEW", 3, 0), 3);
    }
    fs_.close(fd);
  }
  fs_.lose_power();
  EXPECT_EQ(*read_file(&fs_, kept), "new");
  EXPECT_FALSE(read_file(&fs_, lost).ok());
}

}  // namespace
}  // namespace xce::consensus
