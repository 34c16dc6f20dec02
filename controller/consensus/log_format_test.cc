// What recovery makes of a log's bytes: a torn tail is cut off, damage is refused.
#include "controller/consensus/log_format.h"

#include <gtest/gtest.h>

#include "controller/consensus/memory_log.h"
#include "libxce/base/crc32c.h"

namespace xce::consensus {
namespace {

constexpr uint64_t kSalt = 0x1234567890abcdef;
constexpr size_t kSegment = 16 * 1024;

// Writes segments as the log store does.
class Writer {
 public:
  explicit Writer(uint64_t salt = kSalt) : salt_(salt) {}
  void append(const std::string& items) {
    if (segments_.empty() || offset_ + record_size(items.size()) > kSegment) {
      segments_.push_back(std::string(kSegment, '\0'));
      const std::string header = encode_segment_header(salt_, segments_.size(), tail_);
      segments_.back().replace(0, header.size(), header);
      offset_ = kSector;
    }
    const std::string record = encode_record(salt_, items, &tail_);
    segments_.back().replace(offset_, record.size(), record);
    starts_.push_back({segments_.size() - 1, offset_});
    offset_ += record.size();
  }
  void append_one(uint64_t index, uint64_t term, const std::string& data) {
    std::string items;
    append_entries_item(index, 1, &items);
    append_entry(term, 1, pad_entry(data), &items);
    append(items);
  }
  std::vector<std::string>& segments() { return segments_; }
  // Segment and offset of the n-th record.
  std::pair<size_t, size_t> start(size_t n) const { return starts_[n]; }
  size_t records() const { return starts_.size(); }

