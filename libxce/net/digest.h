// SHA-256, cut to 128 bits: names for things that nobody can forge. Any thread; no I/O.
#ifndef XCE_LIBXCE_NET_DIGEST_H_
#define XCE_LIBXCE_NET_DIGEST_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace xce::net {

// The first 128 bits of the SHA-256 of `bytes`, the same on every machine.
std::array<uint64_t, 2> digest128(std::string_view bytes);

}  // namespace xce::net

#endif  // XCE_LIBXCE_NET_DIGEST_H_
