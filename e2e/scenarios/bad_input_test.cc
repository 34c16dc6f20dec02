// Bad input to the daemons: a clear message that says what to do, the others unaffected, nothing
// lost.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"
#include "libxce/net/frame.h"

namespace xce::e2e {
namespace {

constexpr char kController[] = "controller/xce_controller";

class BadInput : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    dir_ = make_temp_dir("bad");
  }
  void TearDown() override {
    ClusterTest::TearDown();
    remove_tree(dir_);
  }
  // Runs the program, which must refuse: with `code`, and with `word` in what it says.
  void refuses(const std::string& program, const std::vector<std::string>& args, int code,
               const std::string& word) {
    const Finished finished = run(program, args, {}, "", milliseconds(10000));
    EXPECT_EQ(finished.code, code) << program << ": " << finished.err << finished.out;
    EXPECT_TRUE(absl::StrContains(finished.err + finished.out, word))
        << "no '" << word << "' in: " << finished.err << finished.out;
  }
  int connect_to(const std::string& address) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    to.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
  }
  std::string dir_;
};

TEST_F(BadInput, ControllerFlags) {
  const std::string data = dir_ + "/c";
  refuses(kController, {"--no-such-flag"}, 2, "no-such-flag");
  refuses(kController, {"--id", "1", "--peers", "1=127.0.0.1:9990,2=nonsense", "--data-dir", data},
          2, "nonsense");
  refuses(kController,
          {"--id", "1", "--peers", "1=127.0.0.1:1,1=127.0.0.1:2,3=127.0.0.1:3", "--data-dir", data},
          2, "1");
  refuses(kController,
          {"--id", "9", "--peers", "1=127.0.0.1:1,2=127.0.0.1:2,3=127.0.0.1:3", "--data-dir", data},
          2, "9");
  refuses(kController, {"--single", "--listen", "192.0.2.1:9990", "--data-dir", data}, 2,
          "loopback");
  refuses(kController, {"--single", "--listen", "127.0.0.1:0", "--data-dir", "/proc/nowhere"}, 1,
          "/proc/nowhere");
  refuses("worker/xcecd", {"--peers", "a:b:c:d"}, 2, "a:b:c:d");
  refuses("scheduler/xce_scheduler", {"--peers", "host:99999"}, 2, "host:99999");
}

TEST_F(BadInput, UsedPortAndForeignDataDirectory) {
  ClusterOptions options;
  start(options);
  refuses(kController,
          {"--single", "--listen", cluster_->address(0), "--data-dir", dir_ + "/other"}, 1,
          "in use");
  // The directory of a live node, then of another node.
  refuses(kController,
          {"--single", "--listen", "127.0.0.1:0", "--data-dir", cluster_->dir() + "/c1"}, 1, "c1");
  cluster_->controller(0).kill9();
  refuses(kController,
          {"--id", "2", "--listen", cluster_->address(0), "--peers",
           absl::StrCat("1=", cluster_->address(1), ",2=", cluster_->address(0),
                        ",3=", cluster_->address(2)),
           "--data-dir", cluster_->dir() + "/c1"},
          1, "c1");
  ASSERT_TRUE(cluster_->start_controller(0).ok());
  Client client(cluster_->masters());
  EXPECT_GT(client.submit("true", "still works", dir_), 0);
}

TEST_F(BadInput, GarbageAndHalfFramesDisturbNobody) {
  start({});
  Client client(cluster_->masters());
  ASSERT_GT(client.submit("true", "one", dir_), 0);
  const int primary = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(primary, 0);
  std::vector<int> open;
  std::string garbage(65536, '\xa5');
  std::string half = std::string(net::kClientPreamble, net::kPreambleSize);
  std::string frame;
  net::append_frame(std::string(64, '\0'), &frame);
  std::string huge = half + frame.substr(0, 16);
  huge[net::kPreambleSize + 11] = '\x7f';  // a length of two gigabytes
  for (const std::string& bytes : {garbage, half, half + frame.substr(0, 20), half + frame, huge,
                                   std::string("GET / HTTP/1.1\r\n\r\n")}) {
    const int fd = connect_to(cluster_->address(primary));
    EXPECT_GT(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    open.push_back(fd);
  }
  for (int i = 0; i < 20; ++i) EXPECT_GT(client.submit("true", "more", dir_), 0);
  for (int fd : open) close(fd);
  EXPECT_TRUE(cluster_->controller(primary).alive());
  EXPECT_EQ(cluster_->primary(), primary);
  EXPECT_EQ(client.jobs().size(), 21u);
}

TEST_F(BadInput, ARequestOverTheLimitIsRefusedAndTheClientGoesOn) {
  start({});
  Client client(cluster_->masters(), 5000);
  const std::string script = "#!/bin/sh\n" + std::string(8 * 1024 * 1024, '#');
  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  spec.script = script.data();
  spec.script_len = script.size();
  spec.work_dir = "/tmp";
  EXPECT_EQ(client.submit(spec), -E_XCE_INVALID);
  EXPECT_GT(client.submit("true", "after", dir_), 0);
  EXPECT_EQ(client.jobs().size(), 1u);
}

TEST_F(BadInput, AControllerThatCannotWriteItsDiskStopsServingAndSaysWhy) {
  // RLIMIT_FSIZE makes every write past the limit fail with EFBIG: a full disk without root.
  start({});
  Client client(cluster_->masters());
  ASSERT_GT(client.submit("true", "before", dir_), 0);
  const int primary = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(primary, 0);
  const std::string fd_limit = absl::StrCat("--pid=", cluster_->controller(primary).pid());
  const Finished limited = run("/usr/bin/prlimit", {fd_limit, "--fsize=4096"});
  ASSERT_EQ(limited.code, 0) << limited.err;
  for (int i = 0; i < 20; ++i) EXPECT_GT(client.submit("true", "after", dir_), 0);
  EXPECT_EQ(client.jobs().size(), 21u);
  const std::string log =
      read_file(absl::StrCat(cluster_->dir(), "/logs/controller", primary + 1, ".log"));
  EXPECT_TRUE(absl::StrContains(log, "File too large") || absl::StrContains(log, "log/")) << log;
}

}  // namespace
}  // namespace xce::e2e
