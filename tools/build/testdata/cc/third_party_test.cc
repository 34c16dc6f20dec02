// Every system library that third_party/ wraps compiles, links and runs.
#include <benchmark/benchmark.h>
#include <histedit.h>
#include <openssl/ssl.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>
#include <spdlog/spdlog.h>
#include <toml++/toml.h>
#include <uv.h>
#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/random/random.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/build/testdata/cc/raft_version.h"

namespace {

using ::testing::HasSubstr;

TEST(ThirdParty, Abseil) {
  absl::StatusOr<int> bad = absl::NotFoundError(absl::StrCat("no job ", 7));
  EXPECT_THAT(bad.status().ToString(), HasSubstr("no job 7"));
  absl::flat_hash_map<std::string, int> map = {{"a", 1}};
  absl::btree_map<int, int> tree = {{1, 2}};
  absl::BitGen gen;
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  EXPECT_EQ(absl::StrFormat("%d%d", map["a"], tree[1]), "12");
  EXPECT_LT(absl::Uniform(gen, 0, 10), 10);
  EXPECT_GT(absl::Now(), absl::UnixEpoch());
  EXPECT_EQ(absl::MakeSpan(bad.status().ok() ? "" : "x", 1).size(), 1u);
  EXPECT_EQ(absl::Cord("cord").size(), 4u);
}

TEST(ThirdParty, OpenSslUvRaft) {
  SSL_CTX* ctx = SSL_CTX_new(TLS_method());
  ASSERT_NE(ctx, nullptr);
  SSL_CTX_free(ctx);
  uv_loop_t loop;
  ASSERT_EQ(uv_loop_init(&loop), 0);
  EXPECT_EQ(uv_loop_close(&loop), 0);
  EXPECT_EQ(raft_version(), 22);
}

TEST(ThirdParty, Formats) {
  EXPECT_EQ(nlohmann::json::parse(R"({"a":1})")["a"], 1);
  EXPECT_EQ(YAML::Load("a: 1")["a"].as<int>(), 1);
  EXPECT_EQ(toml::parse("a = 1")["a"].value_or(0), 1);
  spdlog::info("spdlog with fmt {}", 9);
  CLI::App app("x");
  EXPECT_NE(app.help(), "");
  HistEvent event;
  History* history = history_init();
  EXPECT_EQ(::history(history, &event, H_SETSIZE, 10), 0);
  history_end(history);
}

TEST(ThirdParty, RocksDbBenchmark) {
  rocksdb::WriteBatch batch;
  EXPECT_TRUE(batch.Put("key", "value").ok());
  EXPECT_EQ(batch.Count(), 1u);
  benchmark::Counter counter(2);
  EXPECT_EQ(counter.value, 2);
}

}  // namespace
