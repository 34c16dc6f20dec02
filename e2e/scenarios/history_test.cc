// Jobs that ended long ago are no longer in the controllers' memory but in each one's history:
// whole and in order, whichever controller dies at whatever moment, also on one that was away.

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {
namespace {

constexpr uint32_t kTasks = 4000;  // an array; the state keeps 10,000 ended jobs

class History : public ClusterTest {
 protected:
  static ClusterOptions options(int controllers) {
    ClusterOptions options;
    options.controllers = controllers;
    options.controller_args = {"--snapshot-log-bytes", "20000", "--snapshot-trailing", "3"};
    return options;
  }
  std::string said(int node) const {
    return read_file(absl::StrCat(cluster_->dir(), "/logs/controller", node + 1, ".log"));
  }
  // Submits an array and kills all of it: so many jobs have ended.
  void end_an_array(Client* client) {
    std::vector<uint32_t> indices;
    for (uint32_t i = 0; i < kTasks; ++i) indices.push_back(i);
    xce_job_spec_t spec;
    xce_job_spec_init(&spec);
    const char* args[] = {"/bin/true"};
    const std::string name = absl::StrCat("array-", arrays_);
    spec.args = args;
    spec.nargs = 1;
    spec.name = name.c_str();
    spec.array = indices.data();
    spec.narray = indices.size();
    uint32_t count = 0;
    const int64_t id = client->submit(spec, &count);
    ASSERT_EQ(id, int64_t{1} + arrays_ * kTasks);
    ASSERT_EQ(count, kTasks);
    ++arrays_;
    const auto array = static_cast<uint64_t>(id);
    const int rc = xcecli_jobctrl(client->ctx(), &array, 1, XCE_JOBCTRL_KILL, 0, true);
    ASSERT_GE(rc, 0) << xce_errname(rc);
  }
  // So much that who is away meanwhile gets a snapshot: also writes that change nothing.
  void outgrow_the_log(Client* client) {
    for (int i = 0; i < 4; ++i) end_an_array(client);
    const uint64_t array = 1;
    for (int i = 0; i < 400; ++i)
      (void)xcecli_jobctrl(client->ctx(), &array, 1, XCE_JOBCTRL_KILL, 0, true);
  }
  // All pages of jobhist.
  static std::vector<uint64_t> history(Client* client, xce_job_filter_t filter) {
    std::vector<uint64_t> ids;
    for (;;) {
      xce_job_page_t* page = nullptr;
      const int rc = xcecli_jobhist(client->ctx(), &filter, &page);
      EXPECT_EQ(rc, 0) << xce_errname(rc);
      if (rc != 0) return ids;
      for (size_t i = 0; i < page->njobs; ++i) {
        EXPECT_EQ(page->jobs[i].state, XCE_JOB_KILLED);
        ids.push_back(page->jobs[i].id);
      }
      filter.after_id = page->next_after_id;
      xce_free_job_page(page);
      if (filter.after_id == 0) return ids;
    }
  }
  // Makes a controller the primary.
  void lead(int node) {
    ASSERT_TRUE(wait_until(
        [&] {
          if (cluster_->primary() == node) return true;
          run("cli/xce", {"cluster", "transfer", "--to", absl::StrCat(node + 1)},
              {"XCE_MASTERS=" + cluster_->masters()});
          return false;
        },
        milliseconds(30000)))
        << said(node);
  }
  // Writes until the log has lost its first segment: it no longer reaches back to the beginning.
  void leave_the_beginning_behind() {
    const auto first = [&] {
      std::set<std::string> names;
      for (const auto& file :
           std::filesystem::directory_iterator(absl::StrCat(cluster_->dir(), "/c1/log")))
        if (file.path().extension() == ".log") names.insert(file.path().filename());
      return names.empty() ? std::string() : *names.begin();
    };
    const std::string was = first();
    ASSERT_NE(was, "");
    Client client(cluster_->masters());
    const std::string script = "#!/bin/sh\n" + std::string(900000, '#');
    xce_job_spec_t spec;
    xce_job_spec_init(&spec);
    spec.script = script.data();
    spec.script_len = script.size();
    for (int i = 0; i < 60 && first() == was; ++i) ASSERT_GT(client.submit(spec), 0);
    EXPECT_TRUE(wait_until([&] { return first() != was; }, milliseconds(20000)));
  }
  // Every job that ever ended, once and in order.
  void expect_all(Client* client) {
    const auto ids = history(client, {});
    ASSERT_EQ(ids.size(), size_t{arrays_} * kTasks);
    for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], i + 1);
  }
  uint32_t arrays_ = 0;
};

