#include "libxce/net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace xce::net {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

constexpr size_t kMaxName = 255;
constexpr char kRolePrefix[] = "xce:role/";
constexpr char kIdsPrefix[] = "xce:ids/";
constexpr Role kRoles[] = {Role::kUser, Role::kWorker, Role::kScheduler, Role::kApiserver,
                           Role::kController};

SSL_CTX* ctx_of(void* p) { return static_cast<SSL_CTX*>(p); }
SSL* ssl_of(void* p) { return static_cast<SSL*>(p); }
BIO* bio_of(void* p) { return static_cast<BIO*>(p); }

bool starts_with(const std::string& text, const char* prefix) {
  return text.compare(0, std::strlen(prefix), prefix) == 0;
}

// The newest reason of OpenSSL's queue of this thread, which it empties.
std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  std::string out = reason != nullptr ? reason : ERR_SYSTEM_ERROR(code) ? "cannot be read" : "?";
  ERR_clear_error();
  return out;
}

std::vector<std::string> uris_of(X509* certificate) {
  std::vector<std::string> out;
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    out.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                     static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  GENERAL_NAMES_free(names);
  return out;
}

absl::Status check_key_file(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0)
    return InvalidArgumentError(StrCat("key file ", path, ": ", std::strerror(errno)));
  if ((st.st_mode & S_IRWXO) == 0) return absl::OkStatus();
  return InvalidArgumentError(
      StrCat("key file ", path, " can be read by everybody: run chmod 600 ", path));
}

// What stat tells of the files; changes when one of them is replaced or written.
std::string state_of(const TlsFiles& files) {
  std::string out;
  for (const std::string* path : {&files.ca, &files.cert, &files.key}) {
    struct stat st;
    if (stat(path->c_str(), &st) != 0)
      absl::StrAppend(&out, "error ", errno, ";");
    else
      absl::StrAppend(&out, st.st_ino, " ", st.st_size, " ", st.st_mode, " ", st.st_mtim.tv_sec,
                      ".", st.st_mtim.tv_nsec, ";");
  }
  return out;
}

}  // namespace

std::string to_string(const CertIdentity& identity) {
  return StrCat(name_of(identity.role), " ", identity.name);
}

bool valid_cert_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && std::strchr("._-@+", c) != nullptr);
  });
}

absl::StatusOr<CertIdentity> parse_cert_uris(const std::vector<std::string>& uris) {
  CertIdentity out;
  for (const std::string& uri : uris) {
    if (starts_with(uri, kRolePrefix)) {
      if (out.role != Role::kNone) return InvalidArgumentError("it names more than one xce:role");
      const std::vector<std::string> parts =
          absl::StrSplit(uri.substr(std::strlen(kRolePrefix)), '/');
      for (const Role role : kRoles)
        if (parts.size() == 2 && parts[0] == name_of(role)) out.role = role;
      if (out.role == Role::kNone || !valid_cert_name(parts[1]))
        return InvalidArgumentError("its xce:role is not xce:role/ROLE/NAME");
      out.name = parts[1];
    } else if (starts_with(uri, kIdsPrefix)) {
      const std::vector<std::string> parts =
          absl::StrSplit(uri.substr(std::strlen(kIdsPrefix)), '/');
      if (out.has_ids || parts.size() != 2 || !absl::SimpleAtoi(parts[0], &out.uid) ||
          !absl::SimpleAtoi(parts[1], &out.gid))
        return InvalidArgumentError("its xce:ids is not xce:ids/UID/GID");
      out.has_ids = true;
    } else if (starts_with(uri, "xce:")) {
      return InvalidArgumentError("it has an xce: name that this version does not know");
    }
  }
  if (out.role == Role::kNone)
    return InvalidArgumentError("it names no role (xce:role/ROLE/NAME): issue it with xce pki");
  return out;
}

std::vector<std::string> cert_uris(const CertIdentity& identity) {
  std::vector<std::string> out = {StrCat(kRolePrefix, name_of(identity.role), "/", identity.name)};
  if (identity.has_ids) out.push_back(StrCat(kIdsPrefix, identity.uid, "/", identity.gid));
  return out;
}

