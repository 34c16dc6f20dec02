// A Replica without a log: entries commit at once, or when the test says so. And the harness that
// puts a service, its loops and its port around it. Everything that is not said to be for any
// thread belongs to the loop's thread: use Harness::on_loop.
#ifndef XCE_CONTROLLER_SERVICE_TESTING_FAKE_REPLICA_H_
#define XCE_CONTROLLER_SERVICE_TESTING_FAKE_REPLICA_H_

#include <unistd.h>
#include <uv.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "controller/history/archive.h"
#include "controller/service/gateway.h"
#include "controller/service/replica.h"
#include "controller/service/runner.h"
#include "controller/service/service.h"
#include "controller/state/state.h"

namespace xce::service::testing {

class FakeReplica : public Replica {
 public:
  std::function<void(std::function<void()>)> later;  // runs something in a later turn of the loop
  std::function<void(Index, std::string_view)> apply;
  bool automatic = true;  // commits and barriers go through by themselves
  RoleView view{NodeRole::kLeader, 5, 1, true};
  size_t adopted = 0;  // peers' connections
  std::string adopted_bytes;
  size_t proposals = 0, barriers = 0;  // ever

  void propose(std::string entry, std::function<void(const Proposed&)> done) override {
    ++proposals;
    entries_.emplace_back(std::move(entry), std::move(done));
    if (automatic) later([this] { commit(); });
  }
  void barrier(std::function<void(bool)> done) override {
    ++barriers;
    barriers_.push_back(std::move(done));
    if (automatic) later([this] { pass_barriers(true); });
  }
  std::string transfer_failure;  // "": a transfer succeeds
  void transfer(uint64_t, std::function<void(const std::string&)> done) override {
    later([this, done] { done(transfer_failure); });
  }
  MembersChanged members_changed;  // what becomes of a change
  std::vector<MemberControl> wishes;
  void change_members(const MemberControl& wish, bool, Index,
                      std::function<void(const MembersChanged&)> done) override {
    wishes.push_back(wish);
    later([this, done] { done(members_changed); });
  }
  std::string backup_bytes = "backup";
  void backup(BackupReady ready) override {
    class Source final : public BackupSource {
     public:
      explicit Source(std::string bytes) : bytes_(std::move(bytes)) {}
      Index index() const override { return 7; }
      uint64_t total() const override { return bytes_.size(); }
      absl::StatusOr<std::string> read(uint64_t offset, size_t n) const override {
        return bytes_.substr(offset, n);
      }

     private:
      const std::string bytes_;
    };
    later([this, ready] { ready(std::make_unique<Source>(backup_bytes)); });
  }
  void adopt_peer(int fd, std::string already_read, std::shared_ptr<net::TlsSession>) override {
    ++adopted;
    adopted_bytes = std::move(already_read);
    ::close(fd);
  }
  RoleView role() const override { return view; }
  bool address_of(uint64_t node, std::string* host, uint16_t* port) const override {
    if (node != 2) return false;
    *host = "primary.example";
    *port = 4711;
    return true;
  }
  void describe(ClusterView* to) const override {
    to->nodes.push_back({1, "here", 1, "", true, 0, 0});
  }
  uint64_t cluster_id() const override { return 99; }

  void commit() {  // all that was proposed
    while (!entries_.empty()) {
      auto [entry, done] = std::move(entries_.front());
      entries_.pop_front();
      apply(++index_, entry);
      done({Proposed::kApplied, index_, view.term});
    }
  }
  void lose(Proposed::Kind kind) {
    for (auto& [entry, done] : std::exchange(entries_, {})) done({kind, 0, 0});
  }
  void pass_barriers(bool leader) {
    for (auto& done : std::exchange(barriers_, {})) done(leader);
  }
  size_t waiting() const { return entries_.size() + barriers_.size(); }

 private:
  Index index_ = 0;
  std::deque<std::pair<std::string, std::function<void(const Proposed&)>>> entries_;
  std::vector<std::function<void(bool)>> barriers_;
};

// An archive in memory that answers when the test says so, or in the next turn.
class FakeArchive : public history::Archive {
 public:
  std::function<void(std::function<void()>)> later;
  bool automatic = true;
  absl::Status failure;
  std::map<JobId, Job> jobs;
  size_t questions = 0;  // ever

