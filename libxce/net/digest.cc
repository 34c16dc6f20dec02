#include "libxce/net/digest.h"

#include <openssl/sha.h>

namespace xce::net {

std::array<uint64_t, 2> digest128(std::string_view bytes) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash);
  std::array<uint64_t, 2> out{};
  for (size_t i = 0; i < 16; ++i) out[i / 8] = out[i / 8] << 8 | hash[i];
  return out;
}

}  // namespace xce::net
