#include "libxce/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace xce {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; bit++)
      value = (value & 1) != 0 ? (value >> 1) ^ 0x82f63b78u : value >> 1;
    table[i] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_by_cpu(uint32_t seed, std::string_view bytes) {
  uint64_t crc = ~seed;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  for (; left > 0; left--, at++)
    crc = _mm_crc32_u8(static_cast<uint32_t>(crc), static_cast<unsigned char>(*at));
  return ~static_cast<uint32_t>(crc);
}
#endif

}  // namespace

uint32_t crc32c_by_table(uint32_t seed, std::string_view bytes) {
  uint32_t crc = ~seed;
  for (const char c : bytes)
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

uint32_t crc32c(uint32_t seed, std::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return crc32c_by_cpu(seed, bytes);
#endif
  return crc32c_by_table(seed, bytes);
}

}  // namespace xce
