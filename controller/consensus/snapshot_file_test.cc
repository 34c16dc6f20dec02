// Snapshot files: whatever byte is changed or missing, the reader notices; and logs that begin with
// a snapshot.
#include "controller/consensus/snapshot_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "controller/consensus/core.h"
#include "controller/consensus/faulty_file_system.h"
#include "controller/consensus/log_store.h"
#include "controller/consensus/memory_log.h"

namespace xce::consensus {
namespace {

class SnapshotFileTest : public testing::Test {
 protected:
  SnapshotFileTest() {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string pattern = std::string(base != nullptr ? base : "/tmp") + "/snapshot-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~SnapshotFileTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  static std::string file_of(const SnapshotMeta& meta, const std::vector<std::string>& pieces) {
    std::string out;
    uint32_t chain = 0;
    uint64_t total = 0;
    append_chunk(ChunkKind::kHeader, encode_snapshot_meta(meta), &chain, &out);
    for (const std::string& piece : pieces) {
      append_chunk(ChunkKind::kData, piece, &chain, &out);
      total += piece.size();
    }
    append_chunk(ChunkKind::kTrailer, {reinterpret_cast<const char*>(&total), sizeof total}, &chain,
                 &out);
    return out;
  }
  void write(const std::string& bytes) const {
    std::ofstream(path_ + "/s", std::ios::binary) << bytes;
  }
  // Everything in it, or the error.
  absl::StatusOr<std::string> read() {
    auto reader = SnapshotReader::open(&fs_, path_ + "/s");
    if (!reader.ok()) return reader.status();
    std::string out;
    char buffer[7];
    while (const size_t n = (*reader)->read(buffer, sizeof buffer)) out.append(buffer, n);
    absl::Status status = (*reader)->finish();
    if (!status.ok()) return status;
    return out;
  }

  FaultyFileSystem fs_;
  std::string path_;
  const SnapshotMeta meta_{17, 3, 1, "configuration", 99};
};

TEST_F(SnapshotFileTest, ComesBackAsItWasWritten) {
  write(file_of(meta_, {"abc", "", "defgh"}));
  const auto all = read();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(*all, "abcdefgh");
  auto reader = SnapshotReader::open(&fs_, path_ + "/s");
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->meta().index, 17u);
  EXPECT_EQ((*reader)->meta().term, 3u);
  EXPECT_EQ((*reader)->meta().conf, "configuration");
  EXPECT_EQ((*reader)->meta().cluster, 99u);
}

TEST_F(SnapshotFileTest, EveryChangedByteIsNoticed) {
  const std::string whole = file_of(meta_, {"abcdefgh", "ijklmnop"});
  for (size_t at = 0; at < whole.size(); at++) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write(changed);
    const auto all = read();
    EXPECT_FALSE(all.ok()) << at;
    EXPECT_NE(all.status().ToString().find(path_ + "/s"), std::string::npos) << all.status();
  }
}

TEST_F(SnapshotFileTest, EveryMissingEndIsNoticed) {
  const std::string whole = file_of(meta_, {"abcdefgh", "ijklmnop"});
  for (size_t n = 0; n < whole.size(); n++) {
    write(whole.substr(0, n));
    EXPECT_TRUE(absl::IsDataLoss(read().status())) << n;
  }
}

TEST_F(SnapshotFileTest, AMissingChunkIsNoticed) {
  uint32_t chain = 0;
  std::string header, first, all = file_of(meta_, {"abcdefgh", "ijklmnop"});
  append_chunk(ChunkKind::kHeader, encode_snapshot_meta(meta_), &chain, &header);
  append_chunk(ChunkKind::kData, "abcdefgh", &chain, &first);
  all.erase(header.size(), first.size());
  write(all);
  EXPECT_TRUE(absl::IsDataLoss(read().status()));
}

TEST_F(SnapshotFileTest, ListsTheNewestFirstAndRemovesLeftovers) {
  const std::string directory = path_ + "/d";
  std::filesystem::create_directory(directory);
  for (const char* name :
       {"000000000005.snap", "000000000123.snap", "123.tmp", "install.tmp", "readme"})
    std::ofstream(directory + "/" + name) << "x";
  const auto found = open_snapshots(&fs_, directory);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, (std::vector<uint64_t>{123, 5}));
  EXPECT_FALSE(std::filesystem::exists(directory + "/install.tmp"));
  EXPECT_TRUE(std::filesystem::exists(directory + "/readme"));
  remove_snapshots_below(&fs_, directory, 123);
  EXPECT_EQ(*open_snapshots(&fs_, directory), (std::vector<uint64_t>{123}));
}

