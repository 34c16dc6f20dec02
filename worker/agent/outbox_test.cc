// The outbox over crashes: what a commit has said is on disk is found again, whatever was torn
// behind it.
#include "worker/agent/outbox.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "worker/shepherd/process_tree.h"

namespace xce::worker {
namespace {

class OutboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string pattern = std::string(base == nullptr ? "/tmp" : base) + "/outbox.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    path_ = dir_ + "/outbox";
  }
  void TearDown() override { std::system(("rm -rf '" + dir_ + "'").c_str()); }

  std::unique_ptr<Outbox> open(size_t compact = 4 << 20) {
    auto outbox = Outbox::open(path_, compact);
    EXPECT_TRUE(outbox.ok()) << outbox.status();
    return outbox.ok() ? std::move(*outbox) : nullptr;
  }
  static Report report(NotifyKind kind, JobId job) {
    Report r;
    r.kind = kind;
    r.job = job;
    r.attempt = 1;
    r.message = "m" + std::to_string(job);
    return r;
  }
  static std::string seqs(const Outbox& outbox, uint64_t after = 0) {
    std::string text;
    for (const Report& r : outbox.pending(after, 1000))
      text += std::to_string(r.outbox_seq) + ":" + std::to_string(r.job) + " ";
    return text;
  }
  size_t file_size() const {
    struct stat st {};
    stat(path_.c_str(), &st);
    return static_cast<size_t>(st.st_size);
  }

  std::string dir_, path_;
};

TEST_F(OutboxTest, NothingIsPendingBeforeItIsOnDisk) {
  auto outbox = open();
  outbox->add_report(report(NotifyKind::kStart, 17));
  EXPECT_EQ(seqs(*outbox), "");
  ASSERT_TRUE(outbox->commit().ok());
  EXPECT_EQ(seqs(*outbox), "1:17 ");
}

TEST_F(OutboxTest, NumbersRiseByOneOverRestarts) {
  for (JobId job = 1; job <= 3; ++job) {
    auto outbox = open();
    outbox->add_report(report(NotifyKind::kStart, job));
    ASSERT_TRUE(outbox->commit().ok());
  }
  EXPECT_EQ(seqs(*open()), "1:1 2:2 3:3 ");
}

TEST_F(OutboxTest, ConfirmedReportsGoAndStayGone) {
  {
    auto outbox = open();
    outbox->add_report(report(NotifyKind::kStart, 1));
    outbox->add_report(report(NotifyKind::kFinish, 1));
    outbox->add_report(report(NotifyKind::kFinish, 2));
    ASSERT_TRUE(outbox->commit().ok());
    EXPECT_TRUE(outbox->confirm(1).empty());
    EXPECT_EQ(outbox->confirm(2), (std::vector<Key>{{1, 1}}));
    EXPECT_TRUE(outbox->confirm(1).empty());
    ASSERT_TRUE(outbox->commit().ok());
  }
  auto outbox = open();
  EXPECT_EQ(seqs(*outbox), "3:2 ");
  EXPECT_EQ(outbox->confirmed(), 2u);
  outbox->confirm(3);
  outbox->add_report(report(NotifyKind::kStart, 3));
  ASSERT_TRUE(outbox->commit().ok());
  EXPECT_EQ(seqs(*outbox), "4:3 ");
}

TEST_F(OutboxTest, AConfirmationOfWhatWasNeverWrittenDropsNothing) {
  auto outbox = open();
  outbox->add_report(report(NotifyKind::kStart, 1));
  outbox->confirm(99);
  ASSERT_TRUE(outbox->commit().ok());
  EXPECT_EQ(seqs(*outbox), "1:1 ");
}

TEST_F(OutboxTest, LaunchesAreKnownUntilTheirEndIsReported) {
  {
    auto outbox = open();
    outbox->add_launch({1, 1}, "boot");
    outbox->add_launch({2, 1}, "boot");
    outbox->add_report(report(NotifyKind::kStart, 1));
    outbox->add_report(report(NotifyKind::kStop, 1));
    outbox->add_report(report(NotifyKind::kFail, 2));
    ASSERT_TRUE(outbox->commit().ok());
  }
  auto outbox = open();
  const auto launches = outbox->launches();
  ASSERT_EQ(launches.size(), 1u);
  const auto& state = launches.at({1, 1});
  EXPECT_TRUE(state.start_reported);
  EXPECT_TRUE(state.suspend_reported);
  EXPECT_EQ(state.boot_id, "boot");
  ASSERT_EQ(outbox->unconfirmed_finals().size(), 1u);
  EXPECT_EQ(outbox->unconfirmed_finals()[0].job, 2u);
}

// A crash at any byte of the second commit: the first one's reports are there, and the numbers go
// on without a gap.
TEST_F(OutboxTest, TornTailAtEveryByte) {
  size_t first = 0;
  {
    auto outbox = open();
    outbox->add_launch({1, 1}, "boot");
    outbox->add_report(report(NotifyKind::kStart, 1));
    ASSERT_TRUE(outbox->commit().ok());
    first = file_size();
    outbox->add_report(report(NotifyKind::kFinish, 1));
    outbox->confirm(1);
    ASSERT_TRUE(outbox->commit().ok());
  }
  const std::string whole = read_small_file(path_);
  for (size_t n = first; n <= whole.size(); ++n) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << whole.substr(0, n);
    auto outbox = open();
    ASSERT_NE(outbox, nullptr);
    const uint64_t last = outbox->last_seq();
    EXPECT_TRUE(last == 1 || last == 2) << n;
    EXPECT_EQ(outbox->launches().size(), last == 1 ? 1u : 0u) << n;
    outbox->add_report(report(NotifyKind::kStart, 5));
    ASSERT_TRUE(outbox->commit().ok());
    EXPECT_EQ(outbox->last_seq(), last + 1);
    EXPECT_EQ(seqs(*open(), last), std::to_string(last + 1) + ":5 ") << n;
  }
}