TEST_F(History, IsWholeWithFiltersAndOutlivesRestarts) {
  start(options(1));
  {
    Client client(cluster_->masters());
    for (int i = 0; i < 5; ++i) end_an_array(&client);
    expect_all(&client);
    xce_job_filter_t filter{};
    filter.name = "array-1";
    EXPECT_EQ(history(&client, filter).size(), kTasks);
    filter = {};
    filter.user = "nobody-of-that-name";
    EXPECT_EQ(history(&client, filter).size(), 0u);
    filter = {};
    filter.array_id = 1;
    filter.descending = true;
    const auto ids = history(&client, filter);
    ASSERT_EQ(ids.size(), kTasks);
    EXPECT_EQ(ids.front(), kTasks);
    EXPECT_EQ(ids.back(), 1u);
    xce_job_page_t* page = nullptr;
    ASSERT_EQ(xcecli_jobinfo(client.ctx(), 3, &page), 0);  // long ended
    EXPECT_STREQ(page->jobs[0].spec.name, "array-0");
    EXPECT_STREQ(page->jobs[0].spec.args[0], "/bin/true");
    const int64_t ended = page->jobs[0].end_ms;
    xce_free_job_page(page);
    filter = {};
    filter.until_ms = ended;
    EXPECT_EQ(history(&client, filter).size(), 0u);
    filter.until_ms = 0;
    filter.since_ms = ended;
    EXPECT_EQ(history(&client, filter).size(), 5 * kTasks);
  }
  for (int i = 0; i < 3; ++i) {
    cluster_->controller(0).kill9();
    ASSERT_TRUE(cluster_->start_controller(0).ok());
    ASSERT_GE(cluster_->wait_primary(-1, milliseconds(20000)), 0);
    Client client(cluster_->masters());
    expect_all(&client);
    end_an_array(&client);
  }
  // Without it the state is not whole, once the log no longer tells it all: that is said, with the
  // way out, and nothing is served.
  leave_the_beginning_behind();
  cluster_->controller(0).kill9();
  std::filesystem::remove_all(absl::StrCat(cluster_->dir(), "/c1/history"));
  ASSERT_TRUE(cluster_->start_controller(0).ok());
  EXPECT_EQ(cluster_->controller(0).wait(milliseconds(20000)), 1);
  EXPECT_TRUE(absl::StrContains(said(0), "c1/history ends at entry 0, before the snapshot"))
      << said(0);
  EXPECT_TRUE(absl::StrContains(said(0), "xce cluster replace")) << said(0);
}

