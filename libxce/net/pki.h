// A small certificate authority in a directory: ca.crt and ca.key, and the certificates that it
// issues, named ROLE-NAME.crt and ROLE-NAME.key. What stands in them: tls.h. I/O: files.
#ifndef XCE_LIBXCE_NET_PKI_H_
#define XCE_LIBXCE_NET_PKI_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libxce/net/tls.h"

namespace xce::net {

inline constexpr int kCaDays = 3650;
inline constexpr int kCertDays = 365;

// Makes an authority (ECDSA P-256, ten years). AlreadyExists: there is one; it is left alone.
absl::Status pki_init(const std::string& dir);

// Issues a certificate and its key (mode 0600) and gives the three paths. Those of the same role
// and name are replaced: that is how a certificate is renewed. days <= 0: already expired, for
// tests. InvalidArgument: the name cannot stand in a certificate. NotFound: no authority in `dir`.
absl::StatusOr<TlsFiles> pki_issue(const std::string& dir, const CertIdentity& identity,
                                   int days = kCertDays);

}  // namespace xce::net

#endif  // XCE_LIBXCE_NET_PKI_H_
