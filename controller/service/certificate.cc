#include "controller/service/certificate.h"

#include "absl/strings/str_cat.h"

namespace xce::service {

std::string apply_certificate(const net::CertIdentity& certificate, Identity* hello) {
  const bool user = certificate.role == Role::kUser;
  if (hello->role != certificate.role)
    return absl::StrCat("a certificate of ", net::to_string(certificate), " cannot be used as ",
                        name_of(hello->role));
  if (user ? !hello->user.empty() && hello->user != certificate.name
           : hello->name != certificate.name)
    return absl::StrCat("a certificate of ", net::to_string(certificate),
                        " cannot be used as that of ", name_of(hello->role), " '",
                        user ? hello->user : hello->name, "'");
  if (user) hello->user = certificate.name;
  if (certificate.role == Role::kApiserver) return "";
  if (!user) hello->user.clear();
  hello->uid = user && certificate.has_ids ? certificate.uid : kNobodyId;
  hello->gid = user && certificate.has_ids ? certificate.gid : kNobodyId;
  return "";
}

bool apply_person(const Identity& connection, const Person& person, Identity* who,
                  std::string* why) {
  if (connection.role != Role::kApiserver) {
    *why = absl::StrCat("only an apiserver may ask on behalf of others; this connection's role is ",
                        name_of(connection.role));
    return false;
  }
  if (person.user.empty()) {
    *why = "a request on behalf of nobody: name the user";
    return false;
  }
  *who = connection;
  who->user = person.user;
  if (person.administrator) return true;
  who->role = Role::kUser;
  who->uid = person.uid;
  who->gid = person.gid;
  return true;
}

}  // namespace xce::service
