#include "e2e/soak/footprint.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace xce::e2e {
namespace {

constexpr FlatBounds kBounds{1000, 2, 5, 5};

class Flat : public ::testing::Test {
 protected:
  // A life of `seconds`, a sample each, that grows by so much each second.
  void live(pid_t pid, int seconds, const Footprint& slope, size_t jobs_a_second = 0) {
    for (int i = 0; i < seconds; ++i, ++now_s_) {
      const Footprint now = {50000 + slope.memory_kb * i, 20 + slope.descriptors * i,
                             8 + slope.threads * i};
      flat_.sample("worker 1", pid, now_s_, now, jobs_ += jobs_a_second);
    }
  }
  Flatness::Row row() const { return flat_.rows().at(0); }

  Flatness flat_{kBounds};
  double now_s_ = 0;
  size_t jobs_ = 0;
};

TEST_F(Flat, StandingStillIsFlatOverRestarts) {
  live(1, 60, {});
  live(2, 60, {});
  EXPECT_EQ(row().wrong, "");
  EXPECT_EQ(row().lives, 2);
  EXPECT_EQ(row().judged, 2);
}

TEST_F(Flat, ALeakInOneLifeIsNamed) {
  live(1, 60, {});
  live(2, 60, {0, 1, 0});
  live(3, 60, {});
  EXPECT_NE(row().wrong.find("descriptors grew from 29 to"), std::string::npos) << row().wrong;
  EXPECT_NE(row().wrong.find("(pid 2)"), std::string::npos) << row().wrong;
}

TEST_F(Flat, MemoryMayGrowWithTheJobsOnly) {
  live(1, 60, {100, 0, 0}, 60);
  EXPECT_EQ(row().wrong, "");
  live(2, 60, {100, 0, 0}, 1);
  EXPECT_NE(row().wrong.find("memory (KiB) grew"), std::string::npos) << row().wrong;
}

TEST_F(Flat, ThreadsCount) {
  live(1, 60, {0, 0, 1});
  EXPECT_NE(row().wrong.find("threads grew"), std::string::npos) << row().wrong;
}

TEST_F(Flat, APeakInBetweenIsNoLeak) {
  live(1, 30, {});
  flat_.sample("worker 1", 1, now_s_++, {90000, 90, 90}, 0);
  live(1, 30, {});
  EXPECT_EQ(row().wrong, "");
}

TEST_F(Flat, ShortLivesTellNothing) {
  live(1, 12, {1000, 10, 10});
  EXPECT_EQ(row().judged, 0);
  EXPECT_EQ(row().wrong, "");
}

TEST(FootprintOfAProcess, IsItsOwn) {
  const auto own = footprint(getpid());
  ASSERT_TRUE(own.has_value());
  EXPECT_GT(own->memory_kb, 500);
  EXPECT_GE(own->descriptors, 3);
  EXPECT_GE(own->threads, 1);
  EXPECT_FALSE(footprint(-1).has_value());
}

}  // namespace
}  // namespace xce::e2e
