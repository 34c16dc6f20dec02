#include "libxce/net/address.h"

#include <cstring>

namespace xce::net {

bool numeric_address(const std::string& host, uint16_t port, sockaddr_storage* out) {
  std::memset(out, 0, sizeof *out);
  return uv_ip4_addr(host.c_str(), port, reinterpret_cast<sockaddr_in*>(out)) == 0 ||
         uv_ip6_addr(host.c_str(), port, reinterpret_cast<sockaddr_in6*>(out)) == 0;
}

uint16_t bound_port(const uv_tcp_t* tcp) {
  sockaddr_storage address{};
  int length = sizeof address;
  if (uv_tcp_getsockname(tcp, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace xce::net
