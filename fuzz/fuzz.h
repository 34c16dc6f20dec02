// What the fuzz targets share. A target is one function, LLVMFuzzerTestOneInput: it must neither
// crash nor hang nor take much memory, whatever the bytes are, and what it `require`s must hold.
#ifndef XCE_FUZZ_FUZZ_H_
#define XCE_FUZZ_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace xce::fuzz {

// Ends the program, with words, when a promise does not hold.
inline void require(bool holds, const std::string& promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise.c_str());
  std::abort();
}

inline std::string_view view(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The bytes as the words of a message; what does not fill a word is left out.
inline std::vector<uint64_t> words(std::string_view bytes) {
  std::vector<uint64_t> out(bytes.size() / 8);
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * 8);
  return out;
}

// Takes an input apart from its front; zeros and nothing when it is used up.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  uint8_t byte() { return static_cast<uint8_t>(take(1).empty() ? 0 : last_[0]); }
  uint16_t number() {
    const uint8_t low = byte();
    return static_cast<uint16_t>(low | byte() << 8);
  }
  std::string_view take(size_t n) {
    last_ = rest_.substr(0, n);
    rest_.remove_prefix(last_.size());
    return last_;
  }
  std::string_view rest() { return take(rest_.size()); }

 private:
  std::string_view rest_, last_;
};

}  // namespace xce::fuzz

#endif  // XCE_FUZZ_FUZZ_H_
