// Who asks: what a connection's certificate makes of its hello, and for whom an apiserver asks.
// PURE.
#ifndef XCE_CONTROLLER_SERVICE_CERTIFICATE_H_
#define XCE_CONTROLLER_SERVICE_CERTIFICATE_H_

#include <cstdint>
#include <string>

#include "controller/service/request.h"
#include "libxce/model/command.h"
#include "libxce/net/tls.h"

namespace xce::service {

// Stands for "no number is known": owns nothing, is nobody's operator.
inline constexpr uint32_t kNobodyId = 65534;

// Checks what a hello claims against the certificate, and puts what the certificate says in its
// place: a user's name and numbers. An apiserver speaks for users and may name them. What is wrong,
// in words; empty: nothing.
std::string apply_certificate(const net::CertIdentity& certificate, Identity* hello);

// Whose request it is when one on a connection of `connection` is on behalf of `person`: the
// person's own, with a person's rights; for an administrator the apiserver's, under the person's
// name. False, and *why in words: this connection may not ask for others, or names nobody.
bool apply_person(const Identity& connection, const Person& person, Identity* who,
                  std::string* why);

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_CERTIFICATE_H_
