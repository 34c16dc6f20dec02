#include "cli/exit_code.h"

#include <gtest/gtest.h>
#include <xce/errnox.h>
#include <xce/types.h>

#include <cerrno>

namespace xce::cli {
namespace {

int code(int status) { return exit_code_of(absl::Status(code_of(status), "words")); }

TEST(ExitCode, EveryStatusOfLibxce) {
  const std::pair<int, int> cases[] = {
      {E_XCE_REDIRECT, 5},        {E_XCE_NOMASTER, 5}, {E_XCE_STANDBY, 5}, {E_XCE_NOT_READY, 5},
      {E_XCE_OUTCOME_UNKNOWN, 6}, {E_XCE_DUP_JOB, 1},  {E_XCE_AUTH, 4},    {E_XCE_PERM, 4},
      {E_XCE_INVALID, 1},         {E_XCE_NOENT, 3},    {E_XCE_STALE, 1},   {E_XCE_BUSY, 1},
      {E_XCE_FORKED, 1},
  };
  static_assert(std::size(cases) == E_XCE_LAST - E_XCE_BASE, "a new status needs an exit code");
  for (const auto& [status, expected] : cases) {
    EXPECT_EQ(code(status), expected) << status;
    EXPECT_EQ(code(-status), expected) << -status;
  }
  EXPECT_EQ(code(-ECONNREFUSED), 5);
  EXPECT_EQ(code(-ETIMEDOUT), 5);
  EXPECT_EQ(code(-ECANCELED), 130);
}

TEST(ExitCode, OwnFailuresOfWaitAndRunAreAt120) {
  EXPECT_EQ(own_exit_code_of(absl::OkStatus()), 0);
  EXPECT_EQ(own_exit_code_of(absl::InternalError("")), 121);
  EXPECT_EQ(own_exit_code_of(absl::InvalidArgumentError("")), 122);
  EXPECT_EQ(own_exit_code_of(absl::NotFoundError("")), 123);
  EXPECT_EQ(own_exit_code_of(absl::UnavailableError("")), 125);
  EXPECT_EQ(own_exit_code_of(absl::DeadlineExceededError("")), 127);
  EXPECT_EQ(own_exit_code_of(absl::CancelledError("")), 130);
}

TEST(ExitCode, OfJobs) {
  EXPECT_EQ(exit_code_of_job(XCE_JOB_COMPLETED, 0, 0), 0);
  EXPECT_EQ(exit_code_of_job(XCE_JOB_FAILED, 3, 0), 3);
  EXPECT_EQ(exit_code_of_job(XCE_JOB_FAILED, 0, 0), 1);
  EXPECT_EQ(exit_code_of_job(XCE_JOB_FAILED, -1, 0), 1);
  EXPECT_EQ(exit_code_of_job(XCE_JOB_KILLED, 137, 9), 137);
  EXPECT_EQ(exit_code_of_job(XCE_JOB_KILLED, 0, 0), 143);
  EXPECT_EQ(exit_code_of_job(XCE_JOB_TIMEOUT, 0, 0), 143);
  EXPECT_EQ(exit_code_of_job(XCE_JOB_LOST, 0, 0), 1);
}

}  // namespace
}  // namespace xce::cli
