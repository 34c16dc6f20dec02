// Disks that fail, stall, fill up or come back changed: the controller stops serving with words
// that name the file and the way out, the cluster goes on, and nothing that was acknowledged is
// lost.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "e2e/cluster/fixture.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {
namespace {

namespace fs = std::filesystem;

class Disk : public ClusterTest {
 protected:
  std::string data(int node) const { return absl::StrCat(cluster_->dir(), "/c", node + 1); }
  std::string log_of(int node) const {
    return absl::StrCat(cluster_->dir(), "/logs/controller", node + 1, ".log");
  }
  // What the controller has said since `from`, which moves on.
  std::string said(int node, size_t* from) const {
    const std::string all = read_file(log_of(node));
    std::string out = all.substr(std::min(*from, all.size()));
    *from = all.size();
    return out;
  }
  size_t log_size(int node) const { return read_file(log_of(node)).size(); }
  std::string said_by(int node) const { return read_file(log_of(node)); }
  void submit(int n, const std::string& script = "") {
    Client client(cluster_->masters());
    for (int i = 0; i < n; ++i) {
      const std::string name = absl::StrCat("job-", acknowledged_.size());
      const int64_t id = script.empty()
                             ? client.submit("true", name, cluster_->dir(), "key-" + name)
                             : submit_script(&client, name, script);
      ASSERT_GT(id, 0) << xce_errname(static_cast<int>(id));
      ASSERT_TRUE(acknowledged_.emplace(id, name).second) << "id " << id << " was given twice";
    }
  }
  int64_t submit_script(Client* client, const std::string& name, const std::string& script) {
    xce_job_spec_t spec;
    xce_job_spec_init(&spec);
    spec.name = name.c_str();
    spec.script = script.data();
    spec.script_len = script.size();
    spec.work_dir = "/tmp";
    spec.cpus = 1;
    return client->submit(spec);
  }
  void expect_everything() {
    Client client(cluster_->masters());
    const auto jobs = client.jobs();
    EXPECT_EQ(jobs.size(), acknowledged_.size());
    for (const auto& [id, name] : acknowledged_) {
      ASSERT_TRUE(jobs.count(id)) << "acknowledged job " << id << " is lost";
      EXPECT_EQ(jobs.at(id).name, name);
    }
  }
  // That controller's own word on its disk; empty when it does not answer.
  std::string disk_status(int node) {
    Client client(cluster_->address(node), 2000);
    xce_cluster_status_t* status = nullptr;
    if (xcecli_clusterstatus(client.ctx(), &status) < 0) return "";
    std::string disk = status->disk;
    xce_free_cluster_status(status);
    return disk;
  }
  // After a restart: that controller takes part again, so much that the cluster lives with it and
  // one other.
  void expect_whole_with(int node) {
    const int gone = (node + 1) % 3;
    cluster_->controller(gone).kill9();
    submit(3);
    ASSERT_TRUE(cluster_->start_controller(gone).ok());
    ASSERT_GE(cluster_->wait_primary(-1, milliseconds(20000)), 0);
    expect_everything();
  }
  std::map<int64_t, std::string> acknowledged_;
};

struct WriteError {
  int error;
  const char* way_out;
};

class DiskError : public Disk, public ::testing::WithParamInterface<WriteError> {};

TEST_P(DiskError, OfThePrimaryStopsItWithWordsAndNothingIsLost) {
  ClusterOptions options;
  options.faults = true;
  start(options);
  submit(5);
  const int primary = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(primary, 0);
  if (!cluster_->faults(primary).works()) GTEST_SKIP() << "no preloaded faults under a sanitizer";
  size_t from = log_size(primary);
  cluster_->faults(primary).set_write_error(GetParam().error);
  submit(10);
  const std::string words = said(primary, &from);
  EXPECT_NE(words.find("/log/"), std::string::npos) << "no file is named: " << words;
  EXPECT_NE(words.find(GetParam().way_out), std::string::npos) << words;
  EXPECT_TRUE(cluster_->controller(primary).alive()) << "it stays, to say why it does not serve";
  const std::string disk = disk_status(primary);
  EXPECT_NE(disk.find(std::strerror(GetParam().error)), std::string::npos) << disk;
  expect_everything();
  cluster_->faults(primary).set_write_error(0);
  cluster_->controller(primary).terminate();
  ASSERT_TRUE(cluster_->start_controller(primary).ok());
  expect_whole_with(primary);
}

INSTANTIATE_TEST_SUITE_P(Errors, DiskError,
                         ::testing::Values(WriteError{ENOSPC, "Free space"},
                                           WriteError{EIO, "replace the disk"},
                                           WriteError{EROFS, "remount"}),
                         [](const auto& info) { return absl::StrCat("errno", info.param.error); });

TEST_F(Disk, ThatStallsForTenSecondsStopsNobody) {
  ClusterOptions options;
  options.faults = true;
  start(options);
  submit(5);
  const int primary = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(primary, 0);
  if (!cluster_->faults(primary).works()) GTEST_SKIP() << "no preloaded faults under a sanitizer";
  const int standby = (primary + 1) % 3;
  cluster_->faults(standby).set_write_delay_ms(10000);
  auto begin = Clock::now();
  submit(5);
  EXPECT_LT(Clock::now() - begin, milliseconds(5000)) << "a standby's disk holds up nobody";
  cluster_->faults(standby).set_write_delay_ms(0);
  ASSERT_TRUE(wait_until([&] { return disk_status(standby) == "ok"; }, milliseconds(20000)));
  submit(5);
  cluster_->faults(primary).set_write_delay_ms(10000);
  begin = Clock::now();
  submit(5);
  EXPECT_LT(Clock::now() - begin, milliseconds(8000)) << "another one leads meanwhile";
  EXPECT_NE(cluster_->wait_primary(-1, milliseconds(10000)), primary);
  cluster_->faults(primary).set_write_delay_ms(0);
  submit(5);
  expect_everything();
  expect_whole_with(primary);
}

// A data directory that was changed while its controller was down.
struct Change {
  const char* name;
  bool refused;  // else it starts, and catches up
  std::function<void(const std::string& data)> make;
  const char* words;  // what the refusal says
};

std::vector<std::string> files(const std::string& directory, const std::string& extension) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(directory, error))
    if (file.path().extension() == extension) found.push_back(file.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

// The newest segment of a log that anything was written to.
std::string newest_segment(const std::string& data) {
  std::vector<std::string> segments = files(data + "/log", ".log");
  while (segments.size() > 1 &&
         read_file(segments.back()).find_first_not_of('\0') == std::string::npos)
    segments.pop_back();
  return segments.empty() ? "" : segments.back();
}

void flip(const std::string& path, size_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

// The first record of the newest segment.
void damage_log(const std::string& data) { flip(newest_segment(data), 512 + 100); }

// The last record's first sector is as if it had never been written, nor the mark.
void tear_tail(const std::string& data) {
  const std::string path = newest_segment(data);
  const std::string bytes = read_file(path);
  size_t end = bytes.find_last_not_of('\0');
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(end / 512 * 512));
  file.write(std::string(512, '\0').data(), 512);
  fs::remove(data + "/log/mark");
}

const Change kChanges[] = {
    {"LogBit", true, damage_log, "replace"},
    {"LogTornTail", false, tear_tail, ""},
    {"LogMissing", true, [](const auto& data) { fs::remove_all(data + "/log"); }, "/log"},
    {"MarkBit", false, [](const auto& data) { flip(data + "/log/mark", 3); }, ""},
    {"MarkMissing", false, [](const auto& data) { fs::remove(data + "/log/mark"); }, ""},
    {"IdentityBit", true, [](const auto& data) { flip(data + "/identity", 20); }, "/identity"},
    {"IdentityMissing", true, [](const auto& data) { fs::remove(data + "/identity"); },
     "/identity"},
    {"SnapshotBit", true,
     [](const auto& data) {
       for (const auto& file : fs::directory_iterator(data + "/snapshots"))
         flip(file.path().string(), 200);
     },
     ".snap"},
    {"SnapshotMissing", true, [](const auto& data) { fs::remove_all(data + "/snapshots"); },
     "/snapshots"},
};

TEST_F(Disk, ThatComesBackChangedIsRefusedInWordsOrMended) {
  ClusterOptions options;
  options.controller_args = {"--snapshot-log-bytes", "3000000", "--snapshot-trailing", "10"};
  start(options);
  // So much that the log's first segment goes: then a snapshot is the only copy of what it held.
  const std::string script = "#!/bin/sh\n" + std::string(100000, '#');
  submit(150, script);
  for (int node = 0; node < 3; ++node)
    ASSERT_TRUE(wait_until(
        [&] {
          const auto segments = files(data(node) + "/log", ".log");
          return !segments.empty() && segments[0].find("-000000000001.log") == std::string::npos &&
                 !files(data(node) + "/snapshots", ".snap").empty();
        },
        milliseconds(30000)))
        << said_by(node);
  int node = 0;
  for (const Change& change : kChanges) {
    SCOPED_TRACE(change.name);
    node = (node + 1) % 3;
    cluster_->controller(node).kill9();
    const std::string copy = cluster_->dir() + "/copy";
    fs::remove_all(copy);
    fs::copy(data(node), copy, fs::copy_options::recursive);
    change.make(data(node));
    size_t from = log_size(node);
    ASSERT_TRUE(cluster_->start_controller(node).ok());
    if (change.refused) {
      const int code = cluster_->controller(node).wait(milliseconds(10000));
      const std::string words = said(node, &from);
      EXPECT_EQ(code, 1) << words;
      EXPECT_NE(words.find(change.words), std::string::npos) << words;
      EXPECT_NE(words.find(absl::StrCat("/c", node + 1)), std::string::npos) << words;
      EXPECT_TRUE(words.find("xce cluster replace") != std::string::npos ||
                  words.find("copy") != std::string::npos)
          << "no way out: " << words;
    }
    submit(5);  // the others go on
    expect_everything();
    if (change.refused) {
      fs::remove_all(data(node));
      fs::copy(copy, data(node), fs::copy_options::recursive);
      ASSERT_TRUE(cluster_->start_controller(node).ok());
    }
    expect_whole_with(node);
    if (HasFailure()) break;
  }
}

TEST_F(Disk, ThatBelongsToSomebodyElseIsRefusedInWords) {
  start({});
  submit(3);
  const int node = 0;
  cluster_->controller(node).kill9();
  const bool root = geteuid() == 0;
  if (root) {  // who may read everything needs to become somebody who may not
    for (const auto& file : fs::recursive_directory_iterator(data(node)))
      ASSERT_EQ(chown(file.path().c_str(), 65534, 65534), 0);
    ASSERT_EQ(chown(data(node).c_str(), 65534, 65534), 0);
    for (fs::path up = data(node); up.has_relative_path(); up = up.parent_path())
      if (up != data(node)) chmod(up.c_str(), 0755);
    cluster_->set_launcher(node, {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                  "--clear-groups", "--inh-caps=-all"});
  }
  const std::string segment = newest_segment(data(node));
  for (const std::string& path : {segment, data(node) + "/identity"}) {
    SCOPED_TRACE(path);
    if (root) {
      ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
    }
    ASSERT_EQ(chmod(path.c_str(), root ? 0600 : 0000), 0);
    size_t from = log_size(node);
    ASSERT_TRUE(cluster_->start_controller(node).ok());
    const int code = cluster_->controller(node).wait(milliseconds(10000));
    const std::string words = said(node, &from);
    EXPECT_EQ(code, 1) << words;
    EXPECT_NE(words.find(path), std::string::npos) << words;
    EXPECT_NE(words.find("Give the user that runs the controller access"), std::string::npos)
        << words;
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
    if (root) {
      ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
    }
  }
  submit(3);
  ASSERT_TRUE(cluster_->start_controller(node).ok());
  expect_whole_with(node);
}

// A file system of 24 MiB of its own, in a namespace of its own.
TEST_F(Disk, ThatIsSmallFillsUp) {
  const std::string probe = make_temp_dir("tmpfs");
  const std::string mount = "mount -t tmpfs -o size=24m tmpfs \"$0\"";
  const bool may = run("/usr/bin/unshare", {"-r", "-m", "/bin/sh", "-c", mount, probe}).code == 0;
  remove_tree(probe);
  if (!may) GTEST_SKIP() << "no file system may be mounted here";
  start({});
  submit(3);
  const int node = cluster_->wait_primary(-1, milliseconds(10000));
  ASSERT_GE(node, 0);
  // Its directory moves onto a small file system.
  cluster_->controller(node).terminate();
  cluster_->set_launcher(node,
                         {"/usr/bin/unshare", "-r", "-m", "/bin/sh", "-c",
                          "cp -a \"$0\" \"$0.old\" && " + mount +
                              " && cp -a \"$0.old/.\" \"$0\" && chmod 700 \"$0\" && exec \"$@\"",
                          data(node)});
  size_t from = log_size(node);
  ASSERT_TRUE(cluster_->start_controller(node).ok());
  ASSERT_GE(cluster_->wait_primary(-1, milliseconds(20000)), 0);
  std::string words;
  Client client(cluster_->masters());
  const std::string script = "#!/bin/sh\n" + std::string(500000, '#');
  for (int i = 0; i < 80 && words.find("No space left") == std::string::npos; ++i) {
    const std::string name = absl::StrCat("job-", acknowledged_.size());
    const int64_t id = submit_script(&client, name, script);
    ASSERT_GT(id, 0) << xce_errname(static_cast<int>(id));
    acknowledged_[id] = name;
    words += said(node, &from);
  }
  ASSERT_TRUE(wait_until(
      [&] {
        words += said(node, &from);
        return words.find("No space left") != std::string::npos;
      },
      milliseconds(10000)))
      << words;
  EXPECT_NE(words.find("/log/"), std::string::npos) << words;
  EXPECT_NE(words.find("Free space"), std::string::npos) << words;
  submit(5);
  expect_everything();
}

}  // namespace
}  // namespace xce::e2e
