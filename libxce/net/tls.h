// TLS 1.3 with certificates on both sides: credentials from files, and sessions that turn
// ciphertext into plaintext and back in memory. Together with pki.h the only OpenSSL code of XCE.
//
// Who somebody is stands in his certificate, in the subject alternative names, as URIs:
//   xce:role/ROLE/NAME   ROLE: user, worker, scheduler, apiserver or controller; NAME: a user's
//                        name, a worker's host, a daemon's name, a controller's node id
//   xce:ids/UID/GID      of a user: the numbers that belong to the name (optional)
// A client believes a server only if its certificate says controller.
//
// I/O: TlsCredentials reads files; a TlsSession does none, so that any event loop can own the
// socket. Threads: TlsCredentials any; a TlsSession one at a time. Keys are never logged.
#ifndef XCE_LIBXCE_NET_TLS_H_
#define XCE_LIBXCE_NET_TLS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libxce/model/types.h"

namespace xce::net {

// Paths of PEM files: the certificates that we trust, our own certificate (with the chain below the
// trusted one) and its key.
struct TlsFiles {
  std::string ca, cert, key;
  bool any() const { return !ca.empty() || !cert.empty() || !key.empty(); }
  bool all() const { return !ca.empty() && !cert.empty() && !key.empty(); }
};

// What a certificate says of its owner.
struct CertIdentity {
  Role role = Role::kNone;
  std::string name;
  bool has_ids = false;  // of a user
  uint32_t uid = 0, gid = 0;
};
// "worker host1": for messages.
std::string to_string(const CertIdentity& identity);
// Names that may stand in a certificate: 1 to 255 letters, digits, and . _ - @ +
bool valid_cert_name(std::string_view name);
// What these URIs say. Exactly one must be a role; others that do not begin with "xce:" are passed
// over.
absl::StatusOr<CertIdentity> parse_cert_uris(const std::vector<std::string>& uris);
// The URIs of an identity.
std::vector<std::string> cert_uris(const CertIdentity& identity);

// One reading of the files: what sessions are made from. Immutable.
class TlsContext {
 public:
  // InvalidArgument: a file cannot be read or used, the key is not the certificate's, others may
  // read the key, or the certificate names no role; the message names the file and the way out.
  static absl::StatusOr<std::shared_ptr<const TlsContext>> load(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  const CertIdentity& own() const { return own_; }

 private:
  friend class TlsSession;
  TlsContext() = default;
  void* ctx_ = nullptr;  // SSL_CTX
  CertIdentity own_;
};

// The files, read again when they have changed: a rotated certificate is used from the next
// connection on.
class TlsCredentials {
 public:
  // As TlsContext::load; also InvalidArgument when only some of the files are given.
  static absl::StatusOr<std::shared_ptr<TlsCredentials>> load(const TlsFiles& files);

  // The newest usable reading. When the files have changed and cannot be used, the one before, and
  // *complaint says why (once for each state of the files).
  std::shared_ptr<const TlsContext> current(std::string* complaint);
  // Of the first reading.
  const CertIdentity& own() const { return own_; }

 private:
  TlsCredentials() = default;
  TlsFiles files_;
  CertIdentity own_;
  std::mutex mu_;  // guards the two below
  std::string state_;
  std::shared_ptr<const TlsContext> context_;
};

// One connection's TLS. Feed it what the socket gives, send what take_output() gives.
class TlsSession {
 public:
  enum class Side { kClient, kServer };
  TlsSession(std::shared_ptr<const TlsContext> context, Side side);  // a client has output at once
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Takes received bytes; appends what they decrypt to. After an error the output that is left (an
  // alert) should be sent and the connection closed. Unauthenticated: one side does not accept the
  // other's certificate; InvalidArgument: what came is not TLS 1.3.
  absl::Status feed(std::string_view received, std::string* plain);
  // Encrypts; before the handshake is over it keeps the bytes until then.
  void write(std::string_view plain);
  // Bytes to send, and whether there are any.
  std::string take_output();
  bool has_output() const;

  bool established() const { return established_; }
  const CertIdentity& peer() const { return peer_; }  // once established

 private:
  static int on_verify(int ok, void* store);
  absl::Status failure(int rv);

  const std::shared_ptr<const TlsContext> context_;
  const Side side_;
  void* ssl_ = nullptr;  // SSL
  void* in_ = nullptr;   // BIO, owned by ssl_
  void* out_ = nullptr;
  bool established_ = false;
  CertIdentity peer_;
  std::string why_;      // what is wrong with the other side's certificate
  std::string waiting_;  // written before the handshake was over
};

// Whether these first bytes of a connection begin a TLS handshake.
bool looks_like_tls(std::string_view first_bytes);

}  // namespace xce::net

#endif  // XCE_LIBXCE_NET_TLS_H_
