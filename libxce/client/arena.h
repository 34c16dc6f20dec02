// Memory of one result: everything that a C struct points to lives in one arena, which one free
// lets go. No thread of its own; one thread at a time.
#ifndef XCE_LIBXCE_CLIENT_ARENA_H_
#define XCE_LIBXCE_CLIENT_ARENA_H_

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

namespace xce::client {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // n zeroed elements; never null.
  template <typename T>
  T* array(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    return static_cast<T*>(bytes(n * sizeof(T)));
  }
  // A NUL-terminated copy.
  const char* text(const char* from, size_t n) {
    char* to = static_cast<char*>(bytes(n + 1));
    if (n > 0) std::memcpy(to, from, n);  // from may be null then
    return to;
  }
  // Zeroed, aligned for anything.
  void* bytes(size_t n) {
    constexpr size_t kAlign = alignof(std::max_align_t);
    n = (n + kAlign - 1) / kAlign * kAlign;
    if (n > left_) {
      const size_t size = n > kBlock ? n : kBlock;
      blocks_.push_back(std::make_unique<char[]>(size));  // zeroed
      next_ = blocks_.back().get();
      left_ = size;
    }
    void* out = next_;
    next_ += n;
    left_ -= n;
    return out;
  }

 private:
  static constexpr size_t kBlock = 4096;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  size_t left_ = 0;
};

// A result of n Ts for a C caller: its arena is found again by the hidden word before it.
template <typename T>
struct ArenaResult {
  Arena* arena;
  T* items;
};

template <typename T>
ArenaResult<T> new_result(size_t n) {
  constexpr size_t kHeader = alignof(std::max_align_t);
  auto arena = std::make_unique<Arena>();
  char* memory = static_cast<char*>(arena->bytes(kHeader + n * sizeof(T)));
  Arena* raw = arena.release();
  std::memcpy(memory, &raw, sizeof raw);
  return {raw, reinterpret_cast<T*>(memory + kHeader)};
}

// Frees a result of new_result; null is fine.
inline void free_result(void* items) {
  if (items == nullptr) return;
  Arena* arena;
  std::memcpy(&arena, static_cast<char*>(items) - alignof(std::max_align_t), sizeof arena);
  delete arena;
}

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_ARENA_H_