 private:
  uint64_t salt_;
  LogTail tail_;
  size_t offset_ = 0;
  std::vector<std::string> segments_;
  std::vector<std::pair<size_t, size_t>> starts_;
};

struct Result {
  absl::Status status;
  LogContents contents;
  LogTail tail;
  bool torn = false;
};

Result replay(const std::vector<std::string>& segments,
              std::optional<uint64_t> mark = std::nullopt) {
  LogReplay replay(kSalt, "WAY OUT");
  Result result;
  for (size_t i = 0; i < segments.size() && result.status.ok(); i++)
    result.status = replay.add(i + 1, "segment" + std::to_string(i + 1), segments[i]);
  if (result.status.ok()) result.status = replay.finish(mark);
  result.contents = std::move(replay.contents());
  result.tail = replay.tail();
  result.torn = replay.torn();
  return result;
}

Writer three_records() {
  Writer writer;
  std::string items;
  append_term_vote_item(3, 2, &items);
  writer.append(items);
  writer.append_one(1, 3, "first");
  writer.append_one(2, 3, std::string(700, 'x'));
  return writer;
}

TEST(Crc32cTest, KnownValueAndBothWaysAgree) {
  EXPECT_EQ(crc32c(0, "123456789"), 0xe3069283u);
  std::string bytes;
  for (int i = 0; i < 300; i++) {
    EXPECT_EQ(crc32c(7, bytes), crc32c_by_table(7, bytes));
    bytes.push_back(static_cast<char>(i * 31));
  }
  EXPECT_EQ(crc32c(crc32c(0, "1234"), "56789"), 0xe3069283u);
}

TEST(PaddingTest, ComesOffAgain) {
  for (size_t n = 0; n < 40; n++) {
    const std::string entry(n, 'e');
    const std::string padded = pad_entry(entry);
    EXPECT_EQ(padded.size() % 8, 0u);
    EXPECT_EQ(strip_padding(padded), entry);
  }
  EXPECT_EQ(strip_padding(""), "");
  EXPECT_EQ(strip_padding("1234567\x09"), "");
}

TEST(LogReplayTest, NothingIsAnEmptyLog) {
  EXPECT_TRUE(replay({}).status.ok());
  const Result zeros = replay({std::string(kSegment, '\0')});
  EXPECT_TRUE(zeros.status.ok());
  EXPECT_FALSE(zeros.torn);
  EXPECT_TRUE(zeros.contents.entries.empty());
}

TEST(LogReplayTest, ReadsWhatWasWritten) {
  Writer writer = three_records();
  std::string items;
  append_instance_item(9, {5, 6}, &items);
  append_truncate_item(2, &items);
  append_term_vote_item(4, 0, &items);
  append_entries_item(2, 2, &items);
  append_entry(4, 2, "12345678", &items);
  append_entry(4, 3, std::string(16, 'c'), &items);
  writer.append(items);
  const Result result = replay(writer.segments());
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_FALSE(result.torn);
  EXPECT_EQ(result.contents.term, 4u);
  EXPECT_EQ(result.contents.vote, 0u);
  ASSERT_EQ(result.contents.entries.size(), 3u);
  EXPECT_EQ(result.contents.entries[0].data, pad_entry("first"));
  EXPECT_EQ(result.contents.entries[1].data, "12345678");
  EXPECT_EQ(result.contents.entries[1].term, 4u);
  EXPECT_EQ(result.contents.entries[2].type, 3);
  EXPECT_EQ(result.contents.instances.at(9).id.lo, 6u);
  EXPECT_EQ(result.tail.next_seq, 5u);
}

// A crash during the last write leaves any part of it. Everything before must be read, nothing of
// it, and no error.
TEST(LogReplayTest, ATailTornAtAnyByteIsCutOff) {
  Writer writer = three_records();
  const auto [segment, offset] = writer.start(2);
  const std::string whole = writer.segments()[segment];
  for (size_t kept = 0; kept < 64 + 16 + 16 + 704; kept++) {
    std::vector<std::string> torn = writer.segments();
    torn[segment].replace(offset + kept, std::string::npos, kSegment - offset - kept, '\0');
    const Result result = replay(torn, 2);
    ASSERT_TRUE(result.status.ok()) << kept << ": " << result.status;
    ASSERT_EQ(result.contents.entries.size(), 1u) << kept;
    ASSERT_EQ(result.tail.offset, offset);
    ASSERT_EQ(result.torn, kept > 0);
  }
  EXPECT_EQ(replay({whole}).contents.entries.size(), 2u);
}

// Blocks of one write may reach the disk in any order: a hole in the middle is a torn write as
// well.
TEST(LogReplayTest, ATailWithAHoleIsCutOff) {
  Writer writer;
  writer.append_one(1, 1, "a");
  writer.append_one(2, 1, std::string(3000, 'b'));
  const auto [segment, offset] = writer.start(1);
  for (size_t hole = 0; hole < 3072; hole += kSector) {
    std::vector<std::string> torn = writer.segments();
    torn[segment].replace(offset + hole, kSector, kSector, '\0');
    const Result result = replay(torn);
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_EQ(result.contents.entries.size(), 1u);
    ASSERT_TRUE(result.torn);
  }
}

TEST(LogReplayTest, AFlippedBitWithASuccessorIsDamage) {
  Writer writer = three_records();
  for (size_t record = 0; record < 2; record++) {
    const auto [segment, offset] = writer.start(record);
    for (size_t byte = 0; byte < 64 + 24; byte++) {
      std::vector<std::string> damaged = writer.segments();
      damaged[segment][offset + byte] = static_cast<char>(damaged[segment][offset + byte] ^ 0x10);
      const Result result = replay(damaged);
      ASSERT_TRUE(absl::IsDataLoss(result.status))
          << "record " << record << " byte " << byte << ": " << result.status;
      EXPECT_NE(result.status.ToString().find("segment1"), std::string::npos) << result.status;
      EXPECT_NE(result.status.ToString().find("WAY OUT"), std::string::npos) << result.status;
    }
  }
}

TEST(LogReplayTest, ALostWriteWithASuccessorIsDamage) {
  Writer writer = three_records();
  const auto [segment, offset] = writer.start(1);
  writer.segments()[segment].replace(offset, kSector, kSector, '\0');
  EXPECT_TRUE(absl::IsDataLoss(replay(writer.segments()).status));
}

TEST(LogReplayTest, AFlippedBitInTheLastRecordIsDamageOnlyUnderTheMark) {
  Writer writer = three_records();
  const auto [segment, offset] = writer.start(2);
  writer.segments()[segment][offset + 100] ^= 1;
  EXPECT_TRUE(replay(writer.segments()).status.ok());
  EXPECT_TRUE(replay(writer.segments(), 2).status.ok());
  const Result covered = replay(writer.segments(), 3);
  EXPECT_TRUE(absl::IsDataLoss(covered.status)) << covered.status;
  EXPECT_NE(covered.status.ToString().find("segment1"), std::string::npos);
}

TEST(LogReplayTest, AnOlderLogUnderTheMarkIsDamage) {
  Writer writer = three_records();
  EXPECT_TRUE(replay(writer.segments(), 3).status.ok());
  EXPECT_TRUE(absl::IsDataLoss(replay(writer.segments(), 4).status));
}

Writer several_segments() {
  Writer writer;
  for (uint64_t i = 1; i <= 60; i++) writer.append_one(i, 1, std::string(1500, 'd'));
  return writer;
}

TEST(LogReplayTest, ReadsOverSegments) {
  Writer writer = several_segments();
  ASSERT_GT(writer.segments().size(), 3u);
  writer.segments().push_back(std::string(kSegment, '\0'));  // made in advance
  const Result result = replay(writer.segments(), 60);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.contents.entries.size(), 60u);
  EXPECT_EQ(result.tail.segment, writer.segments().size() - 1);
}

TEST(LogReplayTest, DamageInAnEarlierSegmentIsFound) {
  const Writer writer = several_segments();
  for (size_t record = 0; record + 1 < writer.records(); record++) {
    Writer copy = writer;
    const auto [segment, offset] = copy.start(record);
    copy.segments()[segment][offset + 200] ^= 1;
    EXPECT_TRUE(absl::IsDataLoss(replay(copy.segments()).status)) << record;
    copy = writer;
    copy.segments()[segment].replace(offset, kSegment - offset, kSegment - offset, '\0');
    const bool last_segment = segment + 1 == copy.segments().size();
    EXPECT_EQ(absl::IsDataLoss(replay(copy.segments()).status), !last_segment) << record;
    EXPECT_TRUE(absl::IsDataLoss(replay(copy.segments(), 60).status)) << record;
  }
}

TEST(LogReplayTest, ASegmentsHeaderIsTornWithItsFirstRecordOrDamaged) {
  Writer writer = several_segments();
  const size_t last = writer.segments().size() - 1;
  // Later records are there: damage.
  std::vector<std::string> segments = writer.segments();
  segments[last][3] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(replay(segments).status));
  segments = writer.segments();
  segments[1][3] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(replay(segments).status));
  // Only a part of the first write is there: torn.
  segments = writer.segments();
  segments[last].replace(300, std::string::npos, kSegment - 300, '\0');
  segments[last][3] ^= 1;
  const Result result = replay(segments);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_TRUE(result.torn);
}

