// A cluster of controllers' consensus parts on one loop, over real loopback sockets with ports that
// the kernel picks.
#ifndef XCE_CONTROLLER_CONSENSUS_TEST_CLUSTER_H_
#define XCE_CONTROLLER_CONSENSUS_TEST_CLUSTER_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/consensus/consensus.h"
#include "controller/consensus/test_proxy.h"
#include "controller/consensus/uv_handle.h"
#include "libxce/net/tls.h"

namespace xce::consensus {

// A directory of its own for one test, removed at its end.
class TestDirectory {
 public:
  TestDirectory() {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string pattern = std::string(base != nullptr ? base : "/tmp") + "/consensus-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// One node: a listening socket that stays the same over restarts, and a state machine that records.
class TestNode final : public StateMachine, public Listener {
 public:
  TestNode(uv_loop_t* loop, NodeId id) : loop_(loop), id_(id) {
    listen_fd_ = make_listener(0);
    sockaddr_in address{};
    socklen_t length = sizeof address;
    ::getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
  }
  ~TestNode() override {
    kill();
    if (listen_fd_ >= 0) ::close(listen_fd_);
  }

  absl::Status start(Options options) {
    applied.clear();
    restores = 0;
    fatal = absl::OkStatus();
    if (listen_fd_ < 0) listen_fd_ = make_listener(port_);
    options.self = id_;
    tls_ = options.tls;
    options.seed = id_ * 7919;
    consensus = std::make_unique<Consensus>(loop_, std::move(options), this, this);
    absl::Status status = consensus->start();
    if (!status.ok()) {
      consensus.reset();
      return status;
    }
    poll_ = new uv_poll_t;
    uv_poll_init(loop_, poll_, listen_fd_);
    poll_->data = this;
    uv_poll_start(poll_, UV_READABLE, [](uv_poll_t* poll, int, int) {
      auto* const node = static_cast<TestNode*>(poll->data);
      const int fd = ::accept4(node->listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) return;
      if (node->accepting && node->consensus != nullptr) {
        node->consensus->adopt_peer(fd, "", node->session());
      } else {
        ::close(fd);
      }
    });
    return status;
  }

  // As a killed process: connections end and the port refuses.
  void kill() {
    close_handle(poll_);
    if (listen_fd_ >= 0) ::close(listen_fd_);
    listen_fd_ = -1;
    consensus.reset();
  }

  void apply(uint64_t index, uint64_t term, std::string_view entry) override {
    if (!applied.empty()) {
      EXPECT_GT(index, applied.rbegin()->first);
    }
    applied[index] = {term, std::string(entry)};
  }
  // Its whole state, which is everything that was ever applied.
  bool save(const std::function<bool(std::string_view)>& write) const override {
    for (const auto& [index, entry] : applied) {
      const uint64_t head[3] = {index, entry.first, entry.second.size()};
      if (!write({reinterpret_cast<const char*>(head), sizeof head}) || !write(entry.second))
        return false;
    }
    return true;
  }
  absl::StatusOr<std::unique_ptr<Restored>> load(
      const std::function<size_t(char*, size_t)>& read) override {
    const auto read_all = [&](char* to, size_t n) {
      size_t have = 0;
      for (size_t got = 1; have < n && got > 0; have += got) got = read(to + have, n - have);
      return have == n;
    };
    auto state = std::make_unique<State>();
    uint64_t head[3];
    while (read_all(reinterpret_cast<char*>(head), sizeof head)) {
      std::string entry(head[2], '\0');
      if (!read_all(entry.data(), entry.size())) return absl::DataLossError("cut short");
      state->applied[head[0]] = {head[1], std::move(entry)};
    }
    if (!state->applied.empty() && state->applied.rbegin()->first > held_upto)
      return absl::OutOfRangeError("what is kept ends before the snapshot");
    return state;
  }
  void keep(uint64_t index) override { asked_to_keep = index; }
  uint64_t kept() const override { return kept_upto; }
  uint64_t holds() const override { return told_upto; }
  void pack(uint64_t after, std::function<void(absl::StatusOr<std::string>)> done) override {
    packed_after = after;
    if (to_pack.empty()) return done(std::string());
    const std::string path = pack_directory + "/pack";
    std::ofstream(path) << to_pack;
    done(path);
  }
  absl::Status unpack(const std::string& path) override {
    std::ifstream file(path);
    unpacked.assign(std::istreambuf_iterator<char>(file), {});
    held_upto = UINT64_MAX;
    return absl::OkStatus();
  }
  void restore(uint64_t index, Restored* state) override {
    applied.swap(static_cast<State*>(state)->applied);
    EXPECT_LE(applied.empty() ? 0 : applied.rbegin()->first, index);
    restores++;
  }
  void on_role(const RoleInfo& role) override { roles.push_back(role); }
  void on_fatal(absl::Status status) override { fatal = std::move(status); }

  NodeId id() const { return id_; }
  uint16_t port() const { return port_; }
  bool leads() const { return consensus && consensus->role().ready; }
  std::vector<std::string> entries() const {
    std::vector<std::string> out;
    for (const auto& [index, entry] : applied) out.push_back(entry.second);
    return out;
  }

  std::unique_ptr<Consensus> consensus;
  std::map<uint64_t, std::pair<uint64_t, std::string>> applied;  // index -> term, entry
  std::vector<RoleInfo> roles;
  absl::Status fatal;
  int restores = 0;  // states taken from a snapshot since the start
  bool accepting = true;

  // What it keeps beside its snapshots. Until told otherwise, everything is kept at once.
  uint64_t kept_upto = UINT64_MAX, asked_to_keep = 0;
  std::atomic<uint64_t> held_upto{UINT64_MAX};  // snapshots beyond it are not loaded
  uint64_t told_upto = 0;                       // in hello
  std::string pack_directory, to_pack, unpacked;
  uint64_t packed_after = UINT64_MAX;

 private:
  struct State final : Restored {
    std::map<uint64_t, std::pair<uint64_t, std::string>> applied;
  };

  static int make_listener(uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd, 64), 0);
    return fd;
  }

