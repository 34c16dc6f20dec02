// Who a connection is when it has shown a certificate. PURE.
#ifndef XCE_CONTROLLER_SERVICE_CERTIFICATE_H_
#define XCE_CONTROLLER_SERVICE_CERTIFICATE_H_

#include <cstdint>
#include <string>

#include "libxce/model/command.h"
#include "libxce/net/tls.h"

namespace xce::service {

// Stands for "no number is known": owns nothing, is nobody's operator.
inline constexpr uint32_t kNobodyId = 65534;

// Checks what a hello claims against the certificate, and puts what the certificate says in its
// place: a user's name and numbers. An apiserver speaks for users and may name them. What is wrong,
// in words; empty: nothing.
std::string apply_certificate(const net::CertIdentity& certificate, Identity* hello);

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_CERTIFICATE_H_
