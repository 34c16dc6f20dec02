// Reads of jobs that have ended long ago: the state and the archive in one answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "controller/service/service.h"
#include "controller/service/testing/fake_replica.h"
#include "controller/service/testing/test_client.h"
#include "controller/state/state.h"
#include "xce/errnox.h"

namespace xce::service::testing {
namespace {

using Request = wire::Request::Builder;

// 12,000 tasks of one array, all ended: the first 2,000 have departed. Then job 12001, pending.
class HistoryReads : public ::testing::Test {
 protected:
  static constexpr uint64_t kTasks = 12000, kDeparted = 2000;
  HistoryReads() : client_(harness_.port()) {
    EXPECT_EQ(client_.hello(Role::kUser), 0);
    write([](Request r) {
      auto spec = r.initOp().initJobSubmit();
      spec.setCpus(1);
      spec.initArgs(1).set(0, "true");
      auto array = spec.initArray(kTasks);
      for (unsigned i = 0; i < kTasks; ++i) array.set(i, i);
    });
    write([](Request r) {
      auto control = r.initOp().initJobCtrl();
      control.setAction(wire::JobAction::KILL);
      control.setWholeArray(true);
      control.initIds(1).set(0, 1);
    });
    write([](Request r) {
      auto spec = r.initOp().initJobSubmit();
      spec.setCpus(1);
      spec.initArgs(1).set(0, "true");
    });
    harness_.on_loop([this] {
      EXPECT_EQ(harness_.archive().jobs.size(), kDeparted);
      EXPECT_EQ(harness_.state().job(kDeparted), nullptr);
      EXPECT_NE(harness_.state().job(kDeparted + 1), nullptr);
    });
  }
  void write(const std::function<void(Request)>& fill) {
    const auto answer = client_.call([&](Request r) {
      r.setOpSeq(++op_seq_);
      fill(r);
    });
    ASSERT_NE(answer, nullptr);
    ASSERT_EQ(answer->reply().getStatus(), 0) << answer->reply().getMessage().cStr();
  }
  // Ids over all pages of a query, in the order in which they came.
  std::vector<uint64_t> all(bool history, const std::function<void(wire::JobFilter::Builder)>& set,
                            size_t* pages = nullptr) {
    std::vector<uint64_t> ids;
    uint64_t after = 0;
    do {
      const auto answer = client_.call([&](Request r) {
        auto filter = history ? r.initOp().initJobHist() : r.initOp().initJobList();
        set(filter);
        filter.setAfterId(after);
      });
      EXPECT_EQ(answer->reply().getStatus(), 0) << answer->reply().getMessage().cStr();
      const auto page = answer->reply().getBody().getJobs();
      for (const auto job : page.getJobs()) ids.push_back(job.getId());
      after = page.getNextAfterId();
      if (pages != nullptr) ++*pages;
    } while (after != 0 && ids.size() < 3 * kTasks);
    return ids;
  }
  static std::vector<uint64_t> range(uint64_t first, uint64_t last) {
    std::vector<uint64_t> ids;
    for (uint64_t id = first; id <= last; ++id) ids.push_back(id);
    return ids;
  }