TEST(LogReplayTest, ContentThatLooksLikeARecordIsNoSuccessor) {
  // A client cannot know the salt; with another one it builds what would be a later record, and has
  // it logged.
  Writer forged(kSalt + 1);
  for (uint64_t i = 1; i <= 8; i++) forged.append_one(i, 1, "forged");
  Writer writer;
  writer.append_one(1, 1, "a");
  writer.append_one(2, 1, forged.segments()[0].substr(kSector - 64 - 32, 6000));
  const auto [segment, offset] = writer.start(1);
  writer.segments()[segment][offset + 20] ^= 1;
  const Result result = replay(writer.segments());
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.contents.entries.size(), 1u);
}

TEST(LogReplayTest, ItemsThatMakeNoSenseAreRefused) {
  std::vector<std::string> bad(6);
  append_truncate_item(5, &bad[0]);
  append_truncate_item(0, &bad[1]);
  append_entries_item(3, 1, &bad[2]);
  append_entry(1, 1, "12345678", &bad[2]);
  append_entries_item(1, 2, &bad[3]);
  append_entry(1, 1, "12345678", &bad[3]);
  bad[4] = std::string(8, '\x7f');
  append_entries_item(1, 1, &bad[5]);
  append_entry(1, 1, "1234567", &bad[5]);
  for (const std::string& items : bad) {
    Writer writer;
    writer.append(items);
    EXPECT_TRUE(absl::IsDataLoss(replay(writer.segments()).status));
  }
}

TEST(LogReplayTest, TheTermNeverGoesBack) {
  Writer writer;
  std::string items;
  append_term_vote_item(5, 1, &items);
  append_term_vote_item(4, 1, &items);
  writer.append(items);
  EXPECT_TRUE(absl::IsDataLoss(replay(writer.segments()).status));
}

TEST(MarkTest, RoundTripAndRefusal) {
  std::string mark = encode_mark(kSalt, 77);
  EXPECT_EQ(decode_mark(kSalt, mark), std::optional<uint64_t>(77));
  EXPECT_EQ(decode_mark(kSalt + 1, mark), std::nullopt);
  mark[9] ^= 1;
  EXPECT_EQ(decode_mark(kSalt, mark), std::nullopt);
  EXPECT_EQ(decode_mark(kSalt, ""), std::nullopt);
}

}  // namespace
}  // namespace xce::consensus