  // As the gateway makes it, but not established yet.
  std::shared_ptr<net::TlsSession> session() const {
    if (tls_ == nullptr) return nullptr;
    std::string complaint;
    return std::make_shared<net::TlsSession>(tls_->current(&complaint),
                                             net::TlsSession::Side::kServer);
  }

  uv_loop_t* const loop_;
  const NodeId id_;
  std::shared_ptr<net::TlsCredentials> tls_;
  int listen_fd_ = -1;
  uint16_t port_ = 0;
  uv_poll_t* poll_ = nullptr;
};

class TestCluster {
 public:
  explicit TestCluster(unsigned n, size_t segment_bytes = size_t{256} << 10) {
    uv_loop_init(&loop_);
    for (unsigned i = 0; i < n; i++) nodes_.push_back(std::make_unique<TestNode>(&loop_, i + 1));
    for (const auto& node : nodes_)
      options_.peers.push_back({node->id(), "127.0.0.1", node->port()});
    options_.segment_bytes = segment_bytes;
  }
  ~TestCluster() {
    nodes_.clear();
    links_.clear();
    while (uv_run(&loop_, UV_RUN_NOWAIT) != 0) {
    }
    EXPECT_EQ(uv_loop_close(&loop_), 0);
  }

  // Puts a proxy between every two nodes, one for each direction of dialling. Before start_all().
  void use_proxies() {
    for (const auto& from : nodes_)
      for (const auto& to : nodes_)
        if (from != to)
          links_[{from->id(), to->id()}] = std::make_unique<TestProxy>(&loop_, to->port());
  }
  // The proxy that `from` dials to reach `to`.
  TestProxy& link(NodeId from, NodeId to) { return *links_.at({from, to}); }
  // Does the same to all links to and from a node.
  void with_links_of(NodeId id, const std::function<void(TestProxy&)>& action) {
    for (const auto& [ends, proxy] : links_)
      if (ends.first == id || ends.second == id) action(*proxy);
  }
  // Gives a node a certificate, from its next start on.
  void use_certificate(NodeId id, std::shared_ptr<net::TlsCredentials> tls) {
    certificates_[id] = std::move(tls);
  }
  // Gives a node another file system, from its next start on.
  void use_file_system(NodeId id, FileSystem* fs) { file_systems_[id] = fs; }

  // One more node, which is to join: to be started, then added.
  TestNode& add_node() {
    nodes_.push_back(std::make_unique<TestNode>(&loop_, nodes_.size() + 1));
    return *nodes_.back();
  }
  // From its next start on a node has an empty data directory.
  void lose_disk(NodeId id) { ++disks_[id]; }
  // The wish, asked of whoever leads, until it is answered by one that may.
  absl::Status change(const MemberChange& wish, uint64_t timeout_ms = 20000) {
    absl::Status status = absl::UnavailableError("nobody leads");
    bool asked = false, lost = false;
    run_until(
        [&] {
          if (asked) return false;
          if (!absl::IsUnavailable(status) && !absl::IsCancelled(status)) return true;
          lost = lost || absl::IsCancelled(status);
          TestNode* const first = leader();
          if (first == nullptr) return false;
          MemberChange again = wish;
          again.resent = again.resent || lost;
          asked = true;
          first->consensus->change_members(again, [&](absl::Status s) {
            status = std::move(s);
            asked = false;
          });
          return false;
        },
        timeout_ms);
    EXPECT_FALSE(asked) << "the change was not answered";
    return asked ? absl::DeadlineExceededError("no answer") : status;
  }
  MemberChange add(NodeId id, uint16_t port = 0) {
    return {MemberChange::kAdd, id, "127.0.0.1", port != 0 ? port : node(id).port()};
  }
  static MemberChange remove(NodeId id) { return {MemberChange::kRemove, id, "", 0}; }
  static MemberChange replace(NodeId id) { return {MemberChange::kReplace, id, "", 0}; }

