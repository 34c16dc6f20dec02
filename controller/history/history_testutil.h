// Jobs and directories for the history's tests.
#ifndef XCE_CONTROLLER_HISTORY_HISTORY_TESTUTIL_H_
#define XCE_CONTROLLER_HISTORY_HISTORY_TESTUTIL_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "controller/history/store.h"

namespace xce::history {

class TempDir {
 public:
  TempDir() {
    std::string pattern = testing::TempDir() + "history.XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Job `id` of alice's (even ids: of bob's), which ended at 1000 * id and ran on host n<id % 3>.
inline Job ended_job(JobId id, JobState state = JobState::kCompleted) {
  Job job;
  job.id = id;
  job.state = state;
  job.spec.user = id % 2 == 0 ? "bob" : "alice";
  job.spec.queue = "default";
  job.spec.name = "job-" + std::to_string(id);
  auto body = std::make_shared<JobBody>();
  body->args = {"/bin/true", std::to_string(id)};
  job.spec.body = body;
  job.allocs = {{"n" + std::to_string(id % 3), 1, 100, {}}};
  job.submit_ms = 1;
  job.end_ms = static_cast<int64_t>(1000 * id);
  job.reason = "ended";
  return job;
}

inline Row row(Index departed, Job job) {
  return {departed, std::make_shared<const Job>(std::move(job))};
}

inline std::string ids_of(const Page& page) {
  std::string line;
  for (const Job& job : page.jobs) line += std::to_string(job.id) + " ";
  return line + "next " + std::to_string(page.next_after_id);
}

inline std::string ids_of(const absl::StatusOr<Page>& page) {
  return page.ok() ? ids_of(*page) : page.status().ToString();
}

}  // namespace xce::history

#endif  // XCE_CONTROLLER_HISTORY_HISTORY_TESTUTIL_H_
