#include "controller/state/submit_keys.h"

namespace xce::state {
namespace {

uint64_t mix(uint64_t value, uint64_t factor) {
  value *= factor;
  value ^= value >> 32;
  value *= factor;
  return value ^ value >> 29;
}

}  // namespace

KeyHash hash_of_key(const std::string& key) {
  KeyHash hash{key.size(), ~key.size()};
  for (size_t at = 0; at < key.size(); at += 8) {
    uint64_t word = 0;
    for (size_t i = at; i < key.size() && i < at + 8; ++i)
      word = word << 8 | static_cast<unsigned char>(key[i]);
    hash.a = mix(hash.a ^ word, 0x9e3779b97f4a7c15u);
    hash.b = mix(hash.b + word, 0xc2b2ae3d27d4eb4fu);
  }
  return hash;
}

const SubmitKeys::Made* SubmitKeys::find(const std::string& user, const std::string& key) const {
  const auto keys = made_.find(user);
  if (keys == made_.end()) return nullptr;
  const auto it = keys->second.find(hash_of_key(key));
  return it == keys->second.end() ? nullptr : &it->second;
}

void SubmitKeys::add(const JobSpec& spec, JobId job, uint32_t count) {
  if (!spec.submit_key.empty())
    made_[spec.user][hash_of_key(spec.submit_key)] = Made{job, count, count, spec.body_hash};
}

void SubmitKeys::job_removed(const JobSpec& spec, int64_t now_ms) {
  if (spec.submit_key.empty()) return;
  const auto keys = made_.find(spec.user);
  if (keys == made_.end()) return;
  const KeyHash key = hash_of_key(spec.submit_key);
  const auto it = keys->second.find(key);
  if (it != keys->second.end() && --it->second.kept == 0)
    orphans_.push_back({now_ms, spec.user, key});
}

void SubmitKeys::expire(int64_t now_ms) {
  while (!orphans_.empty() &&
         (orphans_.size() > kMaxOrphans || orphans_.front().removed_ms <= now_ms - kKeyKeepMs)) {
    const Orphan& oldest = orphans_.front();
    const auto keys = made_.find(oldest.user);
    if (keys != made_.end()) {
      keys->second.erase(oldest.key);
      if (keys->second.empty()) made_.erase(keys);
    }
    orphans_.pop_front();
  }
}

}  // namespace xce::state
