// As many waiting jobs and as many of history as a cluster is promised to hold: what they take in
// memory, and how long a restart takes that has to read them. XCE_SCALE says how many of each (CI:
// 20,000; scale_test_full: 1,000,000).
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "controller/history/store.h"
#include "controller/service/state_codec.h"
#include "controller/service/testing/submissions.h"

namespace xce::service {
namespace {

using Clock = std::chrono::steady_clock;

double since_ms(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double heap_bytes() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

uint64_t scale() {
  const char* const text = std::getenv("XCE_SCALE");
  return text == nullptr ? 20000 : std::strtoull(text, nullptr, 10);
}

TEST(Scale, AWaitingJobTakesAKilobyteAtMostAndARestartSeconds) {
  const uint64_t jobs = scale();
  std::string bytes;
  std::string fingerprint;
  {
    state::State state;
    const double before = heap_bytes();
    testing::submit_many(&state, 0, jobs);
    const double each = (heap_bytes() - before) / static_cast<double>(jobs);
    std::printf("%llu waiting jobs: %.0f bytes each\n", static_cast<unsigned long long>(jobs),
                each);
    EXPECT_LE(each, 1024);
    const auto begin = Clock::now();
    ASSERT_TRUE(save_state(state, [&](std::string_view more) {
      bytes.append(more);
      return true;
    }));
    std::printf("saved in %.0f ms, %.0f bytes each\n", since_ms(begin),
                static_cast<double>(bytes.size()) / static_cast<double>(jobs));
    fingerprint = state.fingerprint();
  }
  const auto begin = Clock::now();
  size_t at = 0;
  const auto loaded = load_state([&](char* to, size_t n) {
    n = std::min(n, bytes.size() - at);
    std::memcpy(to, bytes.data() + at, n);
    at += n;
    return n;
  });
  const double took_ms = since_ms(begin);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  std::printf("loaded in %.0f ms\n", took_ms);
  // A busy machine gets ten times what an idle one needs.
  EXPECT_LT(took_ms, 2000 + static_cast<double>(jobs) / 50);
  EXPECT_EQ((*loaded)->fingerprint(), fingerprint);
}

TEST(Scale, HistoryOpensAndAnswersAtOnceHoweverLongItIs) {
  const uint64_t jobs = scale();
  const std::string directory = ::testing::TempDir() + "/scale-history";
  {
    auto store = history::Store::open(directory, 0);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto begin = Clock::now();
    for (uint64_t id = 1; id <= jobs;) {
      std::vector<history::Row> rows;
      for (int i = 0; i < 500 && id <= jobs; ++i, ++id)
        rows.push_back({id, std::make_shared<const Job>(testing::ended(id))});
      ASSERT_TRUE((*store)->write(rows, id).ok());
    }
    std::printf("%llu ended jobs written in %.0f ms\n", static_cast<unsigned long long>(jobs),
                since_ms(begin));
  }
  auto begin = Clock::now();
  auto store = history::Store::open(directory, 0);
  ASSERT_TRUE(store.ok()) << store.status();
  const double open_ms = since_ms(begin);
  history::Query query;
  query.filter.descending = true;
  begin = Clock::now();
  auto page = (*store)->find(query);
  const double page_ms = since_ms(begin);
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->jobs.size(), query.max_jobs);
  EXPECT_EQ(page->jobs[0].id, jobs);
  query.filter.name = "of that name there is none";
  begin = Clock::now();
  uint64_t calls = 0;
  do {
    page = (*store)->find(query);
    ASSERT_TRUE(page.ok());
    query.filter.after_id = page->next_after_id;
    ++calls;
  } while (page->next_after_id != 0);
  std::printf(
      "opened in %.0f ms; newest %zu in %.1f ms; all looked through in %.0f ms, %llu calls\n",
      open_ms, query.max_jobs, page_ms, since_ms(begin), static_cast<unsigned long long>(calls));
  EXPECT_LT(open_ms, 5000);
  EXPECT_LT(page_ms, 1000);
  EXPECT_EQ(calls, (jobs - 1) / 100000 + 1);
}

}  // namespace
}  // namespace xce::service
