// Random clusters and workloads, seeded: whatever happens, hosts are never given away twice, limits
// hold, and jobs that are alike start in the order in which they came.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "scheduler/policy/policy_testutil.h"

namespace xce::sched {
namespace {

class Chaos {
 public:
  explicit Chaos(uint64_t seed) : random_(seed) {
    const int hosts = between(1, 5);
    for (int i = 0; i < hosts; ++i) {
      const std::string name = "h" + std::to_string(i);
      Host& host = hosts_[name];
      host.attrs.name = name;
      host.attrs.cpus = between(1, 16);
      host.attrs.memory_mb = between(1, 16) * 1000;
      if (between(0, 1)) host.attrs.gres = {{"gpu", static_cast<uint32_t>(between(1, 4))}};
      tell_host(name);
    }
    s.queue("default").max_running_per_user = between(0, 1) * between(1, 5);
    s.queue("fast").priority = 3;
    s.queue("fast").max_running = between(0, 1) * between(1, 5);
  }

  void step() {
    s.now_ms += between(1, 5000);
    const int what = between(0, 9);
    if (what < 5) submit();
    if (what == 5 || what == 6) end_one();
    if (what == 7) drain_or_resume();
    if (what == 8) lose_and_roll_back();
    std::vector<JobId> started = s.round();
    check(started);
  }

 private:
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void tell_host(const std::string& name) {
    hosts_[name].modify_index = ++s.revision;
    s.view.put_host(hosts_[name]);
  }

  void submit() {
    Job& job = s.job(++last_id_, between(1, 6));
    job.spec.memory_mb = between(0, 3) * 500;
    job.spec.nodes = between(0, 9) == 0 ? 2 : 1;
    job.spec.exclusive = between(0, 19) == 0;
    job.spec.user = between(0, 1) ? "ann" : "bob";
    job.spec.queue = between(0, 3) ? "default" : "fast";
    job.spec.time_limit_s = between(0, 2) * 10;
    job.spec.priority = between(0, 2);
    if (between(0, 9) == 0) job.spec.gres = {{"gpu", 1}};
    if (between(0, 9) == 0 && last_id_ > 1)
      job.spec.dependencies = {{DependencyKind::kAfterAny, last_id_ - 1}};
    s.tell();
  }

  std::vector<JobId> running() {
    std::vector<JobId> ids;
    for (const auto& [id, job] : s.jobs) {
      if (job.state == JobState::kRunning) ids.push_back(id);
    }
    return ids;
  }

  void end_one() {
    const std::vector<JobId> ids = running();
    if (!ids.empty()) s.end(ids[between(0, static_cast<int>(ids.size()) - 1)], JobState::kFailed);
  }

  void drain_or_resume() {
    auto it = std::next(hosts_.begin(), between(0, static_cast<int>(hosts_.size()) - 1));
    it->second.drained = !it->second.drained;
    it->second.state = it->second.drained ? HostState::kDrained : HostState::kUp;
    tell_host(it->first);
  }

  void lose_and_roll_back() {
    for (const Dispatch& d : run_round(&s.view, s.now_ms).dispatches)
      s.view.roll_back(d.job, d.attempt, 0);
  }

