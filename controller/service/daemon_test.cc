// The whole controller in one process with the real log: elects itself, takes submissions, lists
// them, keeps them over a restart.
#include "controller/service/daemon.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <thread>

#include "controller/service/testing/test_client.h"
#include "xce/errnox.h"

namespace xce::service::testing {
namespace {

using Request = wire::Request::Builder;

class DaemonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/controller.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  DaemonOptions options() const {
    DaemonOptions out;
    out.listen_port = 0;
    out.catch_signals = false;
    out.consensus.self = 1;
    out.consensus.peers = {{1, "localhost", 9990}};
    out.consensus.data_dir = dir_ + "/data";
    out.consensus.seed = 1;
    out.port_file = dir_ + "/port";
    return out;
  }
  std::string dir_;
};

struct Running {
  explicit Running(const DaemonOptions& options) : daemon(options) {
    started = daemon.start();
    if (started.ok()) thread = std::thread([this] { daemon.run(); });
  }
  ~Running() {
    if (!thread.joinable()) return;
    daemon.stop();
    thread.join();
  }
  Daemon daemon;
  absl::Status started;
  std::thread thread;
};

// Hello until this node is ready, at most five seconds.
int hello(TestClient* client) {
  int status = client->hello(Role::kUser);
  for (int i = 0; status == E_XCE_NOT_READY && i < 500; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    auto again = client->call([](Request r) {
      auto hello = r.initOp().initHello();
      hello.setRole(wire::Role::USER);
      hello.setUser("ann");
      hello.setUid(1000);
    });
    status = again ? again->reply().getStatus() : -1;
  }
  return status;
}

size_t listed(TestClient* client) {
  auto answer = client->call([](Request r) { r.initOp().initJobList(); });
  return answer ? answer->reply().getBody().getJobs().getJobs().size() : 0;
}

TEST_F(DaemonTest, SubmitsAndListsAndRemembers) {
  {
    Running running(options());
    ASSERT_TRUE(running.started.ok()) << running.started;
    EXPECT_TRUE(std::filesystem::exists(dir_ + "/port"));
    TestClient client(running.daemon.port());
    ASSERT_EQ(hello(&client), 0);
    for (int i = 0; i < 10; ++i) {
      auto answer = client.submit("job");
      ASSERT_NE(answer, nullptr);
      ASSERT_EQ(answer->reply().getStatus(), 0) << answer->reply().getMessage().cStr();
    }
    EXPECT_EQ(listed(&client), 10u);
  }
  Running again(options());
  ASSERT_TRUE(again.started.ok()) << again.started;
  TestClient client(again.daemon.port());
  ASSERT_EQ(hello(&client), 0);
  EXPECT_EQ(listed(&client), 10u);
}

TEST_F(DaemonTest, AUsedPortIsNamed) {
  Running running(options());
  ASSERT_TRUE(running.started.ok()) << running.started;
  DaemonOptions second = options();
  second.listen_port = running.daemon.port();
  second.consensus.data_dir = dir_ + "/second";
  Running other(second);
  EXPECT_FALSE(other.started.ok());
  EXPECT_NE(other.started.ToString().find(std::to_string(running.daemon.port())),
            std::string::npos);
  EXPECT_NE(other.started.ToString().find("--listen"), std::string::npos);
}

}  // namespace
}  // namespace xce::service::testing
