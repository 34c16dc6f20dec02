#include "controller/state/submit_keys.h"

namespace xce::state {
namespace {
std::string scoped(const std::string& user, const std::string& key) {
  std::string name;
  name.reserve(user.size() + 1 + key.size());
  name.append(user).append(1, '\0').append(key);
  return name;
}
}  // namespace

const SubmitKeys::Made* SubmitKeys::find(const std::string& user, const std::string& key) const {
  const auto it = made_.find(scoped(user, key));
  return it == made_.end() ? nullptr : &it->second;
}

void SubmitKeys::add(const JobSpec& spec, JobId job, uint32_t count) {
  if (!spec.submit_key.empty())
    made_[scoped(spec.user, spec.submit_key)] = Made{job, count, count, spec.body_hash};
}

void SubmitKeys::job_removed(const JobSpec& spec, int64_t now_ms) {
  if (spec.submit_key.empty()) return;
  std::string name = scoped(spec.user, spec.submit_key);
  const auto it = made_.find(name);
  if (it != made_.end() && --it->second.kept == 0) orphans_.emplace_back(now_ms, std::move(name));
}

void SubmitKeys::expire(int64_t now_ms) {
  while (!orphans_.empty() &&
         (orphans_.size() > kMaxOrphans || orphans_.front().first <= now_ms - kKeyKeepMs)) {
    made_.erase(orphans_.front().second);
    orphans_.pop_front();
  }
}

}  // namespace xce::state
