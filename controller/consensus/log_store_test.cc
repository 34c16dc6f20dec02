// The log's files under faults, the writer's thread, and who may open a data directory.
#include "controller/consensus/log_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>

#include "controller/consensus/core.h"
#include "controller/consensus/data_dir.h"
#include "controller/consensus/faulty_file_system.h"
#include "controller/consensus/log_writer.h"
#include "controller/consensus/memory_log.h"

namespace xce::consensus {
namespace {

constexpr uint64_t kSalt = 42;
constexpr size_t kSegment = 32 * 1024;

class LogStoreTest : public testing::Test {
 protected:
  LogStoreTest() {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string pattern = std::string(base != nullptr ? base : "/tmp") + "/log-store-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~LogStoreTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  absl::StatusOr<std::unique_ptr<LogStore>> open() {
    return LogStore::open(&fs_, path_ + "/log", kSalt, kSegment);
  }
  static std::string one_entry(uint64_t index, const std::string& data) {
    std::string items;
    append_entries_item(index, 1, &items);
    append_entry(1, XCE_ENTRY_COMMAND, pad_entry(data), &items);
    return items;
  }
  std::string segment(int number) const {
    char name[64];
    snprintf(name, sizeof name, "/log/segment-%012d.log", number);
    return path_ + name;
  }
  static void overwrite(const std::string& file, std::streamoff offset, const std::string& bytes) {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(offset);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(out.good());
  }

  FaultyFileSystem fs_;
  std::string path_;
};

TEST_F(LogStoreTest, KeepsEntriesOverManySegmentsAndReopening) {
  for (int run = 0; run < 3; run++) {
    auto store = open();
    ASSERT_TRUE(store.ok()) << store.status();
    const size_t have = (*store)->contents().entries.size();
    ASSERT_EQ(have, static_cast<size_t>(run) * 40);
    for (size_t i = have + 1; i <= have + 40; i++)
      ASSERT_TRUE((*store)->append(one_entry(i, std::string(5000, 'a'))).ok());
  }
  auto store = open();
  ASSERT_TRUE(store.ok());
  EXPECT_EQ((*store)->contents().entries.size(), 120u);
  EXPECT_FALSE((*store)->had_torn_tail());
}

TEST_F(LogStoreTest, ShortWritesAreCompleted) {
  fs_.shorten_writes(100);
  {
    auto store = open();
    ASSERT_TRUE(store.ok()) << store.status();
    for (uint64_t i = 1; i <= 5; i++)
      ASSERT_TRUE((*store)->append(one_entry(i, std::string(1000, 'b'))).ok());
  }
  auto store = open();
  ASSERT_TRUE(store.ok());
  EXPECT_EQ((*store)->contents().entries.size(), 5u);
}

TEST_F(LogStoreTest, AFullDiskIsSaidSoWithTheFileAndTheWayOut) {
  auto store = open();
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE((*store)->append(one_entry(1, "x")).ok());
  store->reset();  // waits for the segment made in advance
  store = open();
  ASSERT_TRUE(store.ok());
  fs_.limit_space(40000);
  absl::Status status;
  uint64_t acknowledged = 1;
  while (status.ok() && acknowledged < 1000) {
    status = (*store)->append(one_entry(acknowledged + 1, std::string(3000, 'c')));
    if (status.ok()) acknowledged++;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.ToString().find(path_ + "/log/segment-"), std::string::npos) << status;
  EXPECT_NE(status.ToString().find("Free space"), std::string::npos) << status;
  store->reset();
  fs_.limit_space(-1);
  store = open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->contents().entries.size(), acknowledged);
  EXPECT_TRUE((*store)->append(one_entry(acknowledged + 1, "after")).ok());
}

TEST_F(LogStoreTest, ATornWriteIsClearedSoThatItNeverComesBack) {
  {
    auto store = open();
    ASSERT_TRUE(store.ok());
    for (uint64_t i = 1; i <= 3; i++)
      ASSERT_TRUE((*store)->append(one_entry(i, std::string(100, 'd'))).ok());
  }
  std::filesystem::remove(path_ + "/log/mark");
  overwrite(segment(1), static_cast<std::streamoff>(kSector + 2 * kSector + 70), "garbage");
  {
    auto store = open();
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE((*store)->had_torn_tail());
    EXPECT_EQ((*store)->contents().entries.size(), 2u);
  }
  auto store = open();
  ASSERT_TRUE(store.ok());
  EXPECT_FALSE((*store)->had_torn_tail());
  EXPECT_TRUE((*store)->append(one_entry(3, "again")).ok());
}

TEST_F(LogStoreTest, DamageIsRefusedWithTheFileAndTheWayOut) {
  {
    auto store = open();
    ASSERT_TRUE(store.ok());
    for (uint64_t i = 1; i <= 3; i++)
      ASSERT_TRUE((*store)->append(one_entry(i, std::string(100, 'e'))).ok());
  }
  // The last record, which the mark covers.
  overwrite(segment(1), static_cast<std::streamoff>(3 * kSector + 70), "garbage");
  auto store = open();
  ASSERT_TRUE(absl::IsDataLoss(store.status())) << store.status();
  EXPECT_NE(store.status().ToString().find(segment(1)), std::string::npos);
  EXPECT_NE(store.status().ToString().find("xce cluster replace"), std::string::npos);
}

TEST_F(LogStoreTest, AMissingSegmentIsRefused) {
  {
    auto store = open();
    ASSERT_TRUE(store.ok());
    for (uint64_t i = 1; i <= 30; i++)
      ASSERT_TRUE((*store)->append(one_entry(i, std::string(5000, 'f'))).ok());
  }
  std::filesystem::remove(segment(2));
  EXPECT_TRUE(absl::IsDataLoss(open().status()));
}

TEST_F(LogStoreTest, WhatIsQueuedDuringAWriteGoesOutAsOneRecord) {
  auto store = open();
  ASSERT_TRUE(store.ok());
  std::mutex mutex;
  std::condition_variable changed;
  int wakes = 0;
  LogWriter writer(std::move(*store), 20000, [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    wakes++;
    changed.notify_all();
  });
  fs_.block_writes();
  uint64_t ticket = writer.enqueue(one_entry(1, "first"));
  // The first write is under way once the file system has been asked.
  while (fs_.writes() == 0) std::this_thread::yield();
  const int before = fs_.writes();
  for (uint64_t i = 2; i <= 50; i++) ticket = writer.enqueue(one_entry(i, "more"));
  EXPECT_EQ(writer.progress().durable, 0u);
  fs_.release_writes();
  {
    std::unique_lock<std::mutex> lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(10),
                                 [&] { return writer.progress().durable == ticket; }));
    EXPECT_EQ(wakes, 2);
  }
  EXPECT_EQ(writer.backlog(), 0u);
  EXPECT_GT(before, 0);
  writer.stop();
}