bool looks_like_tls(std::string_view first_bytes) {
  return first_bytes.size() >= 2 && first_bytes[0] == 0x16 && first_bytes[1] == 0x03;
}

// ---- context ------------------------------------------------------------------------------------

absl::StatusOr<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsFiles& files) {
  std::shared_ptr<TlsContext> out(new TlsContext);
  ERR_clear_error();
  SSL_CTX* ctx = SSL_CTX_new(TLS_method());
  if (ctx == nullptr) return absl::InternalError(StrCat("OpenSSL: ", openssl_reason()));
  out->ctx_ = ctx;
  SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(ctx, 0);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
  // A daemon cannot be asked for a password: an encrypted key is an error.
  SSL_CTX_set_default_passwd_cb(ctx, [](char*, int, int, void*) { return -1; });
  if (SSL_CTX_load_verify_file(ctx, files.ca.c_str()) != 1)
    return InvalidArgumentError(StrCat("CA file ", files.ca, ": ", openssl_reason()));
  if (SSL_CTX_use_certificate_chain_file(ctx, files.cert.c_str()) != 1)
    return InvalidArgumentError(StrCat("certificate file ", files.cert, ": ", openssl_reason()));
  if (const absl::Status status = check_key_file(files.key); !status.ok()) return status;
  if (SSL_CTX_use_PrivateKey_file(ctx, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return InvalidArgumentError(StrCat("key file ", files.key, " for the certificate ", files.cert,
                                       ": ", openssl_reason()));
  if (SSL_CTX_check_private_key(ctx) != 1)
    return InvalidArgumentError(
        StrCat("the key ", files.key, " is not that of the certificate ", files.cert));
  auto own = parse_cert_uris(uris_of(SSL_CTX_get0_certificate(ctx)));
  if (!own.ok())
    return InvalidArgumentError(
        StrCat("certificate file ", files.cert, ": ", own.status().message()));
  out->own_ = *std::move(own);
  return std::shared_ptr<const TlsContext>(std::move(out));
}

TlsContext::~TlsContext() { SSL_CTX_free(ctx_of(ctx_)); }

absl::StatusOr<std::shared_ptr<TlsCredentials>> TlsCredentials::load(const TlsFiles& files) {
  if (!files.all())
    return InvalidArgumentError(
        "TLS needs three files: give all of --tls-ca, --tls-cert and --tls-key, or none");
  std::shared_ptr<TlsCredentials> out(new TlsCredentials);
  out->files_ = files;
  out->state_ = state_of(files);
  auto context = TlsContext::load(files);
  if (!context.ok()) return context.status();
  out->context_ = *std::move(context);
  out->own_ = out->context_->own();
  return out;
}

std::shared_ptr<const TlsContext> TlsCredentials::current(std::string* complaint) {
  const std::string state = state_of(files_);
  std::lock_guard<std::mutex> lock(mu_);
  if (state == state_) return context_;
  state_ = state;
  auto fresh = TlsContext::load(files_);
  if (fresh.ok() && to_string((*fresh)->own()) != to_string(own_))
    fresh = InvalidArgumentError(
        StrCat("certificate file ", files_.cert, " is now that of ", to_string((*fresh)->own())));
  if (fresh.ok())
    context_ = *std::move(fresh);
  else
    *complaint = StrCat("the TLS files have changed and cannot be used; going on with the old: ",
                        fresh.status().message());
  return context_;
}

// ---- session ------------------------------------------------------------------------------------

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, Side side)
    : context_(std::move(context)), side_(side) {
  ERR_clear_error();
  SSL* ssl = SSL_new(ctx_of(context_->ctx_));
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  if (ssl == nullptr || in == nullptr || out == nullptr) std::abort();  // out of memory
  ssl_ = ssl;
  in_ = in;
  out_ = out;
  SSL_set_bio(ssl, in, out);
  SSL_set_app_data(ssl, this);
  SSL_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                 [](int ok, X509_STORE_CTX* store) { return on_verify(ok, store); });
  if (side == Side::kServer) {
    SSL_set_accept_state(ssl);
  } else {
    SSL_set_connect_state(ssl);
    SSL_do_handshake(ssl);  // makes the first message
  }
}

