// The history's threads: what is asked, queued and made safe, and what happens when the disk fails.
#include "controller/history/history.h"

#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <future>
#include <optional>

#include "controller/history/history_testutil.h"

namespace xce::history {
namespace {

// The consensus thread's loop: what was posted runs in run_until().
class Loop {
 public:
  void post(std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    works_.push_back(std::move(work));
    changed_.notify_one();
  }
  // Runs what is posted until `done` holds; false: not within 20 s.
  bool run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      std::unique_lock<std::mutex> lock(mutex_);
      if (std::chrono::steady_clock::now() > deadline) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(2), [this] { return !works_.empty(); });
      std::deque<std::function<void()>> works;
      works.swap(works_);
      lock.unlock();
      for (const auto& work : works) work();
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> works_;
};

class HistoryTest : public testing::Test {
 protected:
  void open() {
    history_.reset();
    history_ = std::make_unique<History>(
        options_, [this](std::function<void()> work) { loop_.post(std::move(work)); },
        [this](absl::Status status) { failure_ = std::move(status); }, [this] { ++drained_; });
    ASSERT_TRUE(history_->open(dir_ / "history").ok());
  }
  // Holds the writer up until release().
  void hold() {
    held_ = std::make_shared<std::promise<void>>();
    options_.before_write = [gate = held_->get_future().share()] { gate.wait(); };
  }
  void release() { held_->set_value(); }
  std::string find(const JobFilter& filter = {}, size_t max_jobs = 100) {
    Query query;
    query.filter = filter;
    query.max_jobs = max_jobs;
    std::optional<absl::StatusOr<Page>> page;
    history_->find(query, [&](absl::StatusOr<Page> got) { page = std::move(got); });
    EXPECT_TRUE(loop_.run_until([&] { return page.has_value(); }));
    return page ? ids_of(*page) : "no answer";
  }