// The log: segments go from the front, and what remains says where it begins.
class ShortenedLogTest : public SnapshotFileTest {
 protected:
  absl::StatusOr<std::unique_ptr<LogStore>> open() {
    return LogStore::open(&fs_, path_ + "/log", 42, 32 * 1024);
  }
  void append(LogStore* store, uint64_t index, uint64_t term = 1) {
    std::string items;
    append_entries_item(index, 1, &items);
    append_entry(term, XCE_ENTRY_COMMAND, pad_entry(std::string(4000, 'a')), &items);
    ASSERT_TRUE(store->append(items, index).ok());
  }
  size_t segments() const {
    size_t n = 0;
    for (const auto& file : std::filesystem::directory_iterator(path_ + "/log"))
      n += file.path().filename().string().find("segment") == 0;
    return n;
  }
};

TEST_F(ShortenedLogTest, WhatRemainsIsRead) {
  size_t before = 0;
  {
    auto store = open();
    ASSERT_TRUE(store.ok());
    for (uint64_t i = 1; i <= 50; i++) append(store->get(), i);
    std::string items;
    append_term_vote_item(9, 2, &items);
    append_instance_item(3, {{5, 6}, 0}, &items);
    append_instance_item(4, {{7, 8}, 9}, &items);
    ASSERT_TRUE((*store)->append(items).ok());
    before = segments();
    ASSERT_TRUE((*store)->remove_through(40).ok());
  }
  EXPECT_LT(segments(), before);
  auto store = open();
  ASSERT_TRUE(store.ok()) << store.status();
  const LogContents& contents = (*store)->contents();
  EXPECT_GT(contents.first_index, 1u);
  EXPECT_LE(contents.first_index, 41u);
  EXPECT_EQ(contents.first_index + contents.entries.size(), 51u);
  EXPECT_EQ(contents.term, 9u);
  EXPECT_EQ(contents.instances.at(3).id.lo, 6u);
  EXPECT_EQ(contents.instances.at(3).tag, 0u);
  EXPECT_EQ(contents.instances.at(4).id.lo, 8u);
  EXPECT_EQ(contents.instances.at(4).tag, 9u);
  append(store->get(), 51);
  ASSERT_TRUE((*store)->remove_through(1000).ok()) << "the segment in use stays";
  store->reset();
  store = open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE((*store)->contents().entries.empty());
}

TEST_F(ShortenedLogTest, AReplacedEntryKeepsItsSegment) {
  {
    auto store = open();
    ASSERT_TRUE(store.ok());
    for (uint64_t i = 1; i <= 20; i++) append(store->get(), i);
    std::string items;
    append_truncate_item(5, &items);
    append_entries_item(5, 1, &items);
    append_entry(2, XCE_ENTRY_COMMAND, pad_entry("new"), &items);
    ASSERT_TRUE((*store)->append(items, 5).ok());
    for (uint64_t i = 6; i <= 30; i++) append(store->get(), i, 2);
    ASSERT_TRUE((*store)->remove_through(4).ok());
    // Entry 5 was in the first segment, too: nothing may go before its replacement is covered.
    ASSERT_TRUE((*store)->remove_through(19).ok());
  }
  auto store = open();
  ASSERT_TRUE(store.ok()) << store.status();
  const LogContents& contents = (*store)->contents();
  EXPECT_LE(contents.first_index, 20u);
  EXPECT_EQ(contents.first_index + contents.entries.size(), 31u);
  EXPECT_EQ(contents.entries.back().term, 2u);
}

TEST_F(ShortenedLogTest, StartsAnewAfterAReset) {
  {
    auto store = open();
    ASSERT_TRUE(store.ok());
    for (uint64_t i = 1; i <= 10; i++) append(store->get(), i);
    std::string items;
    append_reset_item(1000, &items);
    ASSERT_TRUE((*store)->append(items).ok());
    append(store->get(), 1001);
  }
  auto store = open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->contents().first_index, 1001u);
  EXPECT_EQ((*store)->contents().entries.size(), 1u);
}

}  // namespace
}  // namespace xce::consensus
