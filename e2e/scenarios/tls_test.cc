// A cluster in which every link is TLS: jobs run through a failover; who has no certificate of its
// authority, or another one's, is kept out.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"
#include "xce/cluster.h"

namespace xce::e2e {
namespace {

class Tls : public ClusterTest {
 protected:
  void start_tls(int workers) {
    ClusterOptions options;
    options.tls = true;
    options.workers = workers;
    options.schedulers = workers > 0 ? 1 : 0;
    ASSERT_NO_FATAL_FAILURE(start(options));
  }
  // Waits until some controller's log says that.
  bool logged(const std::string& words) {
    return wait_until(
        [&] {
          for (int i = 0; i < cluster_->controllers(); ++i)
            if (absl::StrContains(cluster_->log(absl::StrCat("controller", i + 1)), words))
              return true;
          return false;
        },
        milliseconds(10000));
  }
  std::vector<std::string> flags(const ClientTls& files) {
    return {"--masters", cluster_->masters(), "--tls-ca", files.ca,     "--tls-cert",
            files.cert,  "--tls-key",         files.key,  "--deadline", "20s"};
  }
  Finished xce(std::vector<std::string> args, const std::vector<std::string>& command) {
    args.insert(args.end(), command.begin(), command.end());
    return run("cli/xce", args, {"XCE_TLS_CA=", "XCE_TLS_CERT=", "XCE_TLS_KEY="});
  }
};

TEST_F(Tls, JobsRunThroughTheDeathOfThePrimary) {
  ASSERT_NO_FATAL_FAILURE(start_tls(1));
  const std::vector<std::string> mine = flags(cluster_->user_certificate());
  Finished done = xce(mine, {"run", "--", "echo", "hello over TLS"});
  EXPECT_EQ(done.code, 0) << done.err;
  Client client(cluster_->masters(), 30000, cluster_->user_certificate());
  const int64_t before = client.submit("true", "before", cluster_->dir());
  ASSERT_GT(before, 0);
  ASSERT_GE(kill_primary(), 0);
  for (int i = 0; i < 5; ++i) EXPECT_GT(client.submit("true", "after", cluster_->dir()), before);
  done = xce(mine, {"run", "--", "true"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(wait_until(
      [&] {
        for (const auto& [id, job] : client.jobs())
          if (job.state != XCE_JOB_COMPLETED) return false;
        return true;
      },
      milliseconds(30000)));
  // Whose jobs they are says the certificate, not whoever runs the client.
  done = xce(mine, {"jobs", "--all", "--json"});
  EXPECT_NE(done.out.find("\"tester\""), std::string::npos) << done.out;
}

TEST_F(Tls, AClientOfAForeignAuthorityOrWithoutTlsIsRefused) {
  ASSERT_NO_FATAL_FAILURE(start_tls(0));
  const std::string foreign = cluster_->dir() + "/foreign";
  ASSERT_EQ(run("cli/xce", {"pki", "init", foreign}).code, 0);
  const Finished issued = run("cli/xce", {"pki", "issue", foreign, "--role", "user", "--name",
                                          "eve", "--uid", "0", "--gid", "0"});
  ASSERT_EQ(issued.code, 0) << issued.err;
  ClientTls eve = {foreign + "/ca.crt", foreign + "/user-eve.crt", foreign + "/user-eve.key"};
  Finished done = xce(flags(eve), {"jobs"});
  EXPECT_EQ(done.code, 4) << done.err;  // it does not accept the controllers
  eve.ca = cluster_->dir() + "/pki/ca.crt";
  done = xce(flags(eve), {"jobs"});
  EXPECT_EQ(done.code, 4) << done.err;  // they do not accept it
  EXPECT_TRUE(logged("its certificate is not accepted"));
  done = xce({"--masters", cluster_->masters(), "--deadline", "2s"}, {"jobs"});
  EXPECT_EQ(done.code, 5) << done.err;
  EXPECT_TRUE(logged("does not speak TLS"));
}

TEST_F(Tls, AUserCannotBeSomebodyElse) {
  ASSERT_NO_FATAL_FAILURE(start_tls(0));
  const ClientTls files = cluster_->user_certificate();
  xce_client_config_t config;
  xce_client_config_init(&config);
  xce_cluster_config_t list;
  char why[256] = "";
  ASSERT_EQ(xce_parse_peers(cluster_->masters().c_str(), &list, why, sizeof why), 0) << why;
  ASSERT_EQ(xce_cluster_config_to_client_config(&list, &config), 0);
  ASSERT_EQ(
      xce_client_config_set_tls(&config, files.ca.c_str(), files.cert.c_str(), files.key.c_str()),
      0);
  config.role = HostRole_user;
  snprintf(config.user, sizeof config.user, "root");
  xcecli_ctx_t ctx = nullptr;
  ASSERT_EQ(xcecli_ctx_init(&ctx, &config), 0);
  EXPECT_EQ(xcecli_start(ctx), -E_XCE_AUTH);
  xcecli_ctx_free(ctx);
}

TEST_F(Tls, AWorkerCannotBeAnotherHost) {
  ASSERT_NO_FATAL_FAILURE(start_tls(0));
  const ClientTls files = cluster_->certificate("worker", "host1");
  Process impostor;
  ASSERT_TRUE(impostor
                  .start({find_program("worker/xcecd"), "--peers", cluster_->masters(), "--name",
                          "host2", "--data-dir", cluster_->dir() + "/impostor", "--tls-ca",
                          files.ca, "--tls-cert", files.cert, "--tls-key", files.key},
                         cluster_->dir() + "/logs/impostor.log")
                  .ok());
  EXPECT_TRUE(logged("a certificate of worker host1 cannot be used as that of worker 'host2'"));
  EXPECT_FALSE(cluster_->wait_hosts(1, milliseconds(500)));
  impostor.terminate();
}

TEST_F(Tls, AControllerWithAnothersCertificateDoesNotStart) {
  ASSERT_NO_FATAL_FAILURE(start_tls(0));
  const ClientTls files = cluster_->certificate("controller", "2");
  const Finished done = run("controller/xce_controller",
                            {"--id", "1", "--peers", absl::StrCat("1=127.0.0.1:", free_port()),
                             "--data-dir", cluster_->dir() + "/other", "--tls-ca", files.ca,
                             "--tls-cert", files.cert, "--tls-key", files.key});
  EXPECT_EQ(done.code, 2);
  EXPECT_NE(done.err.find("certificate of controller 2"), std::string::npos) << done.err;
}

TEST_F(Tls, ARenewedCertificateIsUsedWithoutARestart) {
  ASSERT_NO_FATAL_FAILURE(start_tls(1));
  const std::string old = read_file(cluster_->dir() + "/pki/controller-1.crt");
  for (const char* name : {"1", "2", "3"})
    ASSERT_EQ(run("cli/xce", {"pki", "issue", cluster_->dir() + "/pki", "--role", "controller",
                              "--name", name})
                  .code,
              0);
  EXPECT_NE(read_file(cluster_->dir() + "/pki/controller-1.crt"), old);
  ASSERT_GE(kill_primary(), 0);  // everybody connects anew
  Client client(cluster_->masters(), 30000, cluster_->user_certificate());
  EXPECT_GT(client.submit("true", "renewed", cluster_->dir()), 0);
  EXPECT_TRUE(wait_until(
      [&] {
        const auto jobs = client.jobs();
        return !jobs.empty() && jobs.begin()->second.state == XCE_JOB_COMPLETED;
      },
      milliseconds(20000)));
}

}  // namespace
}  // namespace xce::e2e
