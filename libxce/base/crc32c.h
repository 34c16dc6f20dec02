// CRC32C (Castagnoli). PURE.
#ifndef XCE_LIBXCE_BASE_CRC32C_H_
#define XCE_LIBXCE_BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xce {

// The CRC32C of `bytes`, going on from `seed` (the CRC of what came before, or 0). Uses the CPU's
// instruction if any.
uint32_t crc32c(uint32_t seed, std::string_view bytes);

// The same by table, for machines without the instruction; exposed for the test that compares the
// two.
uint32_t crc32c_by_table(uint32_t seed, std::string_view bytes);

}  // namespace xce

#endif  // XCE_LIBXCE_BASE_CRC32C_H_