  Options options(NodeId id) const {
    Options out = options_;
    const auto disk = disks_.find(id);
    out.data_dir = directory_.path() + "/node" + std::to_string(id) +
                   (disk != disks_.end() ? "-" + std::to_string(disk->second) : "");
    if (id > options_.peers.size()) {
      out.join = true;
      out.advertise_host = "127.0.0.1";
      out.advertise_port = nodes_[id - 1]->port();
    }
    for (const auto& [ends, proxy] : links_)
      if (ends.first == id) out.dial[ends.second] = {"127.0.0.1", proxy->port()};
    const auto fs = file_systems_.find(id);
    if (fs != file_systems_.end()) out.fs = fs->second;
    const auto tls = certificates_.find(id);
    if (tls != certificates_.end()) out.tls = tls->second;
    return out;
  }
  void start_all() {
    for (const auto& node : nodes_) {
      const absl::Status status = node->start(options(node->id()));
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  absl::Status start(NodeId id) { return node(id).start(options(id)); }

  // Runs the loop until the predicate holds; false after 10 s.
  bool run_until(const std::function<bool()>& predicate, uint64_t timeout_ms = 10000) {
    const uint64_t deadline = uv_hrtime() + timeout_ms * 1000000;
    uv_timer_t* const tick = new uv_timer_t;  // so that a poll never outlasts the deadline
    uv_timer_init(&loop_, tick);
    uv_timer_start(
        tick, [](uv_timer_t*) {}, 20, 20);
    bool held = predicate();
    while (!held && uv_hrtime() < deadline) {
      uv_run(&loop_, UV_RUN_ONCE);
      held = predicate();
    }
    uv_timer_t* closing = tick;
    close_handle(closing);
    return held;
  }

  // The one ready leader, or nullptr.
  TestNode* leader() {
    for (const auto& node : nodes_)
      if (node->leads()) return node.get();
    return nullptr;
  }
  TestNode* wait_for_leader() {
    EXPECT_TRUE(run_until([&] { return leader() != nullptr; }));
    return leader();
  }
  // Runs until every node that runs has applied what the leader has.
  bool wait_until_equal() {
    return run_until([&] {
      const TestNode* const first = leader();
      if (first == nullptr) return false;
      for (const auto& node : nodes_)
        if (node->consensus && (node->applied != first->applied ||
                                node->consensus->applied() != first->consensus->applied()))
          return false;
      return true;
    });
  }
  bool all_connected() {
    for (const auto& node : nodes_) {
      if (!node->consensus) continue;
      for (const PeerStatus& peer : node->consensus->peers())
        if (!peer.connected && nodes_[peer.id - 1]->consensus) return false;
    }
    return true;
  }
  // Waits for a leader, and until all nodes that run are connected and have applied the same.
  TestNode* settle() {
    TestNode* const first = wait_for_leader();
    EXPECT_TRUE(run_until([&] { return all_connected(); }));
    EXPECT_TRUE(wait_until_equal());
    return first != nullptr && first->leads() ? first : leader();
  }
  void run_for(uint64_t ms) {
    run_until([] { return false; }, ms);
  }
  // Proposes on a node and runs until it is answered.
  Outcome propose(TestNode& node, const std::string& entry) {
    Outcome outcome;
    bool done = false;
    node.consensus->propose(entry, [&](Outcome o) {
      outcome = o;
      done = true;
    });
    EXPECT_TRUE(run_until([&] { return done; }));
    return outcome;
  }

  TestNode& node(NodeId id) { return *nodes_[id - 1]; }
  std::vector<std::unique_ptr<TestNode>>& nodes() { return nodes_; }
  uv_loop_t* loop() { return &loop_; }
  Options& shared_options() { return options_; }
  const std::string& path() const { return directory_.path(); }

 private:
  uv_loop_t loop_;
  TestDirectory directory_;
  Options options_;
  std::vector<std::unique_ptr<TestNode>> nodes_;
  std::map<std::pair<NodeId, NodeId>, std::unique_ptr<TestProxy>> links_;
  std::map<NodeId, FileSystem*> file_systems_;
  std::map<NodeId, int> disks_;
  std::map<NodeId, std::shared_ptr<net::TlsCredentials>> certificates_;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_TEST_CLUSTER_H_
