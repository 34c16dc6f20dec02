// As whom jobs run: with TLS and a worker that is root, as who the submitter's certificate says.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {
namespace {

class RunAs : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    std::string pattern = "/tmp/xce-run-as.XXXXXX";  // where others can get to
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    if (geteuid() != 0 || chown(dir_.c_str(), 65534, 65534) != 0 || chown(dir_.c_str(), 0, 0) != 0)
      GTEST_SKIP() << "only root can become another user, and only where there are others";
    ClusterOptions options;
    options.dir = dir_;
    options.controllers = 1;
    options.workers = 1;
    options.schedulers = 1;
    options.tls = true;
    ASSERT_NO_FATAL_FAILURE(start(options));
    // Another user must be able to get to the work directory and the jobs' scripts.
    ASSERT_EQ(chmod(cluster_->dir().c_str(), 0711), 0);
    ASSERT_EQ(chown(work().c_str(), 65534, 65534), 0);
    ann_ = issue("ann", "65534");
  }
  ClientTls issue(const std::string& name, const std::string& id) {
    const Finished issued = run("cli/xce", {"pki", "issue", cluster_->dir() + "/pki", "--role",
                                            "user", "--name", name, "--uid", id, "--gid", id});
    EXPECT_EQ(issued.code, 0) << issued.err;
    const std::string stem = cluster_->dir() + "/pki/user-" + name;
    return {cluster_->dir() + "/pki/ca.crt", stem + ".crt", stem + ".key"};
  }
  void TearDown() override {
    ClusterTest::TearDown();
    remove_tree(dir_);
  }
  std::string work() const { return cluster_->dir() + "/work"; }
  Finished xce(const std::vector<std::string>& args) { return xce_as(ann_, args); }
  Finished xce_as(const ClientTls& who, const std::vector<std::string>& args) {
    std::vector<std::string> all = {
        "--masters", cluster_->masters(), "--tls-ca", who.ca, "--tls-cert",
        who.cert,    "--tls-key",         who.key};
    all.insert(all.end(), args.begin(), args.end());
    return run("cli/xce", all, {"XCE_TLS_CA=", "XCE_TLS_CERT=", "XCE_TLS_KEY="});
  }
  std::string dir_;
  ClientTls ann_;
};

TEST_F(RunAs, WithTlsAJobIsTheUserOfTheCertificate) {
  const std::string script = work() + "/who.sh";
  std::ofstream(script) << "#!/bin/sh\nid -u; id -g; cat " << cluster_->dir()
                        << "/pki/ca.key && echo has the key\nexit 0\n";
  const Finished submitted = xce({"submit", "--workdir", work(), "-o", "who.out", script});
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  ASSERT_EQ(xce({"wait", "1"}).code, 0) << xce({"job", "1"}).out;
  const std::string said = read_file(work() + "/who.out");
  EXPECT_TRUE(absl::StartsWith(said, "65534\n65534\n")) << said;
  EXPECT_FALSE(absl::StrContains(said, "has the key")) << said;
  struct stat st;
  ASSERT_EQ(stat((work() + "/who.out").c_str(), &st), 0);
  EXPECT_EQ(st.st_uid, 65534u);
  EXPECT_TRUE(absl::StrContains(xce({"logs", "1"}).out, "65534")) << xce({"logs", "1"}).err;
}

TEST_F(RunAs, ACommandInsideAJobIsTheJobsUserAlsoWhenRootAsks) {
  const std::string until_stop = "while [ ! -e stop ]; do sleep 0.02; done";
  const Finished submitted = xce({"submit", "--workdir", work(), "--", "sh", "-c", until_stop});
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  ASSERT_TRUE(wait_until(
      [&] {
        return absl::StrContains(xce({"job", "1"}).out, "RUNNING");
      },
      milliseconds(20000)));
  const std::vector<std::string> command = {"run", "--quiet", "--job", "1",
                                            "--",  "sh",      "-c",    "id -u; id -g; id -G"};
  for (const ClientTls& who : {ann_, issue("root", "0")}) {
    const Finished ran = xce_as(who, command);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "65534\n65534\n65534\n");
  }
  const Finished refused = xce_as(issue("bob", "65533"), command);
  EXPECT_EQ(refused.code, 124) << refused.err;
  EXPECT_TRUE(absl::StrContains(refused.err, "job 1 belongs to ann")) << refused.err;
  std::ofstream(work() + "/stop") << "x";
  EXPECT_EQ(xce({"wait", "1"}).code, 0);
}

TEST_F(RunAs, OutputIsReadWithTheUsersRightsOnly) {
  const std::string secret = cluster_->dir() + "/secret";
  std::ofstream(secret) << "of root\n";
  chmod(secret.c_str(), 0600);
  const Finished submitted = xce({"submit", "--workdir", work(), "-o", "trick", "--", "/bin/sh",
                                  "-c", absl::StrCat("rm trick; ln -s ", secret, " trick")});
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  ASSERT_EQ(xce({"wait", "1"}).code, 0) << xce({"job", "1"}).out;
  const Finished logs = xce({"logs", "1"});
  EXPECT_FALSE(absl::StrContains(logs.out, "of root")) << logs.out;
  EXPECT_TRUE(absl::StrContains(logs.err, "Permission denied")) << logs.err;
}

}  // namespace
}  // namespace xce::e2e