  void add(Index, std::vector<Job> added) override {
    for (Job& job : added) jobs[job.id] = std::move(job);
  }
  void find(history::Query query,
            std::function<void(absl::StatusOr<history::Page>)> done) override {
    ++questions;
    waiting_.emplace_back(std::move(query), std::move(done));
    if (automatic) later([this] { answer(); });
  }
  void answer() {  // all that was asked
    for (auto& [query, done] : std::exchange(waiting_, {})) {
      if (failure.ok())
        done(page_of(query));
      else
        done(failure);
    }
  }
  size_t waiting() const { return waiting_.size(); }

 private:
  history::Page page_of(const history::Query& query) const {
    history::Page page;
    const auto visit = [&](const Job& job) {
      const JobFilter& filter = query.filter;
      const bool down = filter.descending;
      if (filter.after_id && (down ? job.id >= filter.after_id : job.id <= filter.after_id)) return;
      if (!filter.ids.empty() &&
          std::find(filter.ids.begin(), filter.ids.end(), job.id) == filter.ids.end())
        return;
      if (!matches(job, filter)) return;
      if (page.jobs.size() < query.max_jobs)
        page.jobs.push_back(job);
      else if (page.next_after_id == 0)
        page.next_after_id = page.jobs.back().id;
    };
    if (query.filter.descending)
      std::for_each(jobs.rbegin(), jobs.rend(), [&](const auto& each) { visit(each.second); });
    else
      std::for_each(jobs.begin(), jobs.end(), [&](const auto& each) { visit(each.second); });
    return page;
  }
  std::vector<std::pair<history::Query, std::function<void(absl::StatusOr<history::Page>)>>>
      waiting_;
};

class Harness {
 public:
  explicit Harness(ServiceOptions options = {}, Limits limits = {})
      : service_(
            std::move(options), Runner::clock(), &state_, &replica_,
            [this](std::vector<Outgoing> outgoing) { gateway_.post(std::move(outgoing)); },
            &archive_),
        gateway_(limits, nullptr,
                 [this](std::vector<Inbound> inbound) { runner_->post(std::move(inbound)); }) {
    uv_loop_init(&loop_);
    jobs_.open(&loop_, [](std::vector<std::function<void()>> jobs) {
      for (auto& job : jobs) job();
    });
    runner_ = std::make_unique<Runner>(&loop_, &service_);
    replica_.later = [this](std::function<void()> job) { jobs_.post(std::move(job)); };
    archive_.later = replica_.later;
    replica_.apply = [this](Index index, std::string_view entry) { service_.apply(index, entry); };
    if (!gateway_.listen("127.0.0.1", 0).ok()) std::abort();
    service_.role_changed(replica_.view);
    gateway_.start();
    thread_ = std::thread([this] { uv_run(&loop_, UV_RUN_DEFAULT); });
  }
  ~Harness() {
    gateway_.stop();
    on_loop([this] {
      runner_->close();
      jobs_.close();
    });
    thread_.join();
    uv_loop_close(&loop_);
  }

  uint16_t port() const { return gateway_.port(); }
  FakeReplica& replica() { return replica_; }
  FakeArchive& archive() { return archive_; }
  Service& service() { return service_; }
  const state::State& state() const { return state_; }

  // Any thread: runs something on the loop's thread and waits for it.
  void on_loop(std::function<void()> job) {
    std::promise<void> done;
    jobs_.post([&] {
      job();
      done.set_value();
    });
    done.get_future().wait();
  }
  void set_role(RoleView view) {
    on_loop([&] {
      replica_.view = view;
      service_.role_changed(view);
    });
  }
  // Waits until `condition`, evaluated on the loop, holds; false after five seconds.
  bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 1000; ++i) {
      bool holds = false;
      on_loop([&] { holds = condition(); });
      if (holds) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

 private:
  uv_loop_t loop_;
  Mailbox<std::function<void()>> jobs_;
  state::State state_;
  FakeReplica replica_;
  FakeArchive archive_;
  Service service_;
  std::unique_ptr<Runner> runner_;
  Gateway gateway_;
  std::thread thread_;
};

}  // namespace xce::service::testing

#endif  // XCE_CONTROLLER_SERVICE_TESTING_FAKE_REPLICA_H_
