// An unchanging list of texts that its copies share: environments, of which a thousand jobs may
// have the same. PURE.
#ifndef XCE_LIBXCE_MODEL_SHARED_TEXTS_H_
#define XCE_LIBXCE_MODEL_SHARED_TEXTS_H_

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace xce {

class SharedTexts {
 public:
  using List = std::vector<std::string>;
  SharedTexts() = default;
  // NOLINTNEXTLINE: a list of texts is one
  SharedTexts(List texts)
      : texts_(texts.empty() ? nullptr : std::make_shared<const List>(std::move(texts))) {}
  SharedTexts(std::initializer_list<std::string> texts) : SharedTexts(List(texts)) {}

  operator const List&() const { return list(); }  // NOLINT: as above
  const List& list() const {
    static const List* const none = new List;
    return texts_ == nullptr ? *none : *texts_;
  }
  List::const_iterator begin() const { return list().begin(); }
  List::const_iterator end() const { return list().end(); }
  size_t size() const { return list().size(); }
  bool empty() const { return texts_ == nullptr; }
  const std::string& operator[](size_t i) const { return list()[i]; }
  // Others share it, or may have shared it lately.
  bool shared() const { return texts_.use_count() > 1; }
  // The same for those that share it.
  const void* identity() const { return texts_.get(); }

  friend bool operator==(const SharedTexts& a, const SharedTexts& b) {
    return a.texts_ == b.texts_ || a.list() == b.list();
  }

 private:
  std::shared_ptr<const List> texts_;  // null: none
};

}  // namespace xce

#endif  // XCE_LIBXCE_MODEL_SHARED_TEXTS_H_
