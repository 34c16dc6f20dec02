// The schedules that the policy makes, held against two things that share no code with it: textbook
// schedulers that go second by second over a table of what is in use, and checks of what a schedule
// must be like, read off the schedule alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "scheduler/sim/generate.h"
#include "scheduler/sim/simulate.h"

namespace xce::sched {
namespace {

constexpr int64_t kNotYet = -1;

// One scheduler of the textbooks. Waiting jobs are served in the order of the trace.
class Textbook {
 public:
  Textbook(const Trace& trace, uint32_t cpus, Backfill backfill)
      : jobs_(trace.jobs), cpus_(cpus), backfill_(backfill), start_(jobs_.size(), kNotYet) {}

  std::vector<int64_t> run() {
    size_t left = jobs_.size();
    for (now_ = 0; left > 0; ++now_) {
      for (bool again = true; again;) {
        again = false;
        const std::vector<size_t> waiting = take_waiting();
        decide(waiting);
        for (const size_t i : waiting) {
          if (start_[i] == kNotYet) continue;
          --left;
          again = again || jobs_[i].run_s == 0;  // it has ended already
        }
      }
    }
    return start_;
  }

 private:
  std::vector<size_t> take_waiting() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < jobs_.size(); ++i)
      if (start_[i] == kNotYet && jobs_[i].submit_s <= now_) out.push_back(i);
    return out;
  }
  // Processors in use from now on, second by second, as far as estimates tell.
  std::vector<uint32_t> usage() const {
    std::vector<uint32_t> used(5000, 0);
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (start_[i] == kNotYet || start_[i] + jobs_[i].run_s <= now_) continue;
      add(i, start_[i], &used);
    }
    return used;
  }
  void add(size_t i, int64_t from_s, std::vector<uint32_t>* used) const {
    for (int64_t s = std::max(from_s, now_); s < from_s + jobs_[i].estimate_s; ++s)
      (*used)[s - now_] += jobs_[i].cpus;
  }
  bool fits(size_t i, int64_t from_s, int64_t seconds, const std::vector<uint32_t>& used) const {
    for (int64_t s = from_s; s < from_s + seconds; ++s)
      if (used[s - now_] + jobs_[i].cpus > cpus_) return false;
    return true;
  }

  void decide(const std::vector<size_t>& waiting) {
    std::vector<uint32_t> used = usage();
    if (backfill_ == Backfill::kConservative) return decide_conservative(waiting, &used);
    size_t n = 0;
    for (; n < waiting.size() && used[0] + jobs_[waiting[n]].cpus <= cpus_; ++n) {
      start_[waiting[n]] = now_;
      add(waiting[n], now_, &used);
    }
    if (n == waiting.size() || backfill_ == Backfill::kNone) return;
    const size_t head = waiting[n++];
    int64_t shadow_s = now_;
    while (used[shadow_s - now_] + jobs_[head].cpus > cpus_) ++shadow_s;
    uint32_t extra = cpus_ - used[shadow_s - now_] - jobs_[head].cpus;
    for (; n < waiting.size(); ++n) {
      const TraceJob& job = jobs_[waiting[n]];
      if (used[0] + job.cpus > cpus_) continue;
      const bool ends_before = now_ + job.estimate_s <= shadow_s;
      if (!ends_before && job.cpus > extra) continue;
      if (!ends_before) extra -= job.cpus;
      start_[waiting[n]] = now_;
      used[0] += job.cpus;
    }
  }
  void decide_conservative(const std::vector<size_t>& waiting, std::vector<uint32_t>* used) {
    for (const size_t i : waiting) {
      int64_t s = now_;
      while (!fits(i, s, jobs_[i].estimate_s, *used)) ++s;
      if (s == now_) start_[i] = now_;
      add(i, s, used);
    }
  }

  const std::vector<TraceJob> jobs_;
  const uint32_t cpus_;
  const Backfill backfill_;
  std::vector<int64_t> start_;
  int64_t now_ = 0;
};

Trace small_trace(uint64_t seed, uint32_t cpus) {
  std::mt19937_64 random(seed);
  const auto between = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Trace trace;
  int64_t submit_s = 0;
  for (int i = 1; i <= 40; ++i) {
    TraceJob job;
    job.number = i;
    job.submit_s = submit_s += between(0, 9) * between(0, 1);
    job.run_s = between(0, 9) == 0 ? 0 : between(1, 40);
    job.estimate_s = std::max<int64_t>(1, job.run_s + between(0, 1) * between(0, 40));
    job.cpus = between(1, between(0, 2) ? 4 : static_cast<int>(cpus));
    job.user = between(1, 3);
    trace.jobs.push_back(job);
  }
  return trace;
}

struct Ran {
  TraceJob job;
  int64_t start_s = 0, end_s = 0;
};