  void check(const std::vector<JobId>& started) {
    std::map<std::string, Amounts> left;
    std::map<std::string, int> jobs_on, exclusive_on;
    for (const auto& [name, host] : hosts_)
      left[name] = Amounts{host.attrs.cpus, host.attrs.memory_mb, host.attrs.gres};
    std::map<std::string, uint32_t> of_queue;
    std::map<std::pair<std::string, std::string>, uint32_t> of_user;
    for (const JobId id : running()) {
      const Job& job = s.jobs[id];
      ASSERT_EQ(job.allocs.size(), std::max<uint32_t>(job.spec.nodes, 1));
      ++of_queue[job.spec.queue];
      ++of_user[{job.spec.queue, job.spec.user}];
      for (const Alloc& a : job.allocs) {
        Need need{a.cpus, a.memory_mb, a.gres, false};
        ASSERT_TRUE(left[a.host].fits(need))
            << "host " << a.host << " is given away twice by job " << id;
        left[a.host].take(a);
        ++jobs_on[a.host];
        exclusive_on[a.host] += job.spec.exclusive;
      }
    }
    for (const auto& [host, n] : exclusive_on) ASSERT_TRUE(n == 0 || jobs_on[host] == 1);
    const uint32_t per_user = s.queue("default").max_running_per_user;
    for (const auto& [who, n] : of_user)
      ASSERT_TRUE(who.first != "default" || per_user == 0 || n <= per_user);
    const uint32_t fast = s.queue("fast").max_running;
    ASSERT_TRUE(fast == 0 || of_queue["fast"] <= fast);
    for (const JobId id : started) {
      for (const Alloc& a : s.jobs[id].allocs) ASSERT_FALSE(hosts_[a.host].drained);
      for (const auto& [other, job] : s.jobs) {
        if (other >= id || job.state != JobState::kPending || !job.spec.dependencies.empty())
          continue;
        ASSERT_FALSE(alike(job, s.jobs[id])) << "job " << id << " overtook job " << other;
      }
    }
  }

  static bool alike(const Job& a, const Job& b) {
    const JobSpec &x = a.spec, &y = b.spec;
    return x.cpus == y.cpus && x.memory_mb == y.memory_mb && x.nodes == y.nodes &&
           x.exclusive == y.exclusive && x.user == y.user && x.queue == y.queue &&
           x.time_limit_s == y.time_limit_s && x.priority == y.priority && x.gres == y.gres;
  }

  std::mt19937_64 random_;
  Story s;
  std::map<std::string, Host> hosts_;
  JobId last_id_ = 0;
};

TEST(Property, NeverOverAllocatesNorOvertakes) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Chaos chaos(seed);
    for (int i = 0; i < 150; ++i) {
      chaos.step();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// The start that EASY promises to the job at the head of the line, when it comes there first, is
// kept whatever is backfilled and however early jobs end.
TEST(Property, EasyNeverDelaysTheHeadOfTheLine) {
  size_t promises = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto between = [&random](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    Story s;
    const int hosts = between(1, 3);
    for (int i = 0; i < hosts; ++i) s.host("h" + std::to_string(i), 8);
    std::map<JobId, int64_t> ends, promised;
    for (JobId id = 1; id <= 150; ++id) {
      Job& job = s.job(id, between(1, 8));
      job.spec.nodes = between(0, 4) == 0 ? between(1, hosts) : 1;
      job.spec.time_limit_s = between(1, 100);
      s.tell(id);
      s.now_ms += between(0, 20'000);
      for (auto it = ends.begin(); it != ends.end();) {
        if (it->second > s.now_ms) {
          ++it;
          continue;
        }
        s.end(it->first);
        it = ends.erase(it);
      }
      for (const JobId started : s.round()) {
        const int64_t limit_ms = s.jobs[started].spec.time_limit_s * 1000;
        ends[started] = s.now_ms + (between(0, 1) ? limit_ms : limit_ms / 3);
        auto promise = promised.find(started);
        if (promise == promised.end()) continue;
        ++promises;
        // Rounds come only now and then here: it may start at the first one after the promise.
        ASSERT_LE(s.now_ms, promise->second + 20'000) << "job " << started;
      }
      const JobClass* head = ClassWalk(s.view).next();
      if (head == nullptr) continue;
      const JobId first = *head->waiting.begin();
      Promise promise;
      if (promise.make(s.view.hosts(), first, head->key->need, head->key->nodes, s.now_ms,
                       s.view.duration_ms(*head->key)))
        promised.try_emplace(first, promise.starts_ms());
    }
  }
  EXPECT_GT(promises, 500u);
}

}  // namespace
}  // namespace xce::sched