  Harness harness_;
  TestClient client_;
  uint64_t op_seq_ = 0;
};

TEST_F(HistoryReads, EverythingThatEndedInOrderWithoutGaps) {
  size_t pages = 0;
  EXPECT_EQ(all(
                true, [](auto) {}, &pages),
            range(1, kTasks));
  EXPECT_LE(pages, 14u);
  auto down = all(true, [](auto filter) { filter.setDescending(true); });
  std::reverse(down.begin(), down.end());
  EXPECT_EQ(down, range(1, kTasks));
}

TEST_F(HistoryReads, SmallPagesAcrossTheBorder) {
  const auto ids = all(true, [](auto filter) {
    filter.setLimit(300);
    filter.setDescending(true);
    filter.setUser("ann");
  });
  EXPECT_EQ(ids.size(), kTasks);
  EXPECT_TRUE(std::is_sorted(ids.rbegin(), ids.rend()));
  EXPECT_EQ(all(true, [](auto filter) { filter.setUser("bob"); }), range(1, 0));
}

TEST_F(HistoryReads, HistoryIsOfEndedJobsOnly) {
  EXPECT_EQ(all(true, [](auto filter) { filter.initIds(1).set(0, kTasks + 1); }), range(1, 0));
  EXPECT_EQ(all(true, [](auto filter) { filter.setStates(1u << 0); }), range(1, 0));
}

TEST_F(HistoryReads, AListOfIdsOrOfAnArrayHasThoseThatDeparted) {
  EXPECT_EQ(all(false,
                [](auto filter) {
                  auto ids = filter.initIds(4);
                  ids.set(0, 1);
                  ids.set(1, kDeparted + 1);
                  ids.set(2, kTasks + 1);
                  ids.set(3, 99999999);
                }),
            (std::vector<uint64_t>{1, kDeparted + 1, kTasks + 1}));
  EXPECT_EQ(all(false, [](auto filter) { filter.setArrayId(1); }), range(1, kTasks));
  size_t questions = harness_.archive().questions;
  EXPECT_EQ(all(false,
                [](auto filter) {
                  filter.setArrayId(1);
                  filter.setStates(1u << 0);  // of those that wait
                }),
            range(1, 0));
  EXPECT_EQ(all(false, [](auto filter) { filter.initIds(1).set(0, kTasks + 1); }),
            range(kTasks + 1, kTasks + 1));
  EXPECT_EQ(harness_.archive().questions, questions);  // the state knew
}

TEST_F(HistoryReads, JobInfoOfOneThatDeparted) {
  auto answer = client_.call([](Request r) { r.initOp().setJobInfo(7); });
  ASSERT_EQ(answer->reply().getStatus(), 0);
  const auto jobs = answer->reply().getBody().getJobs().getJobs();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].getId(), 7u);
  EXPECT_EQ(std::string(jobs[0].getSpec().getArgs()[0].cStr()), "true");
  // Somebody else's arguments are nobody's business, now as before.
  TestClient bob(harness_.port());
  ASSERT_EQ(bob.hello(Role::kUser, "", "bob", 1001), 0);
  answer = bob.call([](Request r) { r.initOp().setJobInfo(7); });
  EXPECT_EQ(answer->reply().getBody().getJobs().getJobs()[0].getSpec().getArgs().size(), 0u);
  const size_t questions = harness_.archive().questions;
  answer = client_.call([](Request r) { r.initOp().setJobInfo(kTasks + 2); });
  EXPECT_EQ(answer->reply().getStatus(), E_XCE_NOENT);
  EXPECT_EQ(harness_.archive().questions, questions);
  harness_.on_loop([this] { harness_.archive().jobs.erase(7); });
  answer = client_.call([](Request r) { r.initOp().setJobInfo(7); });
  EXPECT_EQ(answer->reply().getStatus(), E_XCE_NOENT);
  EXPECT_EQ(std::string(answer->reply().getMessage().cStr()), "job 7 is no longer in the history");
}

// A job that departs between the two halves of an answer is in it, once.
TEST_F(HistoryReads, ADepartureInBetween) {
  harness_.on_loop([this] { harness_.archive().automatic = false; });
  const uint64_t seq = client_.send([](Request r) {
    auto filter = r.initOp().initJobHist();
    filter.setAfterId(kDeparted - 2);
    filter.setLimit(4);
  });
  ASSERT_TRUE(harness_.eventually([this] { return harness_.archive().waiting() == 1; }));
  write([](Request r) {  // one more ends: the oldest departs
    auto control = r.initOp().initJobCtrl();
    control.setAction(wire::JobAction::KILL);
    control.initIds(1).set(0, kTasks + 1);
  });
  harness_.on_loop([this] {
    EXPECT_EQ(harness_.archive().jobs.size(), kDeparted + 1);
    harness_.archive().answer();
  });
  const auto answer = client_.reply(seq);
  ASSERT_NE(answer, nullptr);
  std::vector<uint64_t> ids;
  for (const auto job : answer->reply().getBody().getJobs().getJobs()) ids.push_back(job.getId());
  EXPECT_EQ(ids, range(kDeparted - 1, kDeparted + 2));
  EXPECT_EQ(answer->reply().getIndex(), 3u);  // it is of when it was asked
}

TEST_F(HistoryReads, OtherRequestsDoNotWaitForTheDisk) {
  harness_.on_loop([this] { harness_.archive().automatic = false; });
  const uint64_t seq = client_.send([](Request r) { r.initOp().setJobInfo(7); });
  ASSERT_TRUE(harness_.eventually([this] { return harness_.archive().waiting() == 1; }));
  harness_.on_loop([this] { EXPECT_FALSE(harness_.service().idle()); });
  EXPECT_EQ(all(false, [](auto filter) { filter.initIds(1).set(0, kTasks + 1); }).size(), 1u);
  harness_.on_loop([this] { harness_.archive().answer(); });
  ASSERT_NE(client_.reply(seq), nullptr);
}

TEST_F(HistoryReads, AFailingDiskIsSaid) {
  harness_.on_loop(
      [this] { harness_.archive().failure = absl::DataLossError("the history is damaged"); });
  const auto answer = client_.call([](Request r) { r.initOp().setJobInfo(7); });
  EXPECT_EQ(answer->reply().getStatus(), E_XCE_NOT_READY);
  EXPECT_EQ(std::string(answer->reply().getMessage().cStr()), "the history is damaged");
}

}  // namespace
}  // namespace xce::service::testing
