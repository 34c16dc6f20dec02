// Waiting against a scripted controller: pushes tell, nobody is asked meanwhile, outages are lived
// through.
#include "cli/waiter.h"

#include <gtest/gtest.h>
#include <xce/errnox.h>

#include <atomic>
#include <thread>

#include "cli/terminal.h"
#include "libxce/client/testing/client_fixture.h"

namespace xce::cli {
namespace {

using client::Answer;
using client::MockMaster;
using client::Seen;
using client::Which;

constexpr uint64_t kJob = 42;  // the mock's

class WaiterTest : public ::testing::Test {
 protected:
  WaiterTest() {
    Connection connection;
    connection.masters = {"127.0.0.1:" + std::to_string(master_.port()), "the test"};
    connection.notice = false;
    session_ = std::move(*Session::open(connection));
  }

  // Waits for the job on a thread of its own.
  void start(long long until = 0, std::vector<Resolved> targets = {{"42", kJob, false}}) {
    waiter_ = std::thread([this, until, targets] {
      status_ = wait_for(*session_, targets, until,
                         [this](const EndedJob& job) { ended_.push_back(job); });
      done_ = true;
    });
  }
  absl::Status finish() {
    waiter_.join();
    return status_;
  }

  std::atomic<uint16_t> state_{XCE_JOB_RUNNING};
  std::atomic<int> refusal_{0};
  MockMaster master_{[this](const Seen&) {
    Answer answer;
    answer.job_state = state_;
    answer.status = refusal_;
    return answer;
  }};
  std::unique_ptr<Session> session_;
  std::vector<EndedJob> ended_;
  std::atomic<bool> done_{false};

 private:
  std::thread waiter_;
  absl::Status status_;
};

TEST_F(WaiterTest, APushTellsAndNobodyIsAskedMeanwhile) {
  start();
  ASSERT_TRUE(master_.wait_for(Which::SUBSCRIBE, 1));
  ASSERT_TRUE(master_.wait_for(Which::JOB_LIST, 1));
  // A push of no news is looked after; so is the end, which comes only now.
  master_.push_removed(8, kJob);
  ASSERT_TRUE(master_.wait_for(Which::JOB_LIST, 2));
  EXPECT_FALSE(done_);
  state_ = XCE_JOB_COMPLETED;
  const long long told = steady_ms();
  master_.push_removed(9, kJob);
  EXPECT_TRUE(finish().ok());
  EXPECT_LT(steady_ms() - told, 2000) << "it must not have waited for its next look";
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].exit_code, 0);
  EXPECT_EQ(master_.count(Which::SUBSCRIBE), 1u);
  EXPECT_EQ(master_.count(Which::JOB_LIST), 3u);
}

TEST_F(WaiterTest, AJobThatHasEndedAlreadyIsSeenAtOnce) {
  state_ = XCE_JOB_FAILED;
  start();
  EXPECT_TRUE(finish().ok());
  EXPECT_EQ(ended_.size(), 1u);
  EXPECT_EQ(master_.count(Which::JOB_LIST), 1u);
}

TEST_F(WaiterTest, ALostConnectionIsFollowedByAnotherSubscriptionAndALook) {
  start();
  ASSERT_TRUE(master_.wait_for(Which::JOB_LIST, 1));
  master_.drop_connections();
  ASSERT_TRUE(master_.wait_for(Which::SUBSCRIBE, 2));
  state_ = XCE_JOB_COMPLETED;
  master_.push_removed(9, kJob);
  EXPECT_TRUE(finish().ok());
  EXPECT_EQ(ended_.size(), 1u);
  EXPECT_GE(master_.count(Which::JOB_LIST), 2u);
}

TEST_F(WaiterTest, TheTimeoutNamesWhatIsLeft) {
  start(steady_ms() + 100);
  const absl::Status status = finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "job 42 is still under way; wait longer with --timeout");
}

TEST_F(WaiterTest, OfAnArrayOneTaskIsWatched) {
  start(0, {{"40", 40, true}});
  ASSERT_TRUE(master_.wait_for(Which::SUBSCRIBE, 1));
  ASSERT_TRUE(master_.wait_for(Which::JOB_LIST, 2));  // for a task alive, before and after
  EXPECT_FALSE(done_);
  // The task says that it has changed: another is looked for, and it is the same one.
  master_.push_removed(8, kJob);
  ASSERT_TRUE(master_.wait_for(Which::JOB_LIST, 3));
  EXPECT_EQ(master_.count(Which::SUBSCRIBE), 1u);
  EXPECT_FALSE(done_);
  refusal_ = E_XCE_PERM;  // ends the wait
  master_.push_removed(9, kJob);
  EXPECT_EQ(finish().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace xce::cli