TEST_F(OutboxTest, DamageInTheMiddleIsRefused) {
  {
    auto outbox = open();
    for (JobId job = 1; job <= 3; ++job) outbox->add_report(report(NotifyKind::kStart, job));
    ASSERT_TRUE(outbox->commit().ok());
  }
  std::string bytes = read_small_file(path_);
  bytes[20] ^= 1;
  std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  auto outbox = Outbox::open(path_);
  ASSERT_FALSE(outbox.ok());
  EXPECT_NE(std::string(outbox.status().message()).find("damaged"), std::string::npos);
}

TEST_F(OutboxTest, CompactionKeepsWhatMatters) {
  {
    auto outbox = open(2000);
    outbox->add_launch({1000, 1}, "boot");
    for (JobId job = 1; job <= 200; ++job) {
      outbox->add_report(report(NotifyKind::kFinish, job));
      ASSERT_TRUE(outbox->commit().ok());
      if (job < 199) outbox->confirm(job);
    }
    EXPECT_LT(file_size(), 4000u);
  }
  auto outbox = open();
  EXPECT_EQ(seqs(*outbox), "199:199 200:200 ");
  EXPECT_EQ(outbox->launches().size(), 1u);
}

TEST_F(OutboxTest, AWriteThatFailsIsMadeGoodLater) {
  auto outbox = open();
  outbox->add_report(report(NotifyKind::kStart, 1));
  ASSERT_TRUE(outbox->commit().ok());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit tight{file_size() + 10, old.rlim_max};  // the next record is torn in its middle
  setrlimit(RLIMIT_FSIZE, &tight);
  outbox->add_report(report(NotifyKind::kFinish, 1));
  EXPECT_FALSE(outbox->commit().ok());
  EXPECT_FALSE(outbox->commit().ok());
  EXPECT_EQ(seqs(*outbox), "1:1 ");
  setrlimit(RLIMIT_FSIZE, &old);
  ASSERT_TRUE(outbox->commit().ok());
  EXPECT_EQ(seqs(*outbox), "1:1 2:1 ");
  outbox.reset();
  EXPECT_EQ(seqs(*open()), "1:1 2:1 ");
}

// A file system of its own that is soon full; false where none can be mounted.
bool mount_small(const std::string& dir, const char* size) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", dir.c_str(), "tmpfs", 0, size) == 0;
}

TEST_F(OutboxTest, WhatMustBeReportedOfAFullDiskHasRoomSetAside) {
  if (!mount_small(dir_, "size=8m")) GTEST_SKIP() << "no file system can be mounted here";
  auto outbox = open();
  outbox->keep_reserve();
  outbox->add_report(report(NotifyKind::kStart, 1));
  ASSERT_TRUE(outbox->commit().ok());
  std::system(("cat /dev/zero > " + dir_ + "/others 2>/dev/null").c_str());
  Report large = report(NotifyKind::kFail, 1);
  large.message = std::string(20000, 'm');  // more than the last page has left
  outbox->add_report(large);
  EXPECT_TRUE(outbox->commit().ok());
  EXPECT_EQ(seqs(*outbox), "1:1 2:1 ");
  outbox.reset();
  EXPECT_EQ(seqs(*open()), "1:1 2:1 ");
  umount2(dir_.c_str(), MNT_DETACH);
}

TEST_F(OutboxTest, NumbersFollowAControllerThatKnowsMore) {
  auto outbox = open();  // this host's data directory was lost
  outbox->confirm(40);
  outbox->rebase(40);
  outbox->add_report(report(NotifyKind::kStart, 1));
  ASSERT_TRUE(outbox->commit().ok());
  EXPECT_EQ(seqs(*outbox), "41:1 ");
  outbox.reset();
  EXPECT_EQ(seqs(*open()), "41:1 ");
}

TEST_F(OutboxTest, NumbersFollowAControllerThatKnowsLess) {
  auto outbox = open();
  for (JobId job = 1; job <= 3; ++job) outbox->add_report(report(NotifyKind::kStart, job));
  ASSERT_TRUE(outbox->commit().ok());
  outbox->confirm(2);
  outbox->rebase(0);  // the controllers were restored from nothing
  ASSERT_TRUE(outbox->commit().ok());
  EXPECT_EQ(seqs(*outbox), "1:3 ");
}

TEST_F(OutboxTest, RebaseToWhatIsKnownChangesNothing) {
  auto outbox = open();
  for (JobId job = 1; job <= 3; ++job) outbox->add_report(report(NotifyKind::kStart, job));
  ASSERT_TRUE(outbox->commit().ok());
  outbox->confirm(1);
  outbox->rebase(1);
  EXPECT_EQ(seqs(*outbox), "2:2 3:3 ");
}

}  // namespace
}  // namespace xce::worker