TEST_F(LogStoreTest, AFailedWriteEndsTheWriterForGood) {
  auto store = open();
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE((*store)->append(one_entry(1, "kept")).ok());
  std::mutex mutex;
  std::condition_variable changed;
  LogWriter writer(std::move(*store), 20000, [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    changed.notify_all();
  });
  fs_.fail_writes(EIO);
  writer.enqueue(one_entry(2, "lost"));
  {
    std::unique_lock<std::mutex> lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(10),
                                 [&] { return !writer.progress().error.ok(); }));
  }
  fs_.fail_writes(0);
  writer.enqueue(one_entry(3, "never"));
  EXPECT_EQ(writer.progress().durable, 0u);
  EXPECT_NE(writer.progress().error.ToString().find(segment(1)), std::string::npos)
      << writer.progress().error;
  writer.stop();
  auto again = open();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->contents().entries.size(), 1u);
}

class DataDirTest : public LogStoreTest {
 protected:
  absl::StatusOr<std::unique_ptr<DataDir>> open_dir(uint64_t node = 1,
                                                    const std::string& first = "12345678") {
    return DataDir::open(&fs_, path_ + "/data", node, first, kSegment);
  }
  void expect_refused(const absl::Status& status, const std::string& words) {
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.ToString().find(words), std::string::npos) << status;
  }
};

TEST_F(DataDirTest, KeepsItsIdentity) {
  InstanceId instance;
  {
    auto dir = open_dir();
    ASSERT_TRUE(dir.ok()) << dir.status();
    instance = (*dir)->instance();
    EXPECT_EQ((*dir)->log()->contents().entries.size(), 1u);
    EXPECT_EQ((*dir)->log()->contents().term, 1u);
  }
  auto dir = open_dir();
  ASSERT_TRUE(dir.ok()) << dir.status();
  EXPECT_EQ((*dir)->instance(), instance);
  EXPECT_EQ((*dir)->cluster(), cluster_id_of("12345678"));
  EXPECT_EQ((*dir)->log()->contents().entries.size(), 1u);
}

TEST_F(DataDirTest, RefusesInWords) {
  {
    auto dir = open_dir();
    ASSERT_TRUE(dir.ok());
    expect_refused(open_dir().status(), "in use by another controller");
  }
  expect_refused(open_dir(2).status(), "belongs to node 1");
  // What it was founded with counts, not what is given later: members change.
  {
    const auto dir = open_dir(1, "87654321");
    ASSERT_TRUE(dir.ok());
    EXPECT_EQ((*dir)->cluster(), cluster_id_of("12345678"));
  }
  std::filesystem::rename(path_ + "/data/log", path_ + "/log-away");
  expect_refused(open_dir().status(), "/log has been lost");
  std::filesystem::remove_all(path_ + "/data/log");
  std::filesystem::rename(path_ + "/log-away", path_ + "/data/log");
  ASSERT_TRUE(open_dir().ok());
  overwrite(path_ + "/data/identity", 20, "X");
  expect_refused(open_dir().status(), "damaged or was edited");
}

TEST_F(DataDirTest, AFoundingCutShortStartsOver) {
  { ASSERT_TRUE(open_dir().ok()); }
  std::filesystem::remove(path_ + "/data/identity");
  auto dir = open_dir();
  ASSERT_TRUE(dir.ok()) << dir.status();
  EXPECT_EQ((*dir)->log()->contents().entries.size(), 1u);
}

TEST_F(DataDirTest, ALostIdentityWithALogIsRefused) {
  {
    auto dir = open_dir();
    ASSERT_TRUE(dir.ok());
    ASSERT_TRUE((*dir)->log()->append(one_entry(2, "acknowledged")).ok());
  }
  std::filesystem::remove(path_ + "/data/identity");
  expect_refused(open_dir().status(), "identity is missing");
}

}  // namespace
}  // namespace xce::consensus