TEST_F(History, TheCommandLineFindsThem) {
  start(options(1));
  Client client(cluster_->masters());
  for (int i = 0; i < 4; ++i) end_an_array(&client);
  const auto xce = [&](std::vector<std::string> args) {
    return run("cli/xce", args, {"XCE_MASTERS=" + cluster_->masters(), "NO_COLOR=1", "TZ=UTC"});
  };
  Finished out = xce({"history", "--limit", "2"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_TRUE(absl::StrContains(out.out, "1[3999]") || absl::StrContains(out.out, "[3999]"))
      << out.out;
  EXPECT_TRUE(absl::StrContains(out.err, "only the newest 2 jobs are shown")) << out.err;
  out = xce({"history", "1[0-2]", "--json"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_TRUE(absl::StrContains(out.out, "\"id\":3")) << out.out;
  EXPECT_FALSE(absl::StrContains(out.out, "\"id\":4")) << out.out;
  out = xce({"history", "--until", "1h"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_FALSE(absl::StrContains(out.out, "array-0")) << out.out;
  out = xce({"job", "1[0]"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_TRUE(absl::StrContains(out.out, "KILLED")) << out.out;
  out = xce({"job", "1"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_TRUE(absl::StrContains(out.out, absl::StrCat(kTasks))) << out.out;
  out = xce({"wait", "1[0]", "--timeout", "10"});
  EXPECT_EQ(out.code, 143) << out.err;
  out = xce({"kill", "1[0]"});
  EXPECT_EQ(out.code, 0) << out.err;
  out = xce({"history", "-s", "running"});
  EXPECT_EQ(out.code, 2) << out.err;
  out = xce({"history", "--since", "soon"});
  EXPECT_EQ(out.code, 2) << out.err;
}

TEST_F(History, AStandbyThatWasAwayGetsIt) {
  start(options(3));
  const int primary = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(primary, 0);
  const int away = (primary + 1) % 3;
  Client client(cluster_->masters());
  end_an_array(&client);
  cluster_->controller(away).kill9();
  outgrow_the_log(&client);
  ASSERT_TRUE(cluster_->start_controller(away).ok());
  ASSERT_TRUE(wait_until([&] { return absl::StrContains(said(away), "installed the snapshot"); },
                         milliseconds(20000)))
      << said(away);
  lead(away);
  expect_all(&client);
}

struct Point {
  const char* at;
  bool install;  // needs a snapshot from another controller
};

class HistoryCrash : public History, public ::testing::WithParamInterface<Point> {};

TEST_P(HistoryCrash, LosesNothing) {
  start(options(3));
  const int primary = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(primary, 0);
  const int node = (primary + 1) % 3;
  Client client(cluster_->masters(), 60000);
  for (int i = 0; i < 3; ++i) end_an_array(&client);
  cluster_->controller(node).kill9();
  if (GetParam().install) outgrow_the_log(&client);
  cluster_->set_environment(node, {absl::StrCat("XCE_CRASH_AT=", GetParam().at)});
  ASSERT_TRUE(cluster_->start_controller(node).ok()) << said(node);
  for (int i = 0; i < 20 && cluster_->controller(node).alive(); ++i) end_an_array(&client);
  ASSERT_TRUE(wait_until([&] { return !cluster_->controller(node).alive(); }, milliseconds(20000)))
      << "it never came to " << GetParam().at;
  end_an_array(&client);
  cluster_->controller(node).kill9();
  cluster_->set_environment(node, {});
  ASSERT_TRUE(cluster_->start_controller(node).ok()) << said(node);
  end_an_array(&client);
  lead(node);
  expect_all(&client);
}

const Point kPoints[] = {
    {"history.before_write:2", false},
    {"history.after_write:2", false},
    // The snapshot has its name, and what it leaves out is not safe yet.
    {"history.before_sync:1", false},
    {"snapshot.after_rename:1", false},
    {"history.before_import:1", true},
    {"history.after_import:1", true},
};
INSTANTIATE_TEST_SUITE_P(Points, HistoryCrash, ::testing::ValuesIn(kPoints), [](const auto& info) {
  std::string name = info.param.at;
  for (char& c : name)
    if (c == '.' || c == ':') c = '_';
  return name;
});

TEST_F(History, KillsAtAnyMomentLoseNothing) {
  start(options(3));
  std::atomic<bool> stop{false};
  std::atomic<int> ended{0};
  std::thread worker([&] {
    Client client(cluster_->masters(), 60000);
    while (!stop && !HasFatalFailure() && arrays_ < 100) {
      end_an_array(&client);
      ++ended;
    }
    stop = true;
  });
  for (int kill = 0; kill < 8; ++kill) {
    const int node = kill % 2 == 1 ? cluster_->wait_primary(-1, milliseconds(20000)) : kill % 3;
    EXPECT_GE(node, 0);
    if (node < 0) break;
    cluster_->controller(node).kill9();
    int enough = ended + 1 + kill % 3;
    EXPECT_TRUE(wait_until([&] { return ended >= enough || stop; }, milliseconds(30000)));
    EXPECT_TRUE(cluster_->start_controller(node).ok()) << said(node);
    enough = ended + 1;
    EXPECT_TRUE(wait_until([&] { return ended >= enough || stop; }, milliseconds(30000)));
  }
  stop = true;
  worker.join();
  ASSERT_GE(cluster_->wait_primary(-1, milliseconds(20000)), 0);
  Client client(cluster_->masters());
  for (int node = 0; node < 3; ++node) {
    EXPECT_TRUE(cluster_->controller(node).alive()) << said(node);
    lead(node);  // each answers from its own
    expect_all(&client);
  }
}

}  // namespace
}  // namespace xce::e2e
