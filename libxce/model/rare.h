// A text or a list that most of its owners leave empty: takes a pointer then, instead of three or
// four words. PURE. Copies are deep, as of the value itself.
#ifndef XCE_LIBXCE_MODEL_RARE_H_
#define XCE_LIBXCE_MODEL_RARE_H_

#include <cstddef>
#include <memory>
#include <utility>

namespace xce {

template <typename T>
class Rare {
 public:
  using Item = typename T::value_type;

  Rare() = default;
  Rare(const Rare& other) { *this = other; }
  Rare(Rare&& other) noexcept = default;
  Rare& operator=(const Rare& other) {
    value_ = other.value_ == nullptr ? nullptr : std::make_unique<T>(*other.value_);
    return *this;
  }
  Rare& operator=(Rare&& other) noexcept = default;
  Rare& operator=(T value) {
    value_ = value.empty() ? nullptr : std::make_unique<T>(std::move(value));
    return *this;
  }

  operator const T&() const { return get(); }  // NOLINT: it is one
  const T& get() const {
    static const T* const none = new T;
    return value_ == nullptr ? *none : *value_;
  }
  bool empty() const { return value_ == nullptr; }
  size_t size() const { return get().size(); }
  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }
  const Item& operator[](size_t i) const { return get()[i]; }
  const char* c_str() const { return get().c_str(); }  // of a text
  void clear() { value_.reset(); }
  void push_back(Item item) {
    if (value_ == nullptr) value_ = std::make_unique<T>();
    value_->push_back(std::move(item));
  }

  friend bool operator==(const Rare& a, const Rare& b) { return a.get() == b.get(); }
  friend bool operator==(const Rare& a, const T& b) { return a.get() == b; }

 private:
  std::unique_ptr<T> value_;  // null: empty
};

}  // namespace xce

#endif  // XCE_LIBXCE_MODEL_RARE_H_
