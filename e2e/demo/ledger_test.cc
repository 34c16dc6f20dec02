#include "e2e/demo/ledger.h"

#include <gtest/gtest.h>

#include <fstream>

#include "e2e/cluster/process.h"

namespace xce::e2e {
namespace {

JobRow row(uint64_t id, xce_job_state_t state) {
  JobRow out;
  out.id = id;
  out.state = state;
  return out;
}

TEST(Ledger, SeesEveryKindOfBrokenPromise) {
  const std::string dir = make_temp_dir("ledger");
  const std::string file = dir + "/runs";
  std::ofstream(file) << "1\n2\n2\n";
  Ledger ledger(file);
  ledger.acknowledged(1, 1, "COMPLETED");
  ledger.acknowledged(2, 1, "COMPLETED");  // ran twice
  ledger.acknowledged(3, 2, "COMPLETED");  // 3 never ran, 4 is lost
  ledger.acknowledged(1, 1, "COMPLETED");  // given twice
  ledger.acknowledged(5, 1, "FAILED");     // ended otherwise
  const Verdict verdict =
      ledger.compare({{1, row(1, XCE_JOB_COMPLETED)},
                      {2, row(2, XCE_JOB_COMPLETED)},
                      {3, row(3, XCE_JOB_COMPLETED)},
                      {5, row(5, XCE_JOB_KILLED)},
                      {6, row(6, XCE_JOB_KILLED)}});  // 6 was never acknowledged
  EXPECT_EQ(verdict.acknowledged, 5u);
  EXPECT_EQ(verdict.lost, 1);
  EXPECT_EQ(verdict.ran_twice, 1);
  EXPECT_EQ(verdict.never_ran, 1);
  EXPECT_EQ(verdict.given_twice, 1);
  EXPECT_EQ(verdict.wrong_outcome, 1);
  EXPECT_EQ(verdict.unexpected, 1);
  EXPECT_FALSE(verdict.good());
  remove_tree(dir);
}

// Whose host is lost is started again, if it asked for that; never two attempts at the same time.
TEST(Ledger, TellsSecondAttemptsFromRunningTwice) {
  const std::string dir = make_temp_dir("ledger");
  std::ofstream(dir + "/runs") << "1.1\n1.2\n1.2-\n"        // fenced, then done
                                  "2.1\n2.1-\n2.2\n2.2-\n"  // done, not told, done again
                                  "3.1\n3.2\n3.1-\n"        // at once
                                  "4.1\n4.2\n"              // may not
                                  "5.1\n5.1\n";             // one attempt twice
  Ledger ledger(dir + "/runs");
  std::map<uint64_t, JobRow> jobs;
  for (const uint64_t id : {1, 2, 3, 4, 5}) {
    ledger.acknowledged(id, 1, "COMPLETED", id != 4);
    jobs[id] = row(id, XCE_JOB_COMPLETED);
  }
  const Verdict verdict = ledger.compare(jobs);
  EXPECT_EQ(verdict.ran_twice, 3);
  EXPECT_EQ(verdict.attempts_again, 3);
  EXPECT_EQ(verdict.findings.size(), 3u);
  remove_tree(dir);
}

TEST(Ledger, AKeptPromiseIsGood) {
  const std::string dir = make_temp_dir("ledger");
  std::ofstream(dir + "/runs") << "1\n";
  Ledger ledger(dir + "/runs");
  ledger.acknowledged(1, 1, "COMPLETED");
  EXPECT_TRUE(ledger.compare({{1, row(1, XCE_JOB_COMPLETED)}}).good());
  remove_tree(dir);
}

}  // namespace
}  // namespace xce::e2e