TlsSession::~TlsSession() { SSL_free(ssl_of(ssl_)); }

// After OpenSSL's own checks (chain, dates, purpose): the role. Says no with an alert, so that the
// other side learns why.
int TlsSession::on_verify(int ok, void* opaque) {
  auto* store = static_cast<X509_STORE_CTX*>(opaque);
  auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* self = static_cast<TlsSession*>(SSL_get_app_data(ssl));
  if (ok != 1 || X509_STORE_CTX_get_error_depth(store) != 0) return ok;
  auto identity = parse_cert_uris(uris_of(X509_STORE_CTX_get_current_cert(store)));
  if (!identity.ok())
    self->why_ = std::string(identity.status().message());
  else if (self->side_ == Side::kClient && identity->role != Role::kController)
    self->why_ = StrCat("it is that of ", to_string(*identity), ", not of a controller");
  else
    self->peer_ = *std::move(identity);
  if (self->why_.empty()) return 1;
  X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

absl::Status TlsSession::failure(int rv) {
  const int error = SSL_get_error(ssl_of(ssl_), rv);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ||
      error == SSL_ERROR_ZERO_RETURN)
    return absl::OkStatus();
  const unsigned long code = ERR_peek_error();
  const int reason = ERR_GET_REASON(code);
  const long verified = SSL_get_verify_result(ssl_of(ssl_));
  const std::string words = openssl_reason();
  if (ERR_GET_LIB(code) == ERR_LIB_SSL) {
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
      return absl::UnauthenticatedError(
          StrCat("its certificate is not accepted: ",
                 why_.empty() ? X509_verify_cert_error_string(verified) : why_.c_str()));
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
      return absl::UnauthenticatedError("it has shown no certificate");
    const int alert = reason - SSL_AD_REASON_OFFSET;
    // 42 to 49: bad, unsupported, revoked, expired, unknown certificate, illegal parameter, unknown
    // CA, access denied; 116: certificate required.
    if ((alert >= 42 && alert <= 49 && alert != 47) || alert == 116)
      return absl::UnauthenticatedError(StrCat("the other side does not accept our certificate (",
                                               to_string(context_->own()),
                                               "): ", SSL_alert_desc_string_long(alert)));
  }
  return InvalidArgumentError(StrCat("TLS: ", words));
}

absl::Status TlsSession::feed(std::string_view received, std::string* plain) {
  ERR_clear_error();
  SSL* ssl = ssl_of(ssl_);
  if (BIO_write(bio_of(in_), received.data(), static_cast<int>(received.size())) !=
      static_cast<int>(received.size()))
    return absl::ResourceExhaustedError("out of memory");
  if (!established_) {
    const int rv = SSL_do_handshake(ssl);
    if (rv != 1) return failure(rv);
    established_ = true;
    const std::string waiting = std::move(waiting_);
    waiting_.clear();
    if (!waiting.empty()) write(waiting);
  }
  for (;;) {
    char buffer[16 * 1024];
    const int n = SSL_read(ssl, buffer, sizeof buffer);
    if (n <= 0) return failure(n);
    plain->append(buffer, static_cast<size_t>(n));
  }
}

void TlsSession::write(std::string_view plain) {
  if (!established_) {
    waiting_.append(plain.data(), plain.size());
    return;
  }
  ERR_clear_error();
  while (!plain.empty()) {
    const size_t part = std::min(plain.size(), size_t{1} << 20);
    const int n = SSL_write(ssl_of(ssl_), plain.data(), static_cast<int>(part));
    if (n <= 0) return;  // the session has failed; the next feed says so
    plain.remove_prefix(static_cast<size_t>(n));
  }
}

bool TlsSession::has_output() const { return BIO_ctrl_pending(bio_of(out_)) > 0; }

std::string TlsSession::take_output() {
  std::string out(BIO_ctrl_pending(bio_of(out_)), '\0');
  if (!out.empty()) BIO_read(bio_of(out_), out.data(), static_cast<int>(out.size()));
  return out;
}

}  // namespace xce::net
