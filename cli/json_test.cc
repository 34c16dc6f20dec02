#include "cli/json.h"

#include <gtest/gtest.h>

namespace xce::cli {
namespace {

xce_job_t bare_job() {
  xce_job_t job{};
  job.id = 17;
  job.spec.name = "sim";
  job.spec.user = "ada";
  job.spec.queue = "default";
  job.reason = "";
  job.submit_ms = 1000;
  return job;
}

TEST(Json, AJobThatWaits) {
  const Json j = job_json(bare_job(), false);
  EXPECT_EQ(j["id"], 17);
  EXPECT_EQ(j["state"], "PENDING");
  EXPECT_EQ(j["submit_time"], "1970-01-01T00:00:01.000Z");
  EXPECT_TRUE(j["start_time"].is_null());
  EXPECT_TRUE(j["exit_code"].is_null());
  EXPECT_TRUE(j["array_id"].is_null());
  EXPECT_EQ(j["cpus"], 1);
  EXPECT_EQ(j["hosts"], Json::array());
  EXPECT_FALSE(j.contains("script"));
}

TEST(Json, AnEndedTaskInFull) {
  xce_job_t job = bare_job();
  const xce_gres_t gres{"gpu", 2, nullptr, 0};
  xce_alloc_t alloc{};
  alloc.host = "n1";
  alloc.cpus = 4;
  alloc.gres = &gres;
  alloc.ngres = 1;
  const char* args[] = {"a", "b c"};
  job.array_id = 15;
  job.array_index = 2;
  job.state = XCE_JOB_KILLED;
  job.exit_code = 137;
  job.exit_signal = 9;
  job.allocs = &alloc;
  job.nallocs = 1;
  job.spec.script = "#!/bin/sh\n";
  job.spec.script_len = 10;
  job.spec.args = args;
  job.spec.nargs = 2;
  const Json j = job_json(job, true);
  EXPECT_EQ(j["exit_code"], 137);
  EXPECT_EQ(j["exit_signal"], 9);
  EXPECT_EQ(j["array_id"], 15);
  EXPECT_EQ(j["hosts"], Json({"n1"}));
  EXPECT_EQ(j["allocations"][0]["gres"]["gpu"], 2);
  EXPECT_EQ(j["script"], "#!/bin/sh\n");
  EXPECT_EQ(j["args"], Json({"a", "b c"}));
}

TEST(Json, BrokenUtf8IsReplacedRatherThanThrown) {
  xce_job_t job = bare_job();
  job.spec.name = "\xff";
  EXPECT_NE(dump(job_json(job, false), false).find("\xef\xbf\xbd"), std::string::npos);
}

}  // namespace
}  // namespace xce::cli
