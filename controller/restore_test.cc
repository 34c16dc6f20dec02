// A backup becomes a new cluster, or is refused.
#include "controller/restore.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "controller/consensus/backup_format.h"
#include "controller/consensus/snapshot_format.h"
#include "controller/history/store.h"
#include "controller/service/state_codec.h"
#include "controller/state/state_testutil.h"

namespace xce {
namespace {

namespace fs = std::filesystem;

class RestoreTest : public testing::Test {
 protected:
  RestoreTest() {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string pattern = std::string(base != nullptr ? base : "/tmp") + "/restore-XXXXXX";
    dir_ = ::mkdtemp(pattern.data());
    cluster_.running();
    cluster_.run(state::alice(), state::a_job());
    write(backup());
  }
  ~RestoreTest() override { fs::remove_all(dir_); }

  // As the primary makes it.
  std::string backup() {
    std::string state, snapshot;
    EXPECT_TRUE(service::save_state(cluster_.state, [&](std::string_view bytes) {
      state.append(bytes);
      return true;
    }));
    consensus::SnapshotMeta meta;
    meta.index = meta.conf_index = cluster_.state.applied();
    meta.term = 3;
    meta.conf = std::string(16, '\0');
    meta.cluster = 5;
    uint32_t chain = 0;
    consensus::append_chunk(consensus::ChunkKind::kHeader, encode_snapshot_meta(meta), &chain,
                            &snapshot);
    consensus::append_chunk(consensus::ChunkKind::kData, state, &chain, &snapshot);
    const uint64_t n = state.size();
    consensus::append_chunk(consensus::ChunkKind::kTrailer,
                            {reinterpret_cast<const char*>(&n), sizeof n}, &chain, &snapshot);
    consensus::BackupHeader header;
    header.cluster = 5;
    header.index = meta.index;
    header.time_ms = 1000;
    header.snapshot_bytes = snapshot.size();
    header.history_bytes = history_.size();
    return encode_backup_header(header) + snapshot + history_;
  }
  // Puts one ended job into the backup's history.
  void add_history() {
    auto store = history::Store::open(dir_ + "/old-history", 0);
    ASSERT_TRUE(store.ok()) << store.status();
    Job job = cluster_.job(1);
    job.state = JobState::kCompleted;
    job.end_ms = 5;
    ASSERT_TRUE((*store)->write({{1, std::make_shared<const Job>(job)}}, 1).ok());
    const std::atomic<bool> stop{false};
    ASSERT_TRUE((*store)->export_to(dir_ + "/pack", 0, stop).ok());
    std::ifstream in(dir_ + "/pack", std::ios::binary);
    history_.assign(std::istreambuf_iterator<char>(in), {});
  }
  void write(const std::string& bytes) {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string file() const { return dir_ + "/backup"; }
  absl::StatusOr<std::string> run() {
    consensus::Options options;
    options.self = 1;
    options.peers = {{1, "127.0.0.1", 9990}};
    options.data_dir = dir_ + "/data";
    return restore({file(), false}, options);
  }
  void expect_refused(const std::string& words) {
    const auto out = run();
    ASSERT_FALSE(out.ok());
    EXPECT_NE(out.status().ToString().find(words), std::string::npos) << out.status();
    EXPECT_NE(out.status().ToString().find(file()), std::string::npos) << out.status();
    EXPECT_FALSE(fs::exists(dir_ + "/data"));
  }

  state::Cluster cluster_;
  std::string dir_, history_;
};

TEST_F(RestoreTest, TheHistoryComesWithIt) {
  add_history();
  write(backup());
  const auto out = run();
  ASSERT_TRUE(out.ok()) << out.status();
  const auto store = history::Store::open(dir_ + "/data/history", 0);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_GT((*store)->written(), cluster_.state.applied());  // as far as the new state
  const auto page = (*store)->find({});
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->jobs.size(), 1u);
  EXPECT_EQ(page->jobs[0].id, 1u);
}

TEST_F(RestoreTest, ADamagedHistoryIsRefused) {
  add_history();
  std::string bad = backup();
  const size_t at = bad.size() - history_.size() + 30;
  bad[at] = static_cast<char>(bad[at] ^ 1);
  write(bad);
  const auto out = run();
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.status().ToString().find("history of ended jobs cannot be restored"),
            std::string::npos)
      << out.status();
}

TEST_F(RestoreTest, MakesADirectoryOnceAndLeavesAFullOneAlone) {
  const auto out = run();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_NE(out->find("1 jobs wait (all held"), std::string::npos) << *out;
  EXPECT_TRUE(fs::exists(dir_ + "/data/identity"));
  const auto again = run();
  EXPECT_NE(again.status().ToString().find("is not empty"), std::string::npos) << again.status();
}

TEST_F(RestoreTest, WhatIsDamagedForeignOrNewerIsRefusedAndNothingIsMade) {
  const std::string good = backup();
  write("#!/bin/sh\n");
  expect_refused("no backup");
  write(good.substr(0, good.size() - 9));
  expect_refused("cut short");
  std::string bad = good;
  bad[20] = static_cast<char>(bad[20] ^ 1);
  write(bad);
  expect_refused("header is damaged");
  for (size_t at = consensus::kBackupHeaderSize; at < good.size(); at += 37) {
    bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write(bad);
    EXPECT_FALSE(run().ok()) << at;
    EXPECT_FALSE(fs::exists(dir_ + "/data"));
  }
  fs::remove(file());
  expect_refused("open");
}

}  // namespace
}  // namespace xce