  TempDir dir_;
  Loop loop_;
  Options options_;
  std::shared_ptr<std::promise<void>> held_;
  absl::Status failure_;
  int drained_ = 0;
  std::unique_ptr<History> history_;
};

TEST_F(HistoryTest, WhatIsAddedIsFoundAtOnce) {
  hold();
  open();
  history_->add(10, {ended_job(3), ended_job(5)});
  history_->add(11, {ended_job(4)});
  EXPECT_EQ(find(), "3 4 5 next 0");  // though nothing is written
  EXPECT_EQ(history_->written(), 0u);
  EXPECT_EQ(find({}, 2), "3 4 next 4");
  JobFilter filter;
  filter.after_id = 5;
  filter.descending = true;
  EXPECT_EQ(find(filter), "4 3 next 0");
  filter = JobFilter();
  filter.ids = {5, 6};
  EXPECT_EQ(find(filter), "5 next 0");
  filter = JobFilter();
  filter.user = "bob";
  EXPECT_EQ(find(filter), "4 next 0");
  release();
  ASSERT_TRUE(loop_.run_until([&] { return history_->written() == 11; }));
  EXPECT_EQ(find(), "3 4 5 next 0");
}

TEST_F(HistoryTest, KeptOnlyOnceItIsSafe) {
  std::promise<void> gate;
  std::atomic<bool> syncing{false};
  options_.before_sync = [&syncing, future = gate.get_future().share()] {
    syncing = true;
    future.wait();
  };
  open();
  history_->add(10, {ended_job(1)});
  ASSERT_TRUE(loop_.run_until([&] { return history_->written() == 10; }));
  EXPECT_EQ(history_->kept(), 0u);
  history_->keep(12);
  ASSERT_TRUE(loop_.run_until([&] { return syncing.load(); }));
  EXPECT_EQ(history_->kept(), 0u);
  gate.set_value();
  ASSERT_TRUE(loop_.run_until([&] { return history_->kept() == 12; }));
}

// As after a crash: the log is replayed from before what was written.
TEST_F(HistoryTest, AReplayChangesNothing) {
  open();
  history_->add(10, {ended_job(1), ended_job(2)});
  ASSERT_TRUE(loop_.run_until([&] { return history_->written() == 10; }));
  open();
  EXPECT_EQ(history_->written(), 10u);
  EXPECT_EQ(history_->kept(), 10u);
  Job other = ended_job(1);
  other.spec.name = "other";
  history_->add(10, {other});
  history_->add(11, {ended_job(3)});
  ASSERT_TRUE(loop_.run_until([&] { return history_->written() == 11; }));
  JobFilter filter;
  filter.name = "other";
  EXPECT_EQ(find(filter), "next 0");
  EXPECT_EQ(find(), "1 2 3 next 0");
}

TEST_F(HistoryTest, WhatACrashTookAwayIsWrittenByTheReplay) {
  hold();
  open();
  history_->add(10, {ended_job(1)});
  release();
  ASSERT_TRUE(loop_.run_until([&] { return history_->written() == 10; }));
  hold();
  open();
  history_->add(11, {ended_job(2)});
  release();
  history_.reset();  // entry 11 may or may not have got onto the disk
  options_.before_write = nullptr;
  open();
  history_->add(10, {ended_job(1)});
  history_->add(11, {ended_job(2)});
  ASSERT_TRUE(loop_.run_until([&] { return history_->written() == 11; }));
  EXPECT_EQ(find(), "1 2 next 0");
}

TEST_F(HistoryTest, TellsWhenItIsFullAndWhenNot) {
  options_.backlog_bytes = 3000;
  hold();
  open();
  history_->add(10, {ended_job(1)});
  EXPECT_FALSE(history_->full());
  for (JobId id = 2; id < 10; ++id) history_->add(10 + id, {ended_job(id)});
  EXPECT_TRUE(history_->full());
  release();
  ASSERT_TRUE(loop_.run_until([&] { return drained_ == 1; }));
  EXPECT_FALSE(history_->full());
  EXPECT_EQ(find(), "1 2 3 4 5 6 7 8 9 next 0");
}

TEST_F(HistoryTest, AFailingDiskIsToldOnce) {
  open();
  history_->add(10, {ended_job(1)});
  ASSERT_TRUE(loop_.run_until([&] { return history_->written() == 10; }));
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  Job big = ended_job(2);
  auto body = std::make_shared<JobBody>();
  body->script = std::string(100000, 'x');
  big.spec.body = body;
  history_->add(11, {big});
  history_->keep(11);
  EXPECT_TRUE(loop_.run_until([&] { return !failure_.ok(); }));
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(std::string(failure_.message()).find(dir_ / "history"), std::string::npos) << failure_;
  failure_ = absl::OkStatus();
  history_->keep(12);
  history_->add(13, {ended_job(4)});
  EXPECT_EQ(history_->kept(), 0u);
  EXPECT_TRUE(failure_.ok());
}

TEST_F(HistoryTest, PacksForAnotherNode) {
  open();
  history_->add(10, {ended_job(1)});
  history_->add(11, {ended_job(2)});
  ASSERT_TRUE(loop_.run_until([&] { return history_->written() == 11; }));
  std::optional<absl::StatusOr<std::string>> packed, second;
  history_->pack(10, [&](absl::StatusOr<std::string> path) { packed = std::move(path); });
  history_->pack(0, [&](absl::StatusOr<std::string> path) { second = std::move(path); });
  ASSERT_TRUE(loop_.run_until([&] { return packed.has_value() && second.has_value(); }));
  ASSERT_TRUE(packed->ok()) << packed->status();
  TempDir other_dir;
  History other(
      {}, [](std::function<void()>) {}, [](absl::Status) {}, [] {});
  ASSERT_TRUE(other.open(other_dir / "history").ok());
  ASSERT_TRUE(other.unpack(**packed).ok());
  EXPECT_EQ(other.kept(), 11u);
  if (second->ok()) std::filesystem::remove(**second);
}

}  // namespace
}  // namespace xce::history
