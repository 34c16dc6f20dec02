#include "libxce/net/pki.h"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace xce::net {
namespace {

using absl::StrCat;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

constexpr long kSkewS = 300;  // clocks may differ: valid from a little earlier
constexpr long kDayS = 86400;

absl::Status openssl_error(const std::string& what) {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  ERR_clear_error();
  return absl::InternalError(StrCat(what, ": ", text));
}

// Writes a file whole or not at all: beside it first, then renamed.
absl::Status write_file(const std::string& path, const std::string& bytes, mode_t mode) {
  const std::string temporary = StrCat(path, ".", getpid(), ".tmp");
  unlink(temporary.c_str());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  bool ok = fd >= 0 && write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  ok = ok && fchmod(fd, mode) == 0 && fsync(fd) == 0;
  int error = errno;
  if (fd >= 0 && close(fd) != 0 && ok) {
    ok = false;
    error = errno;
  }
  if (ok && rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  if (ok) error = errno;
  unlink(temporary.c_str());
  return absl::UnavailableError(StrCat("cannot write ", path, ": ", std::strerror(error)));
}

template <typename Write>
std::string pem_of(const Write& write) {
  BIO* bio = BIO_new(BIO_s_mem());
  std::string out;
  if (bio != nullptr && write(bio) == 1) {
    out.resize(BIO_ctrl_pending(bio));
    BIO_read(bio, out.data(), static_cast<int>(out.size()));
  }
  BIO_free(bio);
  return out;
}

absl::Status write_pair(const std::string& stem, X509* certificate, EVP_PKEY* key) {
  const std::string key_pem = pem_of([key](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  const std::string cert_pem =
      pem_of([certificate](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
  if (key_pem.empty() || cert_pem.empty()) return openssl_error("writing PEM");
  const absl::Status status = write_file(stem + ".key", key_pem, 0600);
  return status.ok() ? write_file(stem + ".crt", cert_pem, 0644) : status;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr) return false;
  const int added = X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
  return added == 1;
}

// A certificate with everything but its extensions and its signature.
Certificate draft(EVP_PKEY* key, const std::string& common_name, int days) {
  Certificate out(X509_new(), X509_free);
  unsigned char serial[16];
  if (out == nullptr || RAND_bytes(serial, sizeof serial) != 1) return {nullptr, X509_free};
  serial[0] &= 0x7f;  // positive
  BIGNUM* number = BN_bin2bn(serial, sizeof serial, nullptr);
  const bool numbered =
      number != nullptr && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(out.get())) != nullptr;
  BN_free(number);
  const long end_s = days * kDayS;
  const long begin_s = std::min(-kSkewS, end_s - kDayS);
  X509_NAME* name = X509_get_subject_name(out.get());
  // A common name has at most 64 bytes; who it is stands in the alternative names.
  const std::string shown = common_name.substr(0, 64);
  const bool ok = numbered && X509_set_version(out.get(), X509_VERSION_3) == 1 &&
                  X509_gmtime_adj(X509_getm_notBefore(out.get()), begin_s) != nullptr &&
                  X509_gmtime_adj(X509_getm_notAfter(out.get()), end_s) != nullptr &&
                  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                             reinterpret_cast<const unsigned char*>(shown.c_str()),
                                             -1, -1, 0) == 1 &&
                  X509_set_pubkey(out.get(), key) == 1;
  return ok ? std::move(out) : Certificate(nullptr, X509_free);
}

template <typename T, typename Read>
T* read_pem(const std::string& path, const Read& read) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return nullptr;
  T* out = read(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  return out;
}

absl::Status check_identity(const CertIdentity& identity) {
  if (!valid_cert_name(identity.name))
    return absl::InvalidArgumentError(
        StrCat("the name '", identity.name,
               "' cannot stand in a certificate: 1 to 255 letters, digits and . _ - @ +"));
  uint64_t id = 0;
  if (identity.role == Role::kController &&
      (!absl::SimpleAtoi(identity.name, &id) || id == 0 || StrCat(id) != identity.name))
    return absl::InvalidArgumentError(StrCat("a controller's certificate names its node id, as in ",
                                             "--role controller --name 1, not '", identity.name,
                                             "'"));
  return absl::OkStatus();
}

std::string alternative_names(const CertIdentity& identity) {
  return absl::StrJoin(cert_uris(identity), ",", [](std::string* out, const std::string& uri) {
    absl::StrAppend(out, "URI:", uri);
  });
}

}  // namespace

absl::Status pki_init(const std::string& dir) {
  if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST)
    return absl::UnavailableError(StrCat("cannot make ", dir, ": ", std::strerror(errno)));
  for (const char* file : {"/ca.key", "/ca.crt"})
    if (access((dir + file).c_str(), F_OK) == 0)
      return absl::AlreadyExistsError(
          StrCat(dir, file,
                 " exists already: a new authority would make every certificate of the "
                 "old one worthless; choose another directory"));
  ERR_clear_error();
  const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  if (key == nullptr) return openssl_error("making a key");
  const Certificate ca = draft(key.get(), "XCE cluster CA", kCaDays);
  const bool ok =
      ca != nullptr && X509_set_issuer_name(ca.get(), X509_get_subject_name(ca.get())) == 1 &&
      add_extension(ca.get(), ca.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      add_extension(ca.get(), ca.get(), NID_key_usage, "critical,keyCertSign,cRLSign") &&
      add_extension(ca.get(), ca.get(), NID_subject_key_identifier, "hash") &&
      X509_sign(ca.get(), key.get(), EVP_sha256()) > 0;
  if (!ok) return openssl_error("making the authority's certificate");
  return write_pair(dir + "/ca", ca.get(), key.get());
}

absl::StatusOr<TlsFiles> pki_issue(const std::string& dir, const CertIdentity& identity, int days) {
  if (const absl::Status status = check_identity(identity); !status.ok()) return status;
  ERR_clear_error();
  const Certificate ca(read_pem<X509>(dir + "/ca.crt", PEM_read_X509), X509_free);
  const Key ca_key(read_pem<EVP_PKEY>(dir + "/ca.key", PEM_read_PrivateKey), EVP_PKEY_free);
  if (ca == nullptr || ca_key == nullptr)
    return absl::NotFoundError(StrCat("no authority in ", dir, " (", ca ? "ca.key" : "ca.crt",
                                      " cannot be read): make one with xce pki init ", dir));
  const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  if (key == nullptr) return openssl_error("making a key");
  const Certificate made = draft(key.get(), to_string(identity), days);
  X509* cert = made.get();
  const bool server = identity.role == Role::kController;
  const bool ok =
      cert != nullptr && X509_set_issuer_name(cert, X509_get_subject_name(ca.get())) == 1 &&
      add_extension(cert, ca.get(), NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(cert, ca.get(), NID_key_usage, "critical,digitalSignature") &&
      add_extension(cert, ca.get(), NID_ext_key_usage,
                    server ? "serverAuth,clientAuth" : "clientAuth") &&
      add_extension(cert, ca.get(), NID_subject_key_identifier, "hash") &&
      add_extension(cert, ca.get(), NID_authority_key_identifier, "keyid") &&
      add_extension(cert, ca.get(), NID_subject_alt_name, alternative_names(identity)) &&
      X509_sign(cert, ca_key.get(), EVP_sha256()) > 0;
  if (!ok) return openssl_error("making the certificate");
  const std::string stem = StrCat(dir, "/", name_of(identity.role), "-", identity.name);
  if (const absl::Status status = write_pair(stem, cert, key.get()); !status.ok()) return status;
  return TlsFiles{dir + "/ca.crt", stem + ".crt", stem + ".key"};
}

}  // namespace xce::net
