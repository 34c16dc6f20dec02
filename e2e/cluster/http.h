// HTTP as a script does it: each request is a curl of its own. I/O, any thread.
#ifndef XCE_E2E_CLUSTER_HTTP_H_
#define XCE_E2E_CLUSTER_HTTP_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace xce::e2e {

struct HttpAnswer {
  int status = 0;  // 0: no answer
  int curl = 0;    // curl's exit code; 7: refused, 52: closed without an answer
  double seconds = 0;
  std::string headers, text;
  nlohmann::json body;  // of text; discarded when it is none
};

class Http {
 public:
  // `address` is host:port; `token`: a bearer token, or "".
  explicit Http(std::string address, std::string token = "")
      : address_(std::move(address)), token_(std::move(token)) {}

  // `key`: an Idempotency-Key, or "".
  HttpAnswer call(const std::string& method, const std::string& path, const std::string& body = "",
                  const std::string& key = "", int limit_s = 20) const;
  // The words of a curl command for this server, without method and path.
  std::vector<std::string> curl_args() const;
  std::string url(const std::string& path) const { return "http://" + address_ + path; }

 private:
  const std::string address_, token_;
};

}  // namespace xce::e2e

#endif  // XCE_E2E_CLUSTER_HTTP_H_
