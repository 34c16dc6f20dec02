// Numeric addresses for libuv's TCP handles. Thread: any.
#ifndef XCE_LIBXCE_NET_ADDRESS_H_
#define XCE_LIBXCE_NET_ADDRESS_H_

#include <netinet/in.h>
#include <uv.h>

#include <cstdint>
#include <string>

namespace xce::net {

// Fills *out with an IPv4 or IPv6 address in digits. False: `host` is none, a name perhaps.
bool numeric_address(const std::string& host, uint16_t port, sockaddr_storage* out);

// The port that a bound handle has; 0 when it is not bound.
uint16_t bound_port(const uv_tcp_t* tcp);

}  // namespace xce::net

#endif  // XCE_LIBXCE_NET_ADDRESS_H_
