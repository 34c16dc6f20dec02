// The history's rows on disk: pages by every criterion, restarts, what goes to another node.
#include "controller/history/store.h"

#include <fcntl.h>

#include <fstream>

#include "controller/history/history_testutil.h"

namespace xce::history {
namespace {

class StoreTest : public testing::Test {
 protected:
  StoreTest() { open(); }
  void open(uint64_t max_jobs = 0) {
    store_.reset();
    auto store = Store::open(dir_ / "history", max_jobs);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  void put(JobId first, JobId last) {
    std::vector<Row> rows;
    for (JobId id = first; id <= last; ++id) rows.push_back(row(100 + id, ended_job(id)));
    ASSERT_TRUE(store_->write(rows, 100 + last).ok());
  }
  std::string find(const JobFilter& filter, size_t max_jobs = 100) {
    Query query;
    query.filter = filter;
    query.max_jobs = max_jobs;
    return ids_of(store_->find(query));
  }
  TempDir dir_;
  std::unique_ptr<Store> store_;
  const std::atomic<bool> stop_{false};
};

TEST_F(StoreTest, AJobComesBackWhole) {
  Job job = ended_job(7, JobState::kFailed);
  auto body = std::make_shared<JobBody>();
  body->script = "#!/bin/sh\nexit 3\n";
  body->env = {"A=1", "B=2"};
  job.spec.body = body;
  job.exit_code = 3;
  job.usage = {1, 2, 3};
  ASSERT_TRUE(store_->write({row(9, job)}, 9).ok());
  Query query;
  query.filter.ids = {7};
  const auto page = store_->find(query);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->jobs.size(), 1u);
  const Job& got = page->jobs[0];
  EXPECT_EQ(got.spec.body->script, body->script);
  EXPECT_EQ(got.spec.body->env, body->env);
  EXPECT_EQ(got.exit_code, 3);
  EXPECT_EQ(got.usage.peak_memory_kb, 2u);
  EXPECT_EQ(got.allocs, job.allocs);
  EXPECT_EQ(got.state, JobState::kFailed);
}

TEST_F(StoreTest, PagesEitherWay) {
  put(1, 9);
  JobFilter filter;
  EXPECT_EQ(find(filter, 4), "1 2 3 4 next 4");
  filter.after_id = 4;
  EXPECT_EQ(find(filter, 5), "5 6 7 8 9 next 0");
  filter.after_id = 9;
  EXPECT_EQ(find(filter, 5), "next 0");
  filter.descending = true;
  filter.after_id = 0;
  EXPECT_EQ(find(filter, 4), "9 8 7 6 next 6");
  filter.after_id = 6;
  EXPECT_EQ(find(filter, 4), "5 4 3 2 next 2");
  filter.after_id = 1;
  EXPECT_EQ(find(filter, 4), "next 0");
}

TEST_F(StoreTest, APageIsBoundedInBytes) {
  put(1, 9);
  Query query;
  query.max_bytes = 1;  // one job all the same
  EXPECT_EQ(ids_of(store_->find(query)), "1 next 1");
  query.max_bytes = 1000;
  EXPECT_EQ(ids_of(store_->find(query)), "1 2 next 2");
}

TEST_F(StoreTest, ByEachCriterion) {
  put(1, 9);
  ASSERT_TRUE(store_->write({row(110, ended_job(10, JobState::kFailed))}, 110).ok());
  JobFilter filter;
  filter.user = "bob";
  EXPECT_EQ(find(filter), "2 4 6 8 10 next 0");
  filter.states = 1u << static_cast<unsigned>(JobState::kFailed);
  EXPECT_EQ(find(filter), "10 next 0");
  filter = JobFilter();
  filter.host = "n1";
  EXPECT_EQ(find(filter), "1 4 7 10 next 0");
  filter = JobFilter();
  filter.name = "job-5";
  EXPECT_EQ(find(filter), "5 next 0");
  filter = JobFilter();
  filter.queue = "night";
  EXPECT_EQ(find(filter), "next 0");
  filter.queue = "default";
  filter.since_ms = 3000;
  filter.until_ms = 6000;
  EXPECT_EQ(find(filter), "3 4 5 next 0");
}

TEST_F(StoreTest, ByIds) {
  put(1, 9);
  JobFilter filter;
  filter.ids = {8, 3, 99, 3, 1};
  EXPECT_EQ(find(filter), "1 3 8 next 0");
  EXPECT_EQ(find(filter, 2), "1 3 next 3");
  filter.after_id = 3;
  EXPECT_EQ(find(filter, 2), "8 next 0");
  filter.after_id = 0;
  filter.descending = true;
  EXPECT_EQ(find(filter, 1), "8 next 8");
  filter.user = "alice";
  EXPECT_EQ(find(filter), "3 1 next 0");
}

TEST_F(StoreTest, ByArray) {
  put(1, 3);
  std::vector<Row> rows;
  for (JobId id = 4; id <= 8; ++id) {
    if (id == 6) continue;  // a task that has not departed
    Job job = ended_job(id);
    job.array_id = 4;
    rows.push_back(row(200, job));
  }
  ASSERT_TRUE(store_->write(rows, 200).ok());
  put(9, 12);
  JobFilter filter;
  filter.array_id = 4;
  EXPECT_EQ(find(filter), "4 5 7 8 next 0");
  EXPECT_EQ(find(filter, 3), "4 5 7 next 7");
  filter.user = "bob";
  EXPECT_EQ(find(filter), "4 8 next 0");
  filter.descending = true;
  EXPECT_EQ(find(filter), "8 4 next 0");
  filter.array_id = 9;
  EXPECT_EQ(find(filter), "next 0");
}

TEST_F(StoreTest, BeyondTheStopNothingIsLookedAt) {
  put(1, 9);
  Query query;
  query.stop_at = 4;
  EXPECT_EQ(ids_of(store_->find(query)), "1 2 3 4 next 0");
  query.filter.descending = true;
  EXPECT_EQ(ids_of(store_->find(query)), "9 8 7 6 5 4 next 0");
}

TEST_F(StoreTest, SurvivesARestart) {
  EXPECT_EQ(store_->written(), 0u);
  put(1, 9);
  ASSERT_TRUE(store_->write({}, 150).ok());  // entries without rows count as well
  open();
  EXPECT_EQ(store_->written(), 150u);
  EXPECT_EQ(find(JobFilter()), "1 2 3 4 5 6 7 8 9 next 0");
  ASSERT_TRUE(store_->write({}, 120).ok());
  EXPECT_EQ(store_->written(), 150u);  // never back
}

TEST_F(StoreTest, AnotherNodeGetsWhatItLacks) {
  put(1, 9);  // departed with 101..109
  TempDir other_dir;
  auto other = Store::open(other_dir / "history", 0);
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE((*other)->write({row(101, ended_job(1))}, 105).ok());
  const std::string file = other_dir / "pack";
  ASSERT_TRUE(store_->export_to(file, 105, stop_).ok());
  ASSERT_TRUE((*other)->import_from(file).ok());
  EXPECT_EQ((*other)->written(), 109u);
  Query all;
  EXPECT_EQ(ids_of((*other)->find(all)), "1 6 7 8 9 next 0");  // and nothing else was sent
  EXPECT_FALSE(std::filesystem::exists(file));
  other = absl::UnknownError("closed");
  other = Store::open(other_dir / "history", 0);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ((*other)->written(), 109u);
  EXPECT_EQ(ids_of((*other)->find(all)), "1 6 7 8 9 next 0");
}

TEST_F(StoreTest, AnEmptyHistoryGoesToAnotherNodeToo) {
  TempDir other_dir;
  auto other = Store::open(other_dir / "history", 0);
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE((*other)->write({row(101, ended_job(1))}, 105).ok());
  const std::string file = other_dir / "pack";
  ASSERT_TRUE(store_->export_to(file, 0, stop_).ok());
  ASSERT_TRUE((*other)->import_from(file).ok());
  EXPECT_EQ((*other)->written(), 105u);  // the sender's position does not take it back
  other = absl::UnknownError("closed");
  other = Store::open(other_dir / "history", 0);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ((*other)->written(), 105u);
}

TEST_F(StoreTest, ADamagedPackIsRefusedWhole) {
  put(1, 9);
  TempDir other_dir;
  auto other = Store::open(other_dir / "history", 0);
  ASSERT_TRUE(other.ok());
  const std::string file = other_dir / "pack";
  ASSERT_TRUE(store_->export_to(file, 0, stop_).ok());
  {
    std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(40);
    damaged.put('\x55');
    damaged.put('\xaa');
  }
  const absl::Status status = (*other)->import_from(file);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ((*other)->written(), 0u);
  EXPECT_EQ(ids_of((*other)->find(Query())), "next 0");
}

TEST_F(StoreTest, TheOldestAreDroppedBeyondTheMost) {
  open(64);
  put(1, 64);
  EXPECT_EQ(find(JobFilter(), 1), "1 next 1");
  put(65, 80);
  EXPECT_EQ(find(JobFilter(), 1), "17 next 17");
  JobFilter filter;
  filter.ids = {1, 16, 17};
  EXPECT_EQ(find(filter), "17 next 0");
}

TEST_F(StoreTest, DamageIsNamed) {
  put(1, 9);
  store_.reset();
  for (const auto& entry : std::filesystem::directory_iterator(dir_ / "history"))
    if (entry.path().filename().string().rfind("MANIFEST", 0) == 0)
      std::filesystem::resize_file(entry.path(), 10);
  const auto store = Store::open(dir_ / "history", 0);
  ASSERT_FALSE(store.ok());
  EXPECT_NE(std::string(store.status().message()).find(dir_ / "history"), std::string::npos);
  EXPECT_NE(std::string(store.status().message()).find("xce cluster replace"), std::string::npos);
}

}  // namespace
}  // namespace xce::history