std::vector<Ran> ran(const Trace& trace, uint32_t cpus, Backfill backfill) {
  SimOptions options;
  options.cpus = cpus;
  options.backfill = backfill;
  std::vector<Ran> out;
  simulate(trace, options, [&out](const SimJob& j) {
    out.push_back({*j.job, j.start_s, j.end_s});
  });
  return out;
}

TEST(Reference, TheTextbooksMakeTheSameSchedules) {
  for (const Backfill backfill : {Backfill::kNone, Backfill::kEasy, Backfill::kConservative}) {
    size_t backfilled = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      const uint32_t cpus = 4 + seed % 9;
      const Trace trace = small_trace(seed, cpus);
      const std::vector<int64_t> expected = Textbook(trace, cpus, backfill).run();
      const std::vector<Ran> got = ran(trace, cpus, backfill);
      ASSERT_EQ(got.size(), expected.size());
      int64_t latest_s = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(got[i].start_s, expected[i])
            << "policy " << static_cast<int>(backfill) << ", seed " << seed << ", job " << i + 1;
        backfilled += expected[i] < latest_s;
        latest_s = std::max(latest_s, expected[i]);
      }
    }
    EXPECT_EQ(backfilled > 100, backfill != Backfill::kNone) << backfilled;
  }
}

// ---- what is read off a schedule alone

int64_t free_at(const std::vector<Ran>& all, int64_t time_s, uint32_t cpus) {
  int64_t left = cpus;
  for (const Ran& r : all)
    if (r.start_s <= time_s && time_s < r.end_s) left -= r.job.cpus;
  return left;
}

// When the first in line could start at the latest, by the estimates of what runs at that time.
int64_t promise_at(const std::vector<Ran>& all, size_t head, int64_t time_s, uint32_t cpus) {
  std::vector<std::pair<int64_t, uint32_t>> ends;
  int64_t left = cpus;
  for (size_t i = 0; i < all.size(); ++i) {
    const Ran& r = all[i];
    if (i == head || r.start_s > time_s || r.end_s <= time_s) continue;
    left -= r.job.cpus;
    ends.emplace_back(r.start_s + r.job.estimate_s, r.job.cpus);
  }
  std::sort(ends.begin(), ends.end());
  int64_t when_s = time_s;
  for (const auto& [end_s, freed] : ends) {
    if (left >= all[head].job.cpus) break;
    left += freed;
    when_s = end_s;
  }
  return when_s;
}

Trace generated(size_t jobs, uint64_t seed) {
  GenerateOptions options;
  options.jobs = jobs;
  options.seed = seed;
  return *parse_swf(generate_swf(options), "generated");
}

TEST(Reference, NeverMoreInUseThanThereIsAndNobodyWaitsBesideAnIdleMachine) {
  for (const Backfill backfill : {Backfill::kNone, Backfill::kEasy, Backfill::kConservative}) {
    const std::vector<Ran> all = ran(generated(800, 11), 256, backfill);
    ASSERT_EQ(all.size(), 800u);
    for (const Ran& r : all) {
      ASSERT_GE(r.start_s, r.job.submit_s);
      ASSERT_EQ(r.end_s - r.start_s, r.job.run_s);
      ASSERT_GE(free_at(all, r.start_s, 256), 0);
      // Work is conserved: a job that waited had no room a moment before, if nobody was before it.
      const bool first = std::all_of(all.begin(), all.begin() + (&r - all.data()),
                                     [&](const Ran& o) { return o.start_s < r.start_s; });
      if (!first || r.start_s == r.job.submit_s) continue;
      int64_t since_s = r.job.submit_s;
      for (size_t i = 0; i < static_cast<size_t>(&r - all.data()); ++i)
        since_s = std::max(since_s, all[i].start_s);
      if (since_s == r.start_s) continue;
      ASSERT_LT(free_at(all, r.start_s - 1, 256), r.job.cpus) << "job " << r.job.number;
    }
  }
}

TEST(Reference, EasyKeepsWhatItPromisesToTheFirstInLine) {
  size_t promises = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const std::vector<Ran> all = ran(generated(1500, seed), 256, Backfill::kEasy);
    int64_t before_s = 0;  // the latest start of those before
    for (size_t i = 0; i < all.size(); ++i) {
      const int64_t head_s = std::max(before_s, all[i].job.submit_s);
      before_s = std::max(before_s, all[i].start_s);
      if (all[i].start_s <= head_s) continue;  // it was backfilled, or never waited as the first
      ++promises;
      ASSERT_LE(all[i].start_s, promise_at(all, i, head_s, 256)) << "job " << all[i].job.number;
    }
  }
  EXPECT_GT(promises, 60u);
}

}  // namespace
}  // namespace xce::sched
