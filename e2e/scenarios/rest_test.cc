// The apiserver as a program uses it: REST over curl against a whole cluster, through failovers and
// with no cluster left.

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/http.h"

namespace xce::e2e {
namespace {

using nlohmann::json;

class Rest : public ClusterTest {
 protected:
  using Response = HttpAnswer;

  void SetUp() override {
    ClusterTest::SetUp();
    ClusterOptions options;
    options.workers = 1;
    options.schedulers = 1;
    options.apiserver = true;
    start(options);
    ASSERT_TRUE(
        wait_until([&] { return call("GET", "/readyz").status == 200; }, milliseconds(15000)));
  }

  Response call(const std::string& method, const std::string& path, const std::string& body = "",
                const std::string& key = "") {
    return Http(cluster_->api_address()).call(method, path, body, key);
  }
  std::string job_body(const std::string& command) {
    return json{{"name", "rest"},
                {"command", {"/bin/sh", "-c", command}},
                {"work_dir", cluster_->dir() + "/work"}}
        .dump();
  }
};

TEST_F(Rest, AJobsLife) {
  const Response created = call("POST", "/api/v1/jobs", job_body("echo over http"));
  ASSERT_EQ(created.status, 201) << created.text;
  const int64_t id = created.body.value("id", int64_t{0});
  ASSERT_GT(id, 0) << created.text;
  EXPECT_TRUE(wait_until(
      [&] {
        return call("GET", absl::StrCat("/api/v1/jobs/", id)).body.value("state", "") ==
               "COMPLETED";
      },
      milliseconds(15000)));
  EXPECT_TRUE(absl::StrContains(call("GET", absl::StrCat("/api/v1/jobs/", id, "/output")).text,
                                "over http"));
  EXPECT_EQ(call("GET", "/api/v1/jobs").status, 200);
  EXPECT_EQ(call("GET", "/api/v1/hosts").status, 200);
  EXPECT_EQ(call("GET", "/api/v1/cluster").status, 200);
  EXPECT_EQ(call("GET", "/livez").status, 200);

  const Response sleeper = call("POST", "/api/v1/jobs", job_body("sleep 600"));
  const int64_t victim = sleeper.body.value("id", int64_t{0});
  const int deleted = call("DELETE", absl::StrCat("/api/v1/jobs/", victim)).status;
  EXPECT_TRUE(deleted == 200 || deleted == 202 || deleted == 204) << deleted;
  EXPECT_TRUE(wait_until(
      [&] {
        return call("GET", absl::StrCat("/api/v1/jobs/", victim)).body.value("state", "") ==
               "KILLED";
      },
      milliseconds(15000)));
}

TEST_F(Rest, BadRequestsAreProblems) {
  EXPECT_EQ(call("GET", "/api/v1/jobs/999").status, 404);
  EXPECT_EQ(call("POST", "/api/v1/jobs", "{not json").status, 400);
  const Response unknown = call("POST", "/api/v1/jobs", R"({"no_such_field": 1})");
  EXPECT_TRUE(unknown.status == 400 || unknown.status == 422) << unknown.status;
  EXPECT_TRUE(unknown.body.contains("detail") && unknown.body.contains("code")) << unknown.text;
  EXPECT_TRUE(absl::StrContains(unknown.headers, "application/problem+json")) << unknown.headers;
}

TEST_F(Rest, OneKeyIsOneJobAcrossAFailover) {
  const Response first = call("POST", "/api/v1/jobs", job_body("true"), "key-1");
  ASSERT_EQ(first.status, 201) << first.text;
  ASSERT_GE(kill_primary(), 0);
  Response second;
  EXPECT_TRUE(wait_until(
      [&] {
        second = call("POST", "/api/v1/jobs", job_body("true"), "key-1");
        return second.status != 503;
      },
      milliseconds(15000)));
  EXPECT_EQ(second.body.value("id", 0), first.body.value("id", -1)) << second.text;
  EXPECT_EQ(call("POST", "/api/v1/jobs", job_body("false"), "key-1").status, 422);
}

TEST_F(Rest, WithoutAClusterItSaysSoQuicklyAndComesBack) {  // A4.1, A2.4
  cluster_->controller(0).kill9();
  cluster_->controller(1).kill9();
  Response degraded;
  EXPECT_TRUE(wait_until(
      [&] {
        degraded = call("GET", "/api/v1/jobs");
        return degraded.status == 503 && degraded.seconds < 0.5;
      },
      milliseconds(60000)))
      << degraded.status << " after " << degraded.seconds << " s";
  EXPECT_TRUE(absl::StrContains(degraded.headers, "Retry-After")) << degraded.headers;
  EXPECT_EQ(call("GET", "/livez").status, 200);
  EXPECT_EQ(call("GET", "/readyz").status, 503);
  ASSERT_TRUE(cluster_->start_controller(0).ok());
  EXPECT_TRUE(
      wait_until([&] { return call("GET", "/readyz").status == 200; }, milliseconds(30000)));
  EXPECT_EQ(call("POST", "/api/v1/jobs", job_body("true")).status, 201);
}

}  // namespace
}  // namespace xce::e2e
