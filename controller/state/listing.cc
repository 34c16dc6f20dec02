#include "controller/state/listing.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace xce::state {
namespace {

// A walk over candidate ids in order: over disjoint sets at once, or over all jobs of an id range.
class Walk {
 public:
  Walk(const JobTable& jobs, const JobFilter& filter)
      : jobs_(jobs), descending_(filter.descending) {
    choose(filter);
    seek(0);
  }

  // How many candidates there are; exact for what one criterion gives.
  size_t size() const { return size_; }

  // Places the walk behind after_id; 0: at the beginning.
  void seek(JobId after_id) {
    after_ = after_id == 0 && descending_ ? std::numeric_limits<JobId>::max() : after_id;
  }

  // The next candidate, or null at the end.
  const Job* next() {
    const Job* job = sets_.empty() ? next_of_all() : jobs_.find(next_of_sets());
    if (job) after_ = job->id;
    return job;
  }

 private:
  void choose(const JobFilter& filter) {
    size_ = jobs_.all().size();
    if (filter.array_id) {
      // Ids of an array are consecutive from array_id on. Ended tasks may be gone.
      const auto begin = jobs_.all().lower_bound(filter.array_id);
      first_ = last_ = filter.array_id;
      size_ = 0;
      for (auto it = begin; it != jobs_.all().end() && it->second.array_id == filter.array_id;
           ++it, ++size_)
        last_ = it->first;
      return;
    }
    if (!filter.user.empty()) offer({&jobs_.of_user(filter.user)});
    if (!filter.queue.empty()) offer({&jobs_.of_queue(filter.queue)});
    if (!filter.host.empty()) offer({&jobs_.of_host(filter.host)});
    if (filter.states) {
      std::vector<const IdSet*> sets;
      for (int state = 0; state < kJobStates; ++state) {
        if (filter.states & (1u << state))
          sets.push_back(&jobs_.of_state(static_cast<JobState>(state)));
      }
      static const IdSet* empty = new IdSet;
      if (sets.empty()) sets.push_back(empty);  // only bits that mean nothing
      offer(std::move(sets));
    }
  }

  void offer(std::vector<const IdSet*> sets) {
    size_t size = 0;
    for (const IdSet* set : sets) size += set->size();
    if (!sets_.empty() && size >= size_) return;
    sets_ = std::move(sets);
    size_ = size;
  }

  // 0 at the end, which is no job's id. The sets are B-trees of few levels: seeking anew for each
  // id is cheap.
  JobId next_of_sets() const {
    JobId best = 0;
    for (const IdSet* set : sets_) {
      if (descending_) {
        auto it = set->lower_bound(after_);
        if (it != set->begin() && *--it > best) best = *it;
      } else {
        const auto it = set->upper_bound(after_);
        if (it != set->end() && (best == 0 || *it < best)) best = *it;
      }
    }
    return best;
  }

  const Job* next_of_all() const {
    const auto& all = jobs_.all();
    if (descending_) {
      auto it = all.lower_bound(last_ < after_ ? last_ + 1 : after_);
      if (it == all.begin()) return nullptr;
      --it;
      return it->first < first_ ? nullptr : &it->second;
    }
    const auto it = first_ > after_ ? all.lower_bound(first_) : all.upper_bound(after_);
    return it == all.end() || it->first > last_ ? nullptr : &it->second;
  }

  const JobTable& jobs_;
  const bool descending_;
  std::vector<const IdSet*> sets_;  // empty: all jobs with ids first_..last_
  JobId first_ = 0, last_ = std::numeric_limits<JobId>::max() - 1;
  size_t size_ = 0;
  JobId after_ = 0;
};

int criteria(const JobFilter& filter) {
  return (filter.states != 0) + !filter.user.empty() + !filter.queue.empty() +
         !filter.host.empty() + (filter.array_id != 0) +
         2 * (!filter.name.empty() || filter.since_ms || filter.until_ms);  // these have no index
}

State::JobPage list_ids(const JobTable& jobs, const JobFilter& filter, size_t rows) {
  std::vector<JobId> ids = filter.ids;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (filter.descending) std::reverse(ids.begin(), ids.end());
  State::JobPage page;
  for (const JobId id : ids) {
    const Job* job = jobs.find(id);
    if (!job || !matches(*job, filter)) continue;
    ++page.total;
    if (filter.after_id && (filter.descending ? id >= filter.after_id : id <= filter.after_id))
      continue;
    if (page.jobs.size() < rows) {
      page.jobs.push_back(job);
    } else if (page.next_after_id == 0 && !page.jobs.empty()) {
      page.next_after_id = page.jobs.back()->id;
    }
  }
  return page;
}

}  // namespace

State::JobPage list_jobs(const JobTable& jobs, const JobFilter& filter, size_t max_rows) {
  const size_t rows =
      std::max<size_t>(1, filter.limit ? std::min<size_t>(filter.limit, max_rows) : max_rows);
  if (!filter.ids.empty()) return list_ids(jobs, filter, rows);
  State::JobPage page;
  Walk walk(jobs, filter);
  if (criteria(filter) <= 1) {
    page.total = walk.size();
  } else {
    for (size_t i = 0; i < kMaxCounted; ++i) {
      const Job* job = walk.next();
      if (!job) break;
      page.total += matches(*job, filter);
    }
  }
  walk.seek(filter.after_id);
  JobId last = 0;
  for (size_t visits = 0;; ++visits) {
    const Job* job = walk.next();
    if (!job) return page;
    if (page.jobs.size() == rows || visits == kMaxVisits) {
      page.next_after_id = last;
      return page;
    }
    last = job->id;
    if (matches(*job, filter)) page.jobs.push_back(job);
  }
}

}  // namespace xce::state
