// How often values of which size were seen, as Prometheus counts them. PURE; not thread safe.
#ifndef XCE_LIBXCE_BASE_HISTOGRAM_H_
#define XCE_LIBXCE_BASE_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace xce {

class Histogram {
 public:
  Histogram() = default;
  // bounds rise; a value belongs to the first bound that it does not exceed.
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void add(double value) {
    if (counts_.empty()) counts_.resize(1);
    size_t i = 0;
    while (i < bounds_.size() && value > bounds_[i]) ++i;
    ++counts_[i];
    ++count_;
    sum_ += value;
  }

  const std::vector<double>& bounds() const { return bounds_; }
  // One more than there are bounds: the last counts what exceeds all of them. Not cumulative.
  const std::vector<uint64_t>& counts() const { return counts_; }
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace xce

#endif  // XCE_LIBXCE_BASE_HISTOGRAM_H_
