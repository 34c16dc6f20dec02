// Peer messages: round trips, and what a broken or hostile peer may not do.
#include "controller/consensus/peer_codec.h"

#include <gtest/gtest.h>

#include <random>

#include "libxce/net/frame.h"

namespace xce::consensus {
namespace {

std::vector<uint64_t> payload_of(const std::string& frame) {
  net::FrameDecoder decoder(net::kMaxFrame);
  decoder.feed(frame);
  auto payload = decoder.next();
  EXPECT_TRUE(payload.ok() && payload->has_value());
  return **payload;
}

PeerMessage round_trip(const xce_core_message& message) {
  std::string frame;
  append_raft_frame(message, &frame);
  PeerMessage out;
  const absl::Status status = decode_peer_message(payload_of(frame), &out);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(out.kind, PeerMessage::kRaft);
  EXPECT_EQ(out.raft.type, message.type);
  EXPECT_EQ(out.raft.term, message.term);
  EXPECT_EQ(out.raft.version, message.version);
  return out;
}

TEST(PeerCodecTest, RaftMessagesRoundTrip) {
  xce_core_message m{};
  m.term = 9;
  m.version = 2;
  m.last_log_index = 77;
  m.last_log_term = 8;
  m.type = XCE_MSG_REQUEST_VOTE;
  m.disrupt_leader = true;
  PeerMessage out = round_trip(m);
  EXPECT_EQ(out.raft.last_log_index, 77u);
  EXPECT_EQ(out.raft.last_log_term, 8u);
  EXPECT_TRUE(out.raft.disrupt_leader);
  EXPECT_FALSE(out.raft.pre_vote);
  m.type = XCE_MSG_REQUEST_VOTE_RESULT;
  m.vote_granted = true;
  m.pre_vote = true;
  out = round_trip(m);
  EXPECT_TRUE(out.raft.vote_granted);
  EXPECT_TRUE(out.raft.pre_vote);
  m.type = XCE_MSG_APPEND_ENTRIES_RESULT;
  m.rejected = 5;
  m.capacity = 65535;
  out = round_trip(m);
  EXPECT_EQ(out.raft.rejected, 5u);
  EXPECT_EQ(out.raft.last_log_index, 77u);
  EXPECT_EQ(out.raft.capacity, 65535);
  m.type = XCE_MSG_TIMEOUT_NOW;
  out = round_trip(m);
  EXPECT_EQ(out.raft.last_log_term, 8u);
}

TEST(PeerCodecTest, EntriesRoundTrip) {
  const std::string a = "12345678";
  const std::string b(kMaxEntryBytes, 'b');
  const xce_core_entry entries[] = {{8, XCE_ENTRY_COMMAND, a.data(), a.size()},
                                    {9, XCE_ENTRY_BARRIER, b.data(), b.size()}};
  xce_core_message m{};
  m.type = XCE_MSG_APPEND_ENTRIES;
  m.term = 9;
  m.prev_log_index = 3;
  m.prev_log_term = 8;
  m.leader_commit = 2;
  m.entries = entries;
  m.n_entries = 2;
  const PeerMessage out = round_trip(m);
  ASSERT_EQ(out.raft.n_entries, 2u);
  EXPECT_EQ(std::string(static_cast<const char*>(out.raft.entries[0].data), 8), a);
  EXPECT_EQ(out.raft.entries[1].len, b.size());
  EXPECT_EQ(out.raft.entries[1].type, static_cast<unsigned>(XCE_ENTRY_BARRIER));
  EXPECT_EQ(out.raft.prev_log_index, 3u);
  EXPECT_EQ(out.raft.leader_commit, 2u);
}

TEST(PeerCodecTest, HelloAndSuspectRoundTrip) {
  Hello hello;
  hello.node = 3;
  hello.cluster = 4;
  hello.instance = {5, 6};
  hello.boot = 7;
  hello.advertise = "host:1";
  hello.refused = "because";
  std::string frame;
  append_hello_frame(hello, &frame);
  PeerMessage out;
  ASSERT_TRUE(decode_peer_message(payload_of(frame), &out).ok());
  EXPECT_EQ(out.kind, PeerMessage::kHello);
  EXPECT_EQ(out.hello.instance, hello.instance);
  EXPECT_EQ(out.hello.advertise, "host:1");
  EXPECT_EQ(out.hello.refused, "because");
  EXPECT_TRUE(out.hello.serving);
  frame.clear();
  append_suspect_frame({1, 2, 3, 4, 5}, &frame);
  ASSERT_TRUE(decode_peer_message(payload_of(frame), &out).ok());
  EXPECT_EQ(out.kind, PeerMessage::kSuspect);
  EXPECT_EQ(out.suspect.last_index, 4u);
  EXPECT_EQ(out.suspect.applied, 5u);
}

TEST(PeerCodecTest, BadEntriesAreRefused) {
  const std::string data(16, 'd');
  const xce_core_entry good = {1, XCE_ENTRY_COMMAND, data.data(), 16};
  std::vector<xce_core_entry> bad(5, good);
  bad[0].len = 15;
  bad[1].len = 0;
  bad[2].type = 9;
  bad[3].term = 0;
  bad[4].term = 2;  // beyond the message's
  for (const xce_core_entry& entry : bad) {
    xce_core_message m{};
    m.type = XCE_MSG_APPEND_ENTRIES;
    m.term = 1;
    m.entries = &entry;
    m.n_entries = 1;
    std::string frame;
    append_raft_frame(m, &frame);
    PeerMessage out;
    EXPECT_TRUE(absl::IsInvalidArgument(decode_peer_message(payload_of(frame), &out)));
  }
}

// Neither crash nor endless work, whatever the bytes.
TEST(PeerCodecTest, GarbageIsRefusedOrHarmless) {
  std::mt19937_64 random(20240607);
  const std::string data(256, 'd');
  std::vector<xce_core_entry> entries(20, {1, XCE_ENTRY_COMMAND, data.data(), data.size()});
  xce_core_message m{};
  m.type = XCE_MSG_APPEND_ENTRIES;
  m.term = 1;
  m.entries = entries.data();
  m.n_entries = 20;
  std::string frame;
  append_raft_frame(m, &frame);
  const std::vector<uint64_t> valid = payload_of(frame);
  int refused = 0;
  for (int round = 0; round < 20000; round++) {
    std::vector<uint64_t> words = valid;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; i++)
      words[random() % std::min<size_t>(words.size(), 80)] ^= uint64_t{1} << random() % 64;
    if (random() % 4 == 0) words.resize(1 + random() % words.size());
    PeerMessage out;
    const absl::Status status = decode_peer_message(words, &out);
    refused += !status.ok();
    if (status.ok()) {
      for (const xce_core_entry& entry : out.entries) ASSERT_EQ(entry.len % 8, 0u);
    }
  }
  EXPECT_GT(refused, 1000);
  for (int round = 0; round < 20000; round++) {
    std::vector<uint64_t> words(1 + random() % 40);
    for (uint64_t& word : words) word = random() >> random() % 64;
    PeerMessage out;
    (void)decode_peer_message(words, &out);
  }
}

}  // namespace
}  // namespace xce::consensus
