// Makes equal values one: what people submit is often what they have just submitted, and a million
// jobs with an environment of their own each would need gigabytes. PURE; no part of the replicated
// state, which is the same with and without it.
#ifndef XCE_CONTROLLER_STATE_INTERN_H_
#define XCE_CONTROLLER_STATE_INTERN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "absl/container/btree_map.h"
#include "libxce/model/job.h"

namespace xce::state {

// Remembers the newest values, by their hash, up to a number and an amount of bytes.
template <typename Value>
class Recent {
 public:
  Recent(size_t max_values, size_t max_bytes) : max_values_(max_values), max_bytes_(max_bytes) {}
  // What is remembered under that hash, or null.
  const Value* find(uint64_t hash) const {
    const auto it = values_.find(hash);
    return it == values_.end() ? nullptr : &it->second.first;
  }
  void put(uint64_t hash, Value value, size_t bytes) {
    if (bytes > max_bytes_ / 4 || !values_.emplace(hash, std::make_pair(value, bytes)).second)
      return;
    order_.push_back(hash);
    bytes_ += bytes;
    while (order_.size() > max_values_ || bytes_ > max_bytes_) {
      const auto oldest = values_.find(order_.front());
      bytes_ -= oldest->second.second;
      values_.erase(oldest);
      order_.pop_front();
    }
  }
  size_t size() const { return order_.size(); }

 private:
  const size_t max_values_, max_bytes_;
  absl::btree_map<uint64_t, std::pair<Value, size_t>> values_;
  std::deque<uint64_t> order_;
  size_t bytes_ = 0;
};

class Interner {
 public:
  // The body, or an equal one that was shared lately; else at least its environment is an equal one
  // of lately, if there is such.
  std::shared_ptr<const JobBody> share(std::shared_ptr<const JobBody> body);

 private:
  Recent<std::shared_ptr<const JobBody>> bodies_{512, size_t{4} << 20};
  Recent<SharedTexts> envs_{512, size_t{4} << 20};
};

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_INTERN_H_
